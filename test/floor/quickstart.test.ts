/**
 * The quick start as a person meets it: the built daemon on the embedded runtime with examples/quickstart, on free
 * ports and a folder of its own. Needs neither root nor a container runtime.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../freePort.ts';
import { quickstartPods } from './quickstartPods.ts';

const project = join(import.meta.dirname, '..', '..');
const examples = join(project, 'examples/quickstart');
const run = promisify(execFile);
let dir = '';
let daemon: ChildProcess | undefined;
let url = '';
let health = '';
let webPort = 0;

interface PodView {
  metadata: { labels?: Record<string, string> };
  status?: { containerStatuses?: { containerID?: string; restartCount: number }[] };
}

async function until<T>(what: string, probe: () => T | undefined | Promise<T | undefined>, timeoutMs: number): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const value = await probe();
      if (value !== undefined) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}; ${String(last)}\n${log().slice(-3000)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const log = (): string => readFileSync(join(dir, 'daemon.log'), { encoding: 'utf8', flag: 'a+' });

async function startDaemon(): Promise<void> {
  const child = spawn(join(project, 'bin/actorlet'), [`--root-dir=${join(dir, 'root')}`, `--config=${join(dir, 'config.yaml')}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => writeFileSync(join(dir, 'daemon.log'), data, { flag: 'a' }));
  daemon = child;
  await until(
    'healthz',
    async () => {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
      return (await fetch(`${health}/healthz`)).ok || undefined;
    },
    60_000,
  );
}
async function stopDaemon(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
  const child = daemon;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  child.kill(signal);
  return ended;
}
async function pods(): Promise<PodView[]> {
  return ((await (await fetch(`${url}/pods`)).json()) as { items: PodView[] }).items;
}
async function containerIds(): Promise<Record<string, string | undefined>> {
  const items = (await pods()).filter((p) => p.metadata.labels?.app !== 'crasher');
  return Object.fromEntries(items.map((p) => [p.metadata.labels?.app ?? '', p.status?.containerStatuses?.[0]?.containerID]));
}
const stopRuntime = () => run(process.execPath, [join(project, 'dist/sandboxd.mjs'), '--root-dir', join(dir, 'root'), '--stop']);

beforeAll(async () => {
  await run(process.execPath, [join(project, 'scripts/build.mjs')]);
  dir = mkdtempSync(join(tmpdir(), 'actorlet-quick-'));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const [readOnly, healthz, web] = [await freePort(), await freePort(), await freePort()];
  [url, health, webPort] = [`http://127.0.0.1:${readOnly}`, `http://127.0.0.1:${healthz}`, web];
  for (const name of readdirSync(examples)) {
    writeFileSync(join(manifests, name), readFileSync(join(examples, name), 'utf8').replace(/["']10280["']/, `'${web}'`));
  }
  const config = readFileSync(join(project, 'examples/quickstart.yaml'), 'utf8')
    .replace('readOnlyPort: 10255', `readOnlyPort: ${readOnly}`)
    .replace('healthzPort: 10248', `healthzPort: ${healthz}`);
  writeFileSync(join(dir, 'config.yaml'), `${config}staticPodPath: ${manifests}\npodLogsDir: ${join(dir, 'logs/pods')}\n`);
  await startDaemon();
}, 60_000);

afterAll(async () => {
  await stopDaemon('SIGKILL');
  // Nothing may be left running, whatever the tests found.
  await stopRuntime();
  rmSync(dir, { recursive: true, force: true });
}, 60_000);

// Promised within 15 s (npm start prints nothing slower on an idle machine); here other tests run beside it.
it('brings every pod to the state its manifest promises', async () => {
  const from = performance.now();
  const { missing } = await quickstartPods(url, 45_000);
  console.log(`quick start: every pod in its state after ${((performance.now() - from) / 1000).toFixed(1)} s`);
  expect(missing, log().slice(-2000)).toEqual({});
  expect(await (await fetch(`http://127.0.0.1:${webPort}/hello`)).text()).toContain('you asked for /hello');
}, 60_000);

it('logs no warning and no error', () => {
  expect(log().match(/^[WEF]\d{4} .*$/gm) ?? []).toEqual([]);
  expect(log()).not.toContain('has no effect');
});

it('leaves the pods running when it ends and adopts them when it comes back', async () => {
  const before = await containerIds();
  expect(await stopDaemon('SIGINT'), log().slice(-2000)).toBe(0);
  expect((await fetch(`http://127.0.0.1:${webPort}/alone`)).ok).toBe(true);
  await startDaemon();
  const after = await until(
    'the pods to be known again',
    async () => {
      const ids = await containerIds();
      return Object.values(ids).filter((id) => id !== undefined).length === Object.keys(before).length ? ids : undefined;
    },
    60_000,
  );
  expect(after).toEqual(before);
}, 180_000);

it('lets a pod whose manifest is taken away finish its work', async () => {
  const folder = readdirSync(join(dir, 'logs/pods')).find((name) => name.startsWith('default_graceful'));
  const file = join(dir, 'logs/pods', folder ?? 'none', 'worker/0.log');
  expect(readFileSync(file, 'utf8')).toContain('ready for work');
  const held = openSync(file, 'r');
  const from = performance.now();
  rmSync(join(dir, 'manifests/graceful.yaml'));
  // The log is removed with the pod, so it is held open; what is written before its end can still be read.
  let text = '';
  try {
    await until(
      'the last request to be finished',
      () => {
        text += readFileSync(held, 'utf8');
        return text.includes('request 3 finished') || undefined;
      },
      60_000,
    );
  } finally {
    closeSync(held);
  }
  expect(text).toContain('TERM received: finishing 3 open requests');
  await until(
    'the pod to be gone',
    async () => ((await pods()).some((p) => p.metadata.labels?.app === 'graceful') ? undefined : true),
    60_000,
  );
  expect(performance.now() - from).toBeLessThan(60_000);
  copyFileSync(join(examples, 'graceful.yaml'), join(dir, 'manifests/graceful.yaml'));
  await until('a new pod of the same manifest', async () => ((await containerIds()).graceful ? true : undefined), 60_000);
}, 180_000);

it('ends and removes everything when the runtime is told to stop', async () => {
  await stopDaemon();
  await stopRuntime();
  await expect(fetch(`http://127.0.0.1:${webPort}/`)).rejects.toThrow();
}, 30_000);
