/** Files of recordings: whole, cut, damaged, of another version, and made to harm. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { damageOf, inputFiles, openInputs } from '@actorlet/ctl/src/commands/replay/file.ts';
import { InputFile, recordingsIn } from '@actorlet/kubelet/boot/replay/inputFile.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry } from '../src/entries.ts';

const HEADER = {
  format: 1,
  actorlet: 'v1',
  node: 'v24',
  startedAt: '',
  monoMs: 1,
  wallMs: 2,
  seed: 3,
  ports: {},
  config: { flags: {}, config: {}, gates: [] },
  options: {},
};
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-inputs-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function fileOf(lines: readonly unknown[], end = '\n'): string {
  const path = join(dir, 'x.inputs.zst');
  writeFileSync(
    path,
    zstdCompressSync(Buffer.from(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n') + end)),
  );
  return path;
}
function all(next: () => Entry | null): Entry[] {
  const entries: Entry[] = [];
  for (let entry = next(); entry !== null; entry = next()) entries.push(entry);
  return entries;
}

describe('a file that is written', () => {
  it('can be read up to what was flushed while its daemon runs, and whole once it ended', async () => {
    const file = await InputFile.open({ dir, name: 'now', bytesMax: 1 << 20, onBroken: () => expect.unreachable() });
    file.write(JSON.stringify(HEADER));
    for (let i = 0; i < 1_000; i++) expect(file.write(`["turn",0,${i}]`)).toBe(true);
    await expect.poll(async () => (await openInputs(file.path)).cut()).toBe(true);
    expect(all((await openInputs(file.path)).next)).toHaveLength(1_000);
    file.write('["end","over"]');
    await file.end();
    const { next, cut } = await openInputs(file.path);
    expect([all(next).at(-1), cut()]).toEqual([['end', 'over'], false]);
  });

  it('takes no more than it may have, and makes room among older ones', async () => {
    const o = { dir, bytesMax: 4_096, onBroken: () => expect.unreachable() };
    for (const name of ['1', '2', '3']) {
      const file = await InputFile.open({ ...o, name });
      let written = 0;
      await expect
        .poll(() => {
          while (written < 1e6 && file.write(JSON.stringify(['end', Math.random().toString(36).repeat(3)])) && ++written % 200 !== 0);
          return file.write('[]');
        })
        .toBe(false);
      await file.end();
    }
    const left = await recordingsIn(dir);
    expect(left).toContain(join(dir, '3.inputs.zst'));
    expect(left).not.toContain(join(dir, '1.inputs.zst'));
  });
});

describe('a file that is no recording', () => {
  it.each([
    ['nothing', [], 'line 1 is damaged'],
    ['another format', [{ ...HEADER, format: 7 }], 'it has format 7, and this program reads the formats 1 and 2'],
    ['a header without ports', [{ ...HEADER, ports: undefined }], 'its first line is damaged: ports or configuration are missing'],
    ['text', ['hello'], 'line 1 is damaged'],
  ])('%s is refused in words', async (_, lines, why) => {
    await expect(openInputs(fileOf(lines))).rejects.toThrow(why);
  });

  it.each([
    ['["ask","fs.stat"]'],
    ['["turn","0",1]'],
    ['["turn",1e999,1]'],
    ['{"turn":1}'],
    ['["__proto__",1,2]'],
    ['["told",0,"start","more"]'],
  ])('the line %s is refused by its number', async (line) => {
    const { next } = await openInputs(fileOf([HEADER, ['turn', 0, 1], line]));
    expect(next()).toEqual(['turn', 0, 1]);
    expect(next).toThrow('line 3 is no line of a recording');
  });

  it('that is not compressed, or not there, is said', async () => {
    writeFileSync(join(dir, 'plain.inputs.zst'), 'hello');
    await expect(openInputs(join(dir, 'plain.inputs.zst'))).rejects.toThrow('it is no recording of inputs');
    await expect(openInputs(join(dir, 'none'))).rejects.toThrow('ENOENT');
    await expect(inputFiles(mkdtempSync(join(dir, 'empty-')))).rejects.toThrow('no recording of inputs');
  });

  it('that is cut is read up to there', async () => {
    const path = fileOf([HEADER, ...Array.from({ length: 50_000 }, (_, i) => ['turn', i % 7, i])]);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.subarray(0, bytes.length / 2));
    const { next, cut } = await openInputs(path);
    expect(all(next).length).toBeGreaterThan(0);
    expect(cut()).toBe(true);
    expect(zstdDecompressSync(bytes).length).toBeGreaterThan(0);
    writeFileSync(path, bytes.subarray(0, 20));
    await expect(openInputs(path)).rejects.toThrow('it was cut before the end of its first line');
    writeFileSync(path, '');
    await expect(openInputs(path)).rejects.toThrow('it is empty');
  });

  it('that has a changed byte is damaged and not cut, at the latest by its checksum', async () => {
    const file = await InputFile.open({ dir, name: 'now', bytesMax: 1 << 20, onBroken: () => expect.unreachable() });
    file.write(JSON.stringify(HEADER));
    for (let i = 0; i < 1_000; i++) file.write(JSON.stringify(['end', Math.random().toString(36)]));
    await file.end();
    const bytes = readFileSync(file.path);
    for (let i = 1; i < 20; i++) {
      const changed = Buffer.from(bytes);
      const at = Math.floor((bytes.length * i) / 20);
      changed[at] = (changed[at] ?? 0) ^ (1 << (i % 8));
      writeFileSync(file.path, changed);
      const found = await openInputs(file.path).then(damageOf, (error: Error) => error.message);
      expect(found).toMatch(/damaged|no line of a recording/);
    }
  });
});
