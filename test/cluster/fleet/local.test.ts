/** `--api local` with the real programs: as a person starts it, as tests of a controller do, and what becomes of it when something is killed. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cleanEnv } from '../../../packages/harness/src/reaper/client.ts';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { until } from '../../e2e/lab/ports.ts';
import { endFleetProcesses, lines, startFleetProcess } from './command.ts';

const run = promisify(execFile);
const LONG = { timeoutMs: 150_000, everyMs: 250 };
const project = join(import.meta.dirname, '../../..');
const dir = mkdtempSync(join(tmpdir(), 'actorlet-local-'));
const example = join(dir, 'example');
const socket = join(dir, 'fleet.sock');
const kubectl = async (...args: string[]): Promise<string> => {
  const { stdout } = await run(program('kubectl'), ['--kubeconfig', join(dir, 'fleet.kubeconfig'), ...args], { timeout: 60_000 });
  return stdout;
};
const alive = (pids: readonly number[]): number[] =>
  pids.filter((pid) => existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '');
const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'warden'];
const pidsIn = (data: string): number[] => PROGRAMS.map((name) => Number(readFileSync(join(data, 'run', `${name}.pid`), 'utf8')));

beforeAll(async () => {
  process.env.KUBEBUILDER_ASSETS ??= dirname(program('kube-apiserver'));
  await run(process.execPath, ['scripts/build.mjs'], { cwd: project });
  cpSync(join(project, 'examples/test-your-controller'), example, { recursive: true });
  // What installing would fetch, from where it is already.
  for (const [name, at] of [
    ['actorlet', project],
    ...['vitest', '@kubernetes/client-node'].map((of) => [of, join(project, 'node_modules', of)] as const),
  ] as const) {
    const link = join(example, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(at, link);
  }
}, 120_000);
afterAll(() => {
  endFleetProcesses();
  rmSync(dir, { recursive: true, force: true });
});

it('starts again what is killed, and goes on in its folder after the fleet was killed', { timeout: 600_000 }, async () => {
  const data = join(dir, 'data');
  const start = () => startFleetProcess('--nodes=3', '--api=local', `--data=${data}`, `--socket=${socket}`, '--ready-fd=1');
  const first = start();
  await until('the fleet', () => first.text().includes('"ready":true'), LONG);
  await kubectl('create', 'deployment', 'web', '--image=web', '--replicas=6');
  await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
  for (const [at, name] of PROGRAMS.entries()) {
    const pid = pidsIn(data)[at] ?? 0;
    process.kill(pid, 'SIGKILL');
    await until(`${name} to be said`, () => first.text().includes(`${name} was killed by SIGKILL; it starts again`), LONG);
    await until(`${name} again`, () => first.text().includes(`${name} runs again`), LONG);
  }
  await until('the API server to work', async () => /6\/6/.test(await kubectl('get', 'deployment', 'web').catch(() => '')), LONG);
  await kubectl('scale', 'deployment', 'web', '--replicas=9');
  await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');

  const pids = pidsIn(data);
  first.child.kill('SIGKILL');
  await until('all programs to end', () => alive(pids).length === 0, LONG);
  const second = start();
  await until('the fleet again', () => second.text().includes('"ready":true'), LONG);
  await until('all pods', async () => /9\/9/.test(await kubectl('get', 'deployment', 'web')), LONG);
  expect(lines(await kubectl('get', 'nodes', '--no-headers')).filter((line) => / Ready /.test(line))).toHaveLength(3);
  const last = pidsIn(data);
  second.child.kill('SIGINT');
  expect(await second.ended).toBe(0);
  expect(alive(last)).toEqual([]);
});

/** As a person types it, in the folder of the example. */
async function inExample(file: string, args: string[], cwd = example): Promise<string> {
  // The runner of these tests must not be taken for a part of those that run within.
  const env = Object.fromEntries(Object.entries(cleanEnv(process.env)).filter(([name]) => !/^(VITEST|NODE_ENV|CI$)/.test(name)));
  const own = {
    NO_COLOR: '1',
    ACTORLET: join(project, 'bin/actorlet'),
    KUBECTL: program('kubectl'),
    PATH: `${dirname(process.execPath)}:${env.PATH ?? ''}`,
  };
  const { stdout, stderr } = await run(file, args, { cwd, env: { ...env, ...own }, timeout: 240_000 });
  return stdout + stderr;
}

it.each([
  ['vitest', () => inExample(process.execPath, ['node_modules/vitest/vitest.mjs', 'run']), /Tests.* 2 passed/],
  ['node:test', () => inExample(process.execPath, ['--test', 'node-test/website.test.ts']), /pass 2[\s\S]*fail 0/],
  ['Python', () => inExample('python3', ['-m', 'unittest'], join(example, 'python')), /Ran 1 test[\s\S]*OK/],
])('is what tests of a controller with %s start and end', { timeout: 300_000 }, async (_, tested, passed) => {
  expect(await tested()).toMatch(passed);
});

it('ends everything at a Ctrl-C, whenever it comes', { timeout: 300_000 }, async () => {
  for (const ms of [50, 700, 1_500, 3_000]) {
    const mine = join(dir, `interrupted-${ms}`);
    const fleet = startFleetProcess('--nodes=2', '--api=local', `--data=${mine}`, '--socket=');
    await new Promise((resolve) => setTimeout(resolve, ms));
    fleet.child.kill('SIGINT');
    // Before its handlers are there, the signal itself ends it.
    expect([0, 130, null]).toContain(await fleet.ended);
    await until('all programs to end', async () => (await run('ps', ['-ww', '-eo', 'args='])).stdout.includes(`${mine}/`) === false, LONG);
  }
});

it('tells in words that the disk is full', async () => {
  const full = join(dir, 'full');
  mkdirSync(full);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', full]);
  try {
    const fleet = startFleetProcess('--nodes=1', '--api=local', `--data=${join(full, 'data')}`, '--socket=');
    expect(await fleet.ended).toBe(64);
    expect(fleet.text()).toMatch(/the disk of .*full\/data has \d MiB free, and a control plane needs 256/);
  } finally {
    await run('umount', [full]);
  }
});
