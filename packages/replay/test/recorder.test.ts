/** The recording of inputs while a daemon runs: begun, ended, full, and cut by `kill -9`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, WriteStream, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { recordRoute } from '@actorlet/kubelet/actors/edge/admin/recordRoute.ts';
import { createEntropy } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { InputFile } from '@actorlet/kubelet/boot/replay/inputFile.ts';
import { wantedInputs } from '@actorlet/kubelet/boot/replay/recorder.ts';
import { recordInputs } from '@actorlet/kubelet/boot/replay/recordInputs.ts';
import { defaultNodeConfig } from '@actorlet/kubelet/machines/config/defaults.ts';
import type { InputRecorder } from '@actorlet/kubelet/ports/machine/inputRecorder.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import type { HttpRequest } from '@actorlet/kubelet/ports/sockets/net.ts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fakeBoot, until } from '../../../test/boot/helpers.ts';
import type { Entry } from '../src/entries.ts';
import { silentLogger, silentMetrics } from '../src/player/silent.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-record-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function all(next: () => Entry | null): Entry[] {
  const entries: Entry[] = [];
  for (let entry = next(); entry !== null; entry = next()) entries.push(entry);
  return entries;
}

/** Ports of a node that asks one of them only. */
function portsWith(clock: { nowMs: number }, host: object): Ports {
  const own = { monoMs: () => clock.nowMs, wallMs: () => clock.nowMs, setTimeout: () => 0, clearTimeout: () => {} };
  const rest = {
    log: silentLogger,
    metrics: silentMetrics,
    entropy: createEntropy(),
    yield: { defer: () => {} },
    rng: { next: () => 0 },
  };
  return { clock: own, host, ...rest } as unknown as Ports;
}

describe('actorctl record', () => {
  const argv = () => [
    ...[`--root-dir=${dir}/root`, '--read-only-port=0', '--healthz-port=0', '--enable-server=false', '--fail-swap-on=false'],
    ...['--cgroups-per-qos=false', '--enforce-node-allocatable=none'],
  ];
  const wanted = (recordInputs = '') =>
    wantedInputs({ flags: { ...defaultNodeConfig({}).flags, rootDir: join(dir, 'root'), recordInputs } });
  const started = async (...more: string[]) => {
    const run = fakeBoot([...argv(), ...more]);
    await until('the node was created', () => run.ports()?.inputRecorder !== undefined);
    const recorder = run.ports()?.inputRecorder;
    if (recorder === undefined) throw new Error('it has no recorder');
    return { run, recorder };
  };

  it('start ends the daemon in order and makes it anew; stop leaves it alone', async () => {
    const { run, recorder } = await started();
    const folder = join(dir, 'inputs');
    expect([recorder.now(), await wanted()]).toEqual([null, null]);
    await recorder.start({ folder, maxMib: 7, isPrivate: true });
    await run.code;
    expect([run.stops(), run.again()]).toEqual([1, 1]);
    expect(await wanted()).toEqual({ folder, maxMib: 7, isPrivate: true });
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, 'root/actorlet/record-inputs.json')).mode & 0o777).toBe(0o600);

    const next = await started();
    await next.recorder.stop();
    await next.recorder.stop();
    expect([await wanted(), next.run.again()]).toEqual([null, 0]);
    next.run.emit('SIGTERM');
    expect(await next.run.code).toBe(0);
  });

  it('start says what stands against it, and changes nothing', async () => {
    const { run, recorder } = await started();
    writeFileSync(join(dir, 'file'), '');
    await expect(recorder.start({ folder: join(dir, 'file'), maxMib: 7, isPrivate: false })).rejects.toThrow('the folder cannot be used');
    expect(await wanted()).toBeNull();
    expect(await wanted('/var/log/inputs')).toMatchObject({ folder: '/var/log/inputs', isPrivate: false });
    writeFileSync(join(dir, 'root/actorlet/record-inputs.json'), '{"folder":7}');
    expect(await wanted()).toBeNull();
    run.emit('SIGTERM');
    expect([await run.code, run.again()]).toEqual([0, 0]);
  });

  it.each([
    ['no JSON'],
    ['{}'],
    ['{"folder":"relative","maxMib":1}'],
    ['{"folder":"/x","maxMib":0.5}'],
    ['{"folder":"/x","maxMib":1,"isPrivate":"yes"}'],
    ['{"folder":"/x\\u0000","maxMib":1}'],
  ])('the body %s is refused', async (body) => {
    const recorder: InputRecorder = { now: () => null, start: () => expect.unreachable(), stop: () => expect.unreachable() };
    const req = { method: 'POST', path: '/record', body: new TextEncoder().encode(body) } as unknown as HttpRequest;
    expect(await recordRoute(recorder, req)).toMatchObject({ status: 400 });
  });
});

describe('a recording that is full', () => {
  /** One gives what does not compress. */
  const noisy = (clock: { nowMs: number }) => portsWith(clock, { noise: () => `${Math.random()}`.repeat(3) });

  it.each([
    ['lets the daemon begin another one', 11, 1],
    ['at once leaves the node alone: the folder is too small', 0, 0],
  ])('%s', async (_, minutes, times) => {
    const clock = { nowMs: 1_000 };
    let full = 0;
    const recorded = await recordInputs(defaultNodeConfig({}), noisy(clock), {
      ...{ options: {}, folder: dir, maxMib: 1, isPrivate: false },
      full() {
        full += 1;
      },
    });
    clock.nowMs += minutes * 60_000;
    const { noise } = recorded.ports.host as unknown as { noise(): string };
    await expect
      .poll(() => {
        for (let i = 0; i < 1_000; i++) noise();
        return recorded.now().ended;
      })
      .toBe('the recording is full');
    expect(full).toBe(times);
    await recorded.end('the daemon ended');
    const { next, cut } = await openInputs(recorded.now().file);
    expect([all(next).at(-1), cut()]).toEqual([['end', 'the recording is full'], false]);
    expect(recorded.now().bytes).toBeLessThan(2 ** 20 * 0.75);
  });
});

