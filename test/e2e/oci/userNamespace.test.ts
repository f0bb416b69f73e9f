/** A whole daemon as root of a user namespace, made by a user who is not root (KEP-2033), with pods as processes. */
import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { until } from '../lab/ports.ts';
import { canRunOci, USER_ID } from './rig.ts';

const PROGRAM = join(import.meta.dirname, '../../../dist/actorlet.mjs');
const LONG = { timeoutMs: 30_000, everyMs: 100 };

it.runIf(canRunOci())('runs a pod, takes a kernel log that it may not read for what it is, and ends in order', async () => {
  await buildDaemon();
  const dir = mkdtempSync(join(tmpdir(), 'user-namespace-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const [manifests, logs, root] = ['manifests', 'logs', 'root'].map((name) => join(dir, name));
  if (manifests === undefined || logs === undefined || root === undefined) throw new Error('three folders are needed');
  for (const folder of [dir, manifests, logs, root]) {
    mkdirSync(folder, { recursive: true });
    chownSync(folder, USER_ID, USER_ID);
  }
  const config = {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
    ...{ containerRuntimeEndpoint: 'embedded://process', staticPodPath: manifests, podLogsDir: logs },
    ...{ enableServer: false, healthzPort: 0, cgroupsPerQOS: false, enforceNodeAllocatable: [] },
    featureGates: { KubeletInUserNamespace: true },
  };
  writeFileSync(join(dir, 'config.json'), JSON.stringify(config));
  const command = ['sh', '-c', 'cat /proc/self/uid_map; exec sleep 1000'];
  const spec = { terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'actorlet.dev/host', command }] };
  const pod = join(manifests, 'hello.json');
  writeFileSync(pod, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'hello' }, spec }));
  const user = ['setpriv', `--reuid=${USER_ID}`, `--regid=${USER_ID}`, '--clear-groups'];
  const args = [...user, 'unshare', '--user', '--map-root-user', '--mount', process.execPath, PROGRAM];
  const child = spawn(args[0] ?? '', [...args.slice(1), `--config=${join(dir, 'config.json')}`, `--root-dir=${root}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  // The embedded runtime outlives the daemon.
  onTestFinished(() => {
    const pid = /embedded runtime started.* pid=(\d+)/.exec(said)?.[1];
    if (pid !== undefined) process.kill(Number(pid), 'SIGTERM');
  });
  child.stderr.on('data', (d: Buffer) => {
    said += d.toString();
  });
  const phase = (to: string) => until(`the pod is ${to}`, () => said.includes(`to=${to}`), LONG);
  await phase('Running').catch((error: Error) => Promise.reject(new Error(`${error.message}\n${said}`)));
  const log = /pod=default\/(\S+)/.exec(said)?.[1] ?? '';
  const uid = /uid=([0-9a-f-]+)/.exec(said)?.[1] ?? '';
  const map = await until('its log', () => readFileSync(join(logs, `default_${log}_${uid}`, 'main', '0.log'), 'utf8'), LONG);
  expect(map).toMatch(new RegExp(` 0 +${USER_ID} +1\\n$`));
  expect(said).toMatch(/^I.*the kernel's log cannot be read/m);
  expect(said).not.toMatch(/^[WE]\d/m);
  rmSync(pod);
  await until('the pod is gone', () => !existsSync(join(root, 'pods', uid)), LONG);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
