/** What is beside a simulated daemon: it ends at its deadlines, tells what it holds, and writes on into a log whose name has changed. */
import { describe, expect, it } from 'vitest';
import { simJournal } from '../src/beside/journal.ts';
import { simPrograms } from '../src/beside/programs.ts';
import { simUsage } from '../src/beside/usage.ts';
import { simDisk } from '../src/disk/disk.ts';
import { drain } from '../src/globals.ts';
import { simRng } from '../src/rng.ts';
import { SimTime } from '../src/time.ts';

const LIMIT_MS = 60_000;

function machine() {
  const time = new SimTime(simRng('beside'));
  const power = { on: true };
  const clock = time.clockFor(power, () => 0);
  const disk = simDisk({ time, clock });
  const rng = simRng('beside').fork('helpers');
  /** The outcome, within so many virtual ms. */
  const within = async <T>(ms: number, work: Promise<T>): Promise<T | string> => {
    let outcome: T | string = 'nothing yet';
    work.then(
      (value) => {
        outcome = value;
      },
      (error: unknown) => {
        outcome = error instanceof Error ? error.message : String(error);
      },
    );
    const endMs = time.monoMs + ms;
    await drain();
    while (await time.step(endMs));
    return outcome;
  };
  const call = { timeoutMs: LIMIT_MS, signal: new AbortController().signal };
  return { disk, power, clock, rng, within, call };
}

describe('a program for credentials', () => {
  const input = JSON.stringify({ image: 'docker.io/library/app-1:1' });

  it('answers with a password that the registry knows of', async () => {
    const { rng, within, call, clock, power } = machine();
    const programs = simPrograms({ latencyMs: 100, tokens: 'none' }, rng);
    const port = programs.connect({ clock, power });
    const [all] = port.providers;
    if (all === undefined) throw new Error('there is no program');
    const text = await within(100, port.run(all, input, call));
    const { auth } = JSON.parse(String(text)) as { auth: Record<string, { password: string }> };
    const [[key, { password }] = ['', { password: '' }]] = Object.entries(auth);
    expect(programs.given.get(password)).toMatchObject({ provider: 'all', key });
  });

  it('that hangs is killed at its limit, and not before', async () => {
    const { rng, within, call, clock, power } = machine();
    const programs = simPrograms({ latencyMs: 0, tokens: 'none' }, rng);
    programs.faultMode = 'hangs';
    const port = programs.connect({ clock, power });
    const [all] = port.providers;
    if (all === undefined) throw new Error('there is no program');
    const run = port.run(all, input, call);
    expect(await within(LIMIT_MS - 1, run)).toBe('nothing yet');
    expect(await within(1, run)).toContain('killed');
  });
});

describe('a count of what a volume holds', () => {
  it('leaves out what is mounted below it', async () => {
    const { disk, rng, within, call, clock, power } = machine();
    disk.put('/v/own', '12345');
    disk.put('/v/foreign/file', 'x'.repeat(1_000));
    disk.isMountPoint = (path) => path === '/v/foreign';
    const usage = simUsage({ disk, rng }).connect({ clock, power });
    expect(await within(1_000, usage.measure('/v', { tree: true, ...call }))).toMatchObject({ bytesUsed: 5, inodesUsed: 2 });
  });
});

describe('the journal', () => {
  it('has lines of the services that were asked for, and of no others', async () => {
    const { rng, within, call, clock, power } = machine();
    const journal = simJournal({ rng }).connect({ clock, power });
    const read = async (...args: string[]): Promise<string[]> => {
      const lines: string[] = [];
      for await (const part of journal.read(args, call)) lines.push(new TextDecoder().decode(part));
      return lines;
    };
    const lines = await within(1_000, read('--unit=kubelet', '--lines=3'));
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line).toContain('kubelet.service');
    expect(await within(1_000, read('--unit=nobody'))).toEqual([]);
  });
});

describe('a log that a process has open', () => {
  it('is written on under its new name, until it is opened anew', async () => {
    const { disk, clock, power, within } = machine();
    disk.makeDir('/logs');
    const file = disk.opened('/logs/0.log');
    const bytes = new TextEncoder().encode('line\n');
    file?.append(bytes);
    await within(0, disk.mount(power, clock).fs.rename('/logs/0.log', '/logs/0.log.1'));
    file?.append(bytes);
    expect(disk.textOf('/logs/0.log.1')).toBe('line\nline\n');
    expect(file?.isAt('/logs/0.log')).toBe(false);
    expect(disk.opened('/logs/0.log')?.size()).toBe(0);
  });
});
