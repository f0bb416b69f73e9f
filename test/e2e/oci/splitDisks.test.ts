/** Images on one real file system and writable layers on another: a daemon with `embedded://oci` finds that, and says when it is full. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { until } from '../lab/ports.ts';
import { canRunOci } from './rig.ts';

const PROGRAM = join(import.meta.dirname, '../../../dist/actorlet.mjs');
const LONG = { timeoutMs: 40_000, everyMs: 100 };
const DISK_BYTES = 1024 * 1024;

it.runIf(canRunOci())('the disk of writable layers has thresholds of its own', async () => {
  await buildDaemon();
  const dir = mkdtempSync(join(tmpdir(), 'split-disks-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const [manifests, logs, sandbox, layers] = ['manifests', 'logs', 'root/sandbox', 'root/sandbox/containers'].map((d) => join(dir, d));
  if (manifests === undefined || logs === undefined || sandbox === undefined || layers === undefined) throw new Error('four folders');
  for (const folder of [manifests, logs]) mkdirSync(folder);
  for (const folder of [sandbox, layers]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=700`, 'none', layers]);
  onTestFinished(() => void execFileSync('umount', [layers]));
  const config = {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
    ...{ containerRuntimeEndpoint: 'embedded://oci', staticPodPath: manifests, podLogsDir: logs },
    ...{ enableServer: false, healthzPort: 0, cgroupsPerQOS: false, enforceNodeAllocatable: [] },
    ...{ evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '1%' }, failSwapOn: false },
  };
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const args = [PROGRAM, `--config=${join(dir, 'config.json')}`, `--root-dir=${join(dir, 'root')}`];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  let said = '';
  child.stderr.on('data', (d: Buffer) => {
    said += d.toString();
  });
  const says = (words: string) =>
    until(words, () => said.includes(words), LONG).catch((error: Error) => Promise.reject(new Error(`${error.message}\n${said}`)));
  // The embedded runtime, and what holds its namespaces, outlive the daemon.
  onTestFinished(async () => {
    child.kill('SIGKILL');
    const runtime = /embedded runtime started.* pid=(\d+)/.exec(said)?.[1];
    const holder = (JSON.parse(readFileSync(join(sandbox, 'holder'), 'utf8')) as { pid: number }).pid;
    for (const pid of [Number(runtime), holder]) process.kill(pid, 'SIGTERM');
    await until('both are gone', () => [Number(runtime), holder].every((pid) => !isAlive(pid)), LONG);
  });
  await says('images and writable layers lie on two file systems');
  expect(said).not.toContain('THE NODE IS UNDER PRESSURE');
  writeFileSync(join(layers, 'filler'), Buffer.alloc(DISK_BYTES));
  await says('THE NODE IS UNDER PRESSURE');
  expect(said).toMatch(/containerfs\.available is 0 B, evictionHard asks for 10\.2 KiB \(1 % of 1 MiB\)/);
  expect(said).not.toContain('nodefs.available is');
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