describe('a value that is nested deeper than the stack', () => {
  let deep: unknown = 'the innermost';
  for (let i = 0; i < 50_000; i++) deep = [deep];
  const host = {
    now: () => deep,
    later: async () => deep,
    isIt: (value: unknown) => value === deep,
    tell: (fn: (value: unknown) => boolean) => fn(deep),
  };

  it.each<[string, (h: typeof host) => boolean | Promise<boolean>]>([
    ['as an answer', (h) => h.now() === deep],
    ['as a later answer', async (h) => (await h.later()) === deep],
    ['in a question', (h) => h.isIt(deep)],
    ['told to a function', (h) => h.tell((value) => value === deep)],
  ])('%s ends the recording, and the node goes on', async (_, same) => {
    const ports = portsWith({ nowMs: 1_000 }, host);
    const recorded = await recordInputs(defaultNodeConfig({}), ports, {
      options: {},
      folder: dir,
      maxMib: 1,
      isPrivate: false,
      full: () => {},
    });
    expect(await same(recorded.ports.host as unknown as typeof host)).toBe(true);
    const { ended } = recorded.now();
    expect(ended).toMatch(/^a value cannot be written: /);
    await recorded.end('the daemon ended');
    const { next, cut } = await openInputs(recorded.now().file);
    expect([all(next).at(-1), cut()]).toEqual([['end', ended], false]);
  });
});

describe('a disk', () => {
  const opened = (onBroken: (why: string) => void) => InputFile.open({ dir, name: 'x', bytesMax: 2 ** 28, onBroken });

  it('that is full ends the recording, says why, and lets the daemon be', async () => {
    // A file of this process may have 64 KiB, as if the disk had no more.
    const source = join(import.meta.dirname, '../../../src/boot/replay/inputFile.ts');
    const lines = join(import.meta.dirname, '../src/lines.ts');
    const program = `
      const [{ InputFile }, { Lines }] = [await import(${JSON.stringify(source)}), await import(${JSON.stringify(lines)})];
      const ended = [];
      let all;
      const file = await InputFile.open({ dir: ${JSON.stringify(dir)}, name: 'x', bytesMax: 2 ** 28, onBroken: (why) => all.end(why) });
      all = new Lines({ write: (line) => file.write(line), ended: (why) => ended.push(why) }, (text) => text);
      while (all.on) {
        for (let i = 0; i < 1_000; i++) all.write(JSON.stringify(['end', String(Math.random()).repeat(3)]));
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await file.end();
      process.stdout.write(ended.join());`;
    const sh = `ulimit -f 128; exec "$0" --input-type=module --disable-warning=ExperimentalWarning -e "$1"`;
    const child = spawn('sh', ['-c', sh, process.execPath, program], { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += String(chunk);
    });
    const [code] = (await once(child, 'close')) as [number];
    expect([code, said]).toEqual([0, expect.stringContaining('EFBIG')]);
    expect(statSync(join(dir, 'x.inputs.zst')).size).toBeLessThanOrEqual(128 * 1_024);
  });

  it('that is slow ends the recording once 8 MiB wait for it', async () => {
    const write = vi.spyOn(WriteStream.prototype, '_write').mockImplementation(() => {});
    const many = vi.spyOn(WriteStream.prototype, '_writev').mockImplementation(() => {});
    try {
      let why = '';
      const file = await opened((said) => {
        why = said;
      });
      const line = JSON.stringify(['end', 'x'.repeat(2 ** 20)]);
      await expect
        .poll(() => {
          for (let i = 0; i < 4; i++) file.write(line + Math.random());
          return why;
        })
        .toBe('the disk does not keep up');
      expect(file.write(line)).toBe(true);
      await file.end();
    } finally {
      write.mockRestore();
      many.mockRestore();
    }
  });
});

it('after kill -9 all is there but the last 250 ms', async () => {
  const source = join(import.meta.dirname, '../../../src/boot/replay/inputFile.ts');
  const program = `
    const { InputFile } = await import(${JSON.stringify(source)});
    const file = await InputFile.open({ dir: ${JSON.stringify(dir)}, name: process.argv[1], bytesMax: 1 << 24, onBroken() {} });
    file.write(JSON.stringify({ format: 1, actorlet: '', node: '', monoMs: 0, wallMs: 0, seed: 1, ports: {}, options: {},
      config: { flags: {}, config: {}, gates: [] } }));
    setInterval(() => { const at = Math.round(performance.now()); file.write('["turn",0,' + at + ']'); process.stdout.write(at + '\\n'); }, 5);`;
  const lostMs = async (name: string): Promise<number> => {
    const child = spawn(process.execPath, ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', program, name]);
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += String(chunk);
      if (Number(said.trim().split('\n').at(-1)) > Number(said.split('\n')[0]) + 1_000) child.kill('SIGKILL');
    });
    await once(child, 'close');
    const { next, cut } = await openInputs(join(dir, `${name}.inputs.zst`));
    const entries = all(next);
    expect(cut()).toBe(true);
    const whole = said.split('\n').slice(0, -1);
    return Number(whole.at(-1)) - Number(entries.at(-1)?.[2]);
  };
  // A busy machine may hold up the timer that writes.
  const lost = [await lostMs('1')];
  while ((lost.at(-1) ?? 0) > 250 && lost.length < 4) lost.push(await lostMs(`${lost.length + 1}`));
  expect(Math.min(...lost)).toBeLessThanOrEqual(250);
});
