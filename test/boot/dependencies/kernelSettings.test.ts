/** The kernel settings of a node: set at the start, or with protectKernelDefaults compared alone. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kernelSettings as check } from '@actorlet/check/src/host.ts';
import { describe, expect, it } from 'vitest';
import { KERNEL_SETTINGS, kernelFindings } from '../../../src/machines/host/kernelSettings.ts';
import { fakeBoot, HEADER, tempDir, until } from '../helpers.ts';

const GOOD = join(import.meta.dirname, '../../e2e/lab/procSys');

/** A machine with the settings of a node, but for these. */
function machine(different: Record<string, string>) {
  const dir = tempDir();
  const sys = join(dir.path, 'sys');
  cpSync(GOOD, sys, { recursive: true });
  for (const [path, text] of Object.entries(different)) writeFileSync(join(sys, path), text);
  const read = (path: string) => readFileSync(join(sys, path), 'utf8').trim();
  return { ...dir, sys, read, [Symbol.dispose]: () => dir[Symbol.dispose]() };
}
const DIFFERENT = { 'vm/overcommit_memory': '0\n', 'kernel/panic': '0\n' };

function start(host: ReturnType<typeof machine>, config: string, endpoint = 'unix:///run/nobody.sock') {
  const calm = 'failSwapOn: false\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\nenableServer: false\nhealthzPort: 0\n';
  const file = host.write('kubelet.yaml', `${HEADER}${calm}containerRuntimeEndpoint: ${endpoint}\n${config}`);
  return fakeBoot([`--config=${file}`, `--root-dir=${join(host.path, 'root')}`], { env: { ACTORLET_PROC_SYS: host.sys } });
}
async function ranOnce(run: ReturnType<typeof fakeBoot>): Promise<void> {
  await until('the node was created', () => run.nodeConfig() !== undefined);
  run.emit('SIGTERM');
  expect(await run.code).toBe(0);
}

describe('kernel settings', () => {
  it('are those of the reference', () => {
    expect(Object.fromEntries(KERNEL_SETTINGS.map(({ name, value }) => [name, value]))).toEqual({
      'vm.overcommit_memory': 1,
      'vm.panic_on_oom': 0,
      'kernel.panic': 10,
      'kernel.panic_on_oops': 1,
      'kernel.keys.root_maxkeys': 1_000_000,
      'kernel.keys.root_maxbytes': 25_000_000,
    });
  });

  it('are changed at the start, each with a line in the log', async () => {
    using host = machine(DIFFERENT);
    const run = start(host, '');
    await ranOnce(run);
    expect([host.read('vm/overcommit_memory'), host.read('kernel/panic')]).toEqual(['1', '10']);
    const lines = run.stderr().match(/kernel setting changed.*/g);
    expect(lines).toEqual([expect.stringMatching(/vm\.overcommit_memory.*from=0.*to=1/), expect.stringContaining('kernel.panic')]);
  });

  it('are left alone on an embedded runtime', async () => {
    using host = machine(DIFFERENT);
    await ranOnce(start(host, 'protectKernelDefaults: true\n', 'embedded://hollow'));
    expect(host.read('kernel/panic')).toBe('0');
  });

  it('refuse the start with protectKernelDefaults, all named, and none changed', async () => {
    using host = machine(DIFFERENT);
    const run = start(host, 'protectKernelDefaults: true\n');
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0');
    expect(run.stderr()).toContain('invalid kernel flag: kernel/panic, expected value: 10, actual value: 0');
    expect(host.read('kernel/panic')).toBe('0');
  });

  it('refuse the start where they cannot be read or changed', async () => {
    using host = machine({ 'kernel/panic': 'soon\n' });
    rmSync(join(host.sys, 'kernel/keys'), { recursive: true });
    const run = start(host, '');
    expect(await run.code).toBe(1);
    expect(run.stderr()).toContain('kernel.panic cannot be read: its value is no number');
    expect(run.stderr()).toMatch(/kernel\.keys\.root_maxkeys cannot be read: ENOENT/);
  });

  it('are read as whole numbers alone', () => {
    const readings = (text: string) => new Map(KERNEL_SETTINGS.map(({ path }) => [path, { ok: true as const, text }]));
    expect(kernelFindings(readings('1e1\n')).map((f) => f.kind)).toEqual(KERNEL_SETTINGS.map(() => 'unreadable'));
    expect(kernelFindings(new Map()).map((f) => f.kind)).toEqual(KERNEL_SETTINGS.map(() => 'unreadable'));
  });

  it('are in the answer of --check: a note where the start changes them, an error where it would refuse', async () => {
    using host = machine(DIFFERENT);
    const config = (protectKernelDefaults: boolean, containerRuntimeEndpoint = 'unix:///run/nobody.sock') =>
      ({ config: { protectKernelDefaults, containerRuntimeEndpoint } }) as Parameters<typeof check>[0];
    const notes = await check(config(false), host.sys);
    expect(notes.map((f) => [f.level, f.what])).toEqual([
      ['note', 'invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0: the start changes it'],
      ['note', 'invalid kernel flag: kernel/panic, expected value: 10, actual value: 0: the start changes it'],
    ]);
    const errors = await check(config(true), host.sys);
    expect(errors.map((f) => [f.level, f.todo])).toEqual([
      ['error', 'Run sysctl -w vm.overcommit_memory=1, or set protectKernelDefaults: false.'],
      ['error', 'Run sysctl -w kernel.panic=10, or set protectKernelDefaults: false.'],
    ]);
    expect(await check(config(true, 'embedded://process'), host.sys)).toEqual([]);
    expect(host.read('kernel/panic')).toBe('0');
  });
});
