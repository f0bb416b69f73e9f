/** `actorlet observe` as a process, beside one of our daemons on the embedded runtime as the other kubelet. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { stopAll } from '@actorlet/runtimes/src/process/admin.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BY_PROGRAM, buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { Observer } from '../lab/observer.ts';
import { PageBrowser, pageBehind, picture } from '../lab/page/browser.ts';

const PROGRAM = join(import.meta.dirname, '../../../dist/sandboxd.mjs');

let kubelet: Daemon;
let observer: Observer;

beforeAll(async () => {
  await buildDaemon();
  kubelet = await createDaemon({ endpoint: 'embedded://process' }, { fileCheckFrequency: '1s' });
  kubelet.put('calm.json', pod('calm', ['sleep', '1000']));
  await kubelet.start();
  await kubelet.phase('calm', 'Running');
  observer = new Observer(kubelet.dir);
});
afterAll(async () => {
  await observer?.end('SIGKILL');
  await kubelet?.end('SIGTERM');
  if (kubelet !== undefined) await stopAll(kubelet.rootDir, { execPath: process.execPath, entry: PROGRAM, say: () => undefined });
  await kubelet?.dispose();
});

function pod(name: string, command: string[]): object {
  const containers = [{ name: 'main', image: 'actorlet.dev/host', command }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { terminationGracePeriodSeconds: 1, containers } };
}
/** Every file of the kubelet with its last change; sockets, logs and what it writes by itself all the time are left out. */
function filesOf(dir: string): Record<string, number> {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) => !/^sandbox|^actorlet\/|\.sock$/.test(name));
  return Object.fromEntries(names.flatMap((name) => (existsSync(join(dir, name)) ? [[name, statSync(join(dir, name)).mtimeMs]] : [])));
}
/** A pod as the observer has it: `READY STATUS RESTARTS`. */
async function seen(name: string): Promise<string> {
  const line = (await observer.ctl('pods')).split('\n').find((l) => l.includes(` ${name}-`)) ?? '';
  return line.trim().split(/\s+/).slice(2, 5).join(' ');
}

/** A person finds it on the first view, and in the view of the kubelet. */
async function browsed(): Promise<void> {
  await using browser = await PageBrowser.launch();
  const { url } = await pageBehind(observer.admin);
  await using o = await browser.open(url);
  await o.page.getByText('default/late-e2e').first().waitFor();
  await o.page.getByRole('link', { name: 'Kubelet' }).click();
  const view = o.page.getByLabel('Kubelet', { exact: true });
  await view
    .getByText(/the kubelet has not/)
    .first()
    .waitFor();
  await view.getByRole('cell', { name: 'StartContainer' }).waitFor();
  await picture(o.page, 'inspect-kubelet', 440);
  expect(browser.problems).toEqual([]);
}

describe('beside a daemon of ours', () => {
  it('takes its pods as they are, follows a new one to its end, and leaves the kubelet’s files alone', async () => {
    const before = filesOf(kubelet.rootDir);
    await observer.start([`--kubelet-pid=${kubelet.pid}`, '--actorlet-inspect=127.0.0.1:0']);
    await kubelet.wait('the observer sees the pod', async () => (await seen('calm')) === '1/1 Running 0', BY_PROGRAM);
    expect(observer.log()).toMatch(/kubelet +process \d+/);
    expect(filesOf(kubelet.rootDir)).toEqual(before);
    const second = ['observe', `--observe-dir=${observer.folder}`, `--kubelet-pid=${kubelet.pid}`];
    await expect(promisify(execFile)(join(import.meta.dirname, '../../../bin/actorlet'), second)).rejects.toMatchObject({
      ...{ code: 1, stderr: expect.stringMatching(/--observe-dir: \S+ is in use by actorlet process \d+/) },
    });
    kubelet.put('falls.json', pod('falls', ['sh', '-c', 'sleep 1; exit 3']));
    await kubelet.wait('the observer sees it fall twice', async () => /[2-9]$/.test(await seen('falls')), BY_PROGRAM);
    expect(await observer.ctl('why', 'falls')).toContain('exit code 3');
    kubelet.remove('falls.json');
    await kubelet.wait('the observer forgets it', async () => (await seen('falls')) === '', BY_PROGRAM);
    const { counts, disagreements } = JSON.parse(await observer.ctl('disagreements', '-o', 'json')) as ObserverLedger;
    expect(disagreements).toEqual([]);
    expect(counts.filter((c) => c.agreed > 0).map((c) => c.kind)).toEqual(expect.arrayContaining(['CreateContainer', 'StartContainer']));
    expect(await kubelet.phase('calm', 'Running')).toBeDefined();
    const metrics = readFileSync(join(observer.folder, 'actorlet', 'daemon.lock'), 'utf8');
    expect(metrics).toContain(String(observer.pid));
  });

  it('names what a frozen kubelet does not do, and exits with 1 for it', async () => {
    const pid = kubelet.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    try {
      kubelet.put('late.json', pod('late', ['sleep', '1000']));
      await kubelet.wait(
        'the observer waits for it',
        async () => /the kubelet has not .* for \d+/.test(await observer.ctl('why', 'late').catch(String)),
        BY_PROGRAM,
      );
      await kubelet.wait(
        'it is a disagreement',
        async () => (await observer.ledger()).disagreements.some((d) => d.pod === 'default/late-e2e' && d.settledMs === null),
        {
          timeoutMs: 120_000,
        },
      );
      await expect(observer.ctl('disagreements')).rejects.toMatchObject({
        code: 1,
        stdout: expect.stringContaining('the kubelet has not'),
      });
      await browsed();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await kubelet.wait('it runs after all', async () => (await seen('late')) === '1/1 Running 0', { ...BY_PROGRAM, timeoutMs: 120_000 });
    await kubelet.wait('all is settled', async () => (await observer.ledger()).disagreements.every((d) => d.settledMs !== null), {
      timeoutMs: 120_000,
    });
    expect(await observer.end()).toBe(0);
    expect(kubelet.alive()).toBe(true);
  }, 300_000);
});
