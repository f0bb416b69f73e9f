/** The controller under test as a process: it starts again when it ends by itself, and ends with the fleet. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { startController } from '../../src/boot/seeds/controller.ts';

const dir = mkdtempSync(join(tmpdir(), 'actorlet-controller-'));
const logFile = join(dir, 'controller.log');
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const log = (): string => readFileSync(logFile, 'utf8');
const waitFor = (text: RegExp) => vi.waitFor(() => expect(log()).toMatch(text), { timeout: 20_000, interval: 20 });

it('is started again with its kubeconfig, is given time to end, and leaves no process', async () => {
  const said: string[] = [];
  const once = `[ -e ${dir}/again ] || { touch ${dir}/again; echo first $KUBECONFIG; exit 3; }`;
  const rest = `trap 'sleep 0.2; echo in order; exit 0' TERM; echo again; sleep 1000 & echo pid $!; wait`;
  const command = ['/bin/sh', '-c', `${once}; ${rest}`];
  const controller = startController({ command, kubeconfig: '/kubeconfig', logFile, say: (text) => void said.push(text) });
  await waitFor(/^pid \d+$/m);
  expect(log()).toMatch(/^first \/kubeconfig\nagain\n/);
  expect(said.join('')).toBe(`the controller ended with exit code 3; it starts again (log: ${logFile})\n`);
  const pid = Number(/pid (\d+)/.exec(log())?.[1]);
  await controller.stop();
  expect(log()).toContain('in order');
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), { timeout: 20_000, interval: 20 });
});
