/** The file of a recording on a real disk: bounded, rotated, private, and never somebody else's file. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../../test/integration/hollowNode.ts';
import { collectingLogger, type LogLine } from '../../../../test/supervision/fakePorts.ts';
import { RecordingFile } from '../../src/boot/recordingFile.ts';
import { frameOf, scan } from '../../src/recording/format.ts';

const MIB = 1024 * 1024;
const SIZE_MAX = 16 * MIB;
let dir = '';
let path = '';
let lines: LogLine[] = [];
const files: RecordingFile[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-rec-'));
  path = join(dir, 'node.rec');
  lines = [];
});
afterEach(async () => {
  for (const file of files.splice(0)) await file.end();
  rmSync(dir, { recursive: true, force: true });
});

async function opened(): Promise<RecordingFile> {
  const file = new RecordingFile({ path, bytesMax: SIZE_MAX, log: collectingLogger(lines) });
  files.push(file);
  await file.open();
  return file;
}
function other(): string {
  const file = join(dir, 'other');
  writeFileSync(file, '');
  return file;
}
const written = (file: RecordingFile) => until('everything is written', () => file.waitingBytes === 0);

describe('the file of a recording', () => {
  it('is private, and is appended to by the next daemon', async () => {
    const first = await opened();
    expect(first.write(frameOf('one'))).toBe(true);
    await written(first);
    // What was written is there although nothing was closed: a killed daemon leaves it so.
    expect(scan(readFileSync(path)).frames).toHaveLength(1);
    chmodSync(path, 0o644);
    const second = await opened();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    second.write(frameOf('two'));
    await second.end();
    expect(scan(readFileSync(path)).frames).toHaveLength(2);
  });

  it('and its earlier half never have more bytes together than they may', async () => {
    const file = await opened();
    const frame = frameOf('x'.repeat(MIB));
    for (let i = 0; i < 40; i++) {
      if (!file.write(frame)) throw new Error('it refused what it has room for');
      if (file.segmentBytes >= file.segmentSoftMax) file.rotate();
      await written(file);
      const sizes = [path, `${path}.1`].map((p) => (existsSync(p) ? statSync(p).size : 0));
      expect((sizes[0] ?? 0) + (sizes[1] ?? 0)).toBeLessThanOrEqual(SIZE_MAX);
    }
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
    expect(scan(readFileSync(`${path}.1`)).frames.length).toBeGreaterThan(3);
  });

  it('takes no more than its half where nobody rotates it, and a full one is moved at the start', async () => {
    const file = await opened();
    const frame = frameOf('x'.repeat(MIB));
    let taken = 0;
    while (file.write(frame)) taken += 1;
    expect(taken).toBe(7);
    await file.end();
    const next = await opened();
    expect(next.segmentBytes).toBe(0);
    expect(statSync(`${path}.1`).size).toBe(7 * frame.length);
  });

  it.each([
    ['a file that is no recording', () => writeFileSync(path, '#!/bin/sh\n'), 'is no recording'],
    ['a link', () => symlinkSync(other(), path), 'ELOOP'],
    ['a file with a second name', () => linkSync(other(), path), 'hard links'],
    ['a folder', () => mkdirSync(path), 'EISDIR'],
    ['a named pipe', () => void execFileSync('mkfifo', [path]), 'no regular file'],
  ])('refuses %s, says so once, and harms nobody', async (_name, prepare, why) => {
    prepare();
    const file = await opened();
    expect(file.write(frameOf('one'))).toBe(false);
    expect(lines.filter((l) => l.level === 'error').map((l) => JSON.stringify(l))).toEqual([expect.stringContaining(why)]);
    await file.open();
    expect(lines.filter((l) => l.level === 'error')).toHaveLength(1);
    if (existsSync(path) && statSync(path).isFile()) expect(readFileSync(path, 'utf8')).not.toContain('one');
  });

  it('is written again once it can be', async () => {
    path = join(dir, 'later', 'node.rec');
    const file = await opened();
    expect(file.generation).toBe(0);
    mkdirSync(join(dir, 'later'));
    await file.open();
    expect(file.generation).toBe(1);
    expect(file.write(frameOf('one'))).toBe(true);
    await written(file);
    expect(scan(readFileSync(path)).frames).toHaveLength(1);
  });
});
