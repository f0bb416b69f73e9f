import { execFileSync } from 'node:child_process';
import { accessSync, appendFileSync, closeSync, constants, openSync, symlinkSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createKernelLog } from '../../../src/boot/dependencies/machine/kernelLog.ts';
import type { KernelLogPart } from '../../../src/ports/machine/kernelLog.ts';
import { eachFolder } from '../../eachFolder.ts';

const WITHIN = { timeout: 30_000 };
const EVERY_MS = 5;
let dir = '';
eachFolder((made) => (dir = made));

const record = (seq: number, text: string): string => `6,${seq},${seq * 10},-;${text}\n`;

/** Reads on until `next` is asked no more. */
function reading(path: string, after: number | null) {
  const abort = new AbortController();
  const parts = createKernelLog({ path, everyMs: EVERY_MS }).follow(after, abort.signal)[Symbol.asyncIterator]();
  return {
    async next(): Promise<KernelLogPart> {
      const { value, done } = await parts.next();
      if (done === true) throw new Error('the log ended');
      return value;
    },
    async end(): Promise<boolean> {
      abort.abort();
      return (await parts.next()).done === true;
    },
  };
}

describe('the log of the kernel', () => {
  it('begins with what comes from now on, and tells where that is', WITHIN, async () => {
    const path = join(dir, 'kmsg');
    writeFileSync(path, record(7, 'before') + record(8, 'before, too'));
    const log = reading(path, null);
    expect(await log.next()).toEqual({ records: [], seq: 8 });
    appendFileSync(path, record(9, 'now'));
    expect(await log.next()).toEqual({ records: ['6,9,90,-;now'], seq: 9 });
    expect(await log.end()).toBe(true);
  });

  it('goes on after a record that is known', WITHIN, async () => {
    const path = join(dir, 'kmsg');
    writeFileSync(path, [5, 6, 7, 8].map((n) => record(n, `line ${n}`)).join(''));
    const log = reading(path, 6);
    expect(await log.next()).toEqual({ records: ['6,7,70,-;line 7', '6,8,80,-;line 8'], seq: 8 });
    expect(await log.end()).toBe(true);
  });

  it('tells at once that it can be read, also when there is nothing', WITHIN, async () => {
    const path = join(dir, 'kmsg');
    writeFileSync(path, '');
    const log = reading(path, null);
    expect(await log.next()).toEqual({ records: [], seq: -1 });
    expect(await log.end()).toBe(true);
  });

  it('gives many records in parts, each of them once', WITHIN, async () => {
    const path = join(dir, 'kmsg');
    const count = 40_000;
    writeFileSync(path, Array.from({ length: count }, (_, n) => record(n, 'x'.repeat(200))).join(''));
    const log = reading(path, -1);
    const seen: number[] = [];
    while (seen.length < count) seen.push(...(await log.next()).records.map((r) => Number(r.split(',')[1])));
    expect(seen).toEqual(Array.from({ length: count }, (_, n) => n));
    expect(await log.end()).toBe(true);
  });

  it('leaves out what belongs to a record and not to its text, and joins one that came in pieces', WITHIN, async () => {
    const path = join(dir, 'fifo');
    execFileSync('mkfifo', [path]);
    const log = reading(path, 0);
    expect(await log.next()).toEqual({ records: [], seq: 0 });
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      writeSync(fd, `${record(1, 'usb 1-1: new device')} SUBSYSTEM=usb\n DEVICE=c189:1\n6,2,20,-;to`);
      expect(await log.next()).toEqual({ records: ['6,1,10,-;usb 1-1: new device'], seq: 1 });
      writeSync(fd, 'rn\n');
      expect(await log.next()).toEqual({ records: ['6,2,20,-;torn'], seq: 2 });
    } finally {
      closeSync(fd);
    }
    expect(await log.end()).toBe(true);
  });

  it('says why it cannot be read', WITHIN, async () => {
    await expect(reading(join(dir, 'none'), null).next()).rejects.toThrow('ENOENT');
    const link = join(dir, 'kmsg');
    symlinkSync('/dev/null', link);
    await expect(reading(link, null).next()).rejects.toThrow(`${link} is a device, but not the kernel's log`);
    await expect(reading(dir, null).next()).rejects.toThrow('EISDIR');
  });
});

const readable = ((): boolean => {
  try {
    accessSync('/dev/kmsg', constants.R_OK | constants.W_OK);
    closeSync(openSync('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK));
    return true;
  } catch {
    return false;
  }
})();

describe.runIf(readable)("this machine's own kernel", () => {
  it('is heard, from now on and after a record that is known', WITHIN, async () => {
    const word = `actorlet test ${process.pid} ${Date.now()}`;
    const log = reading('/dev/kmsg', null);
    const first = await log.next();
    expect(first.records).toEqual([]);
    // What a process writes comes with the facility of users.
    writeFileSync('/dev/kmsg', `<6>${word}\n`);
    let heard: string | undefined;
    while (heard === undefined) heard = (await log.next()).records.find((r) => r.endsWith(`;${word}`));
    expect(await log.end()).toBe(true);
    const [priority, seq] = heard.split(',').map(Number);
    expect(Number(priority) >> 3).toBe(1);
    const again = reading('/dev/kmsg', Number(seq) - 1);
    expect((await again.next()).records[0]).toBe(heard);
    expect(await again.end()).toBe(true);
  });
});
