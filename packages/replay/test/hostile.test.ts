/** Recordings that somebody damaged, joined, or made to harm: an answer in words, no crash, and nothing outside their folder. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotating } from '../../../test/rotation.ts';
import { seeded } from '../src/border.ts';
import { toldTo } from './toldTo.ts';

const CASES = 60;
/** Each commit takes one part in so many of the cuts, bytes and lines. */
const PARTS = 10;
let dir: string;
let whole: string;
let lines: string[];
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-hostile-'));
  const inputs = mkdtempSync(join(dir, 'inputs-'));
  await recordSeed(toldTo(), { seed: 8, minutes: 0.1, pods: 2 }, inputs);
  const [first = ''] = readdirSync(inputs).sort();
  whole = join(inputs, first);
  lines = zstdDecompressSync(readFileSync(whole)).toString().trimEnd().split('\n');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function ctl(...argv: string[]): Promise<{ code: number; text: string }> {
  const io = toldTo();
  const code = await runCtl({ ...io, argv });
  return { code, text: io.told() };
}

function fileOf(some: readonly string[], name = 'x'): string {
  const path = join(dir, `${name}.inputs.zst`);
  writeFileSync(path, zstdCompressSync(`${some.join('\n')}\n`));
  return path;
}

const withLine = (at: number, changed: string): string[] => lines.map((line, i) => (i === at ? changed : line));
const changed = (at: number, change: (entry: unknown[]) => unknown): string[] =>
  withLine(at, JSON.stringify(change(JSON.parse(lines[at] ?? '') as unknown[])));
const header = (change: object): string[] => changed(0, (value) => ({ ...value, ...change }));
const atFirst = (code: string): number => lines.findIndex((line) => line.startsWith(`["${code}"`));
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('a recording', () => {
  it('of another version is tried, and says so', async () => {
    const { code, text } = await ctl('replay', fileOf(header({ actorlet: 'v0.0.1-other', node: 'v1.2.3' })));
    expect(code).toBe(0);
    expect(text).toContain('it was recorded by v0.0.1-other, and this is ');
    expect(text).toContain('it was recorded on Node v1.2.3, and this is Node ');
    expect(text).toContain('No divergence');
  });

  it('to which another of the same node was joined is run up to there, and both are told apart', async () => {
    const joined = join(dir, 'joined.inputs.zst');
    writeFileSync(joined, readFileSync(whole));
    appendFileSync(joined, readFileSync(whole));
    const { code, text } = await ctl('replay', joined);
    expect(code).toBe(1);
    expect(text).toContain('another recording was joined to it');
    const asLines = await ctl('replay', fileOf([...lines, ...lines]));
    expect(asLines.code).toBe(1);
    expect(asLines.text).toContain(`line ${lines.length + 1} begins another recording: two were joined`);
  });

  it('that begins in the middle is refused', async () => {
    const { code, text } = await ctl('replay', fileOf([lines[0] ?? '', ...lines.slice(lines.length / 2)]));
    expect(code).toBe(1);
    expect(text).toMatch(/begins in the middle of a node|names body \d+, which it does not have/);
  });

  it('that lacks a line in its middle shows it as a divergence', async () => {
    const at = atFirst('settled');
    const { code, text } = await ctl('replay', fileOf(lines.filter((_, i) => i !== at)));
    expect(code).toBe(1);
    expect(text).toMatch(/DIVERGENCE|names body/);
  });

  it('that was cut anywhere does the same again up to there', async () => {
    for (const i of rotating('cuts', [...Array(30).keys()], PARTS)) {
      const end = 200 + Math.floor(((lines.length - 200) * i) / 30);
      const { code, text } = await ctl('replay', fileOf(lines.slice(0, end)));
      expect({ end, code, text }).toMatchObject({ code: 0, text: expect.stringContaining('No divergence') });
    }
  });

  it.each(rotating('changed bytes', [...Array(12).keys()], PARTS))('with a byte changed (%i) gets an answer in words', async (i) => {
    const bytes = readFileSync(whole);
    const at = Math.floor((bytes.length * (i + 0.5)) / 12);
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (i % 8));
    const path = join(dir, 'flipped.inputs.zst');
    writeFileSync(path, bytes);
    const { code, text } = await ctl('replay', path);
    // The length of a block, changed, is as if the rest were cut off.
    if (text.includes('it ends in the middle')) return;
    expect(code).toBe(1);
    expect(text).toMatch(/is damaged|FILE IS DAMAGED|is no line of a recording/);
    // What the node itself says about a damaged value stands below that remark.
    expect(text.split('THE FILE IS DAMAGED')[0]).not.toMatch(/TypeError|undefined/);
  });
});

describe('a recording that is made to harm', () => {
  it.each<[string, () => readonly string[], RegExp]>([
    ['a value that is nested too deep', () => withLine(atFirst('settled'), `["settled",0,0,${deep(100_000)}]`), /x\.inputs\.zst/],
    ['JSON that is nested too deep', () => [lines[0] ?? '', `["body",${deep(2_000_000)}]`], /x\.inputs\.zst/],
    [
      'a time without end',
      () => changed(atFirst('timer'), ([code, , timer]) => [code, Number.MAX_SAFE_INTEGER, timer]),
      /a time that no clock shows/,
    ],
    ['a first time without end', () => header({ wallMs: 1e300 }), /a time that no clock shows/],
    [
      'a call without end',
      () => changed(atFirst('settled'), ([code, ms, , value]) => [code, ms, Number.MAX_SAFE_INTEGER, value]),
      /DIVERGENCE/,
    ],
    ['a function that is none', () => changed(atFirst('called'), ([code, ms, , args]) => [code, ms, -1, args]), /DIVERGENCE/],
    ['a body that is none', () => [...lines.slice(0, 2), '["settled",0,0,{"$":"B","v":99}]'], /DIVERGENCE|names body 99/],
    ['a kind of value that is none', () => header({ ports: { kube: { $: 'code', v: 'process.exit()' } } }), /unknown kind "code"/],
    ['a clock of its own', () => header({ ports: { clock: {} } }), /has a port clock that none can have/],
    ['no ports', () => header({ ports: {} }), /x\.inputs\.zst|DIVERGENCE|failed/],
    ['keys of the prototype', () => header({ options: JSON.parse('{"__proto__":{"polluted":1},"constructor":{}}') }), /inputs since/],
    ['gates that are none', () => header({ config: { flags: {}, config: {}, gates: [] } }), /failed|DIVERGENCE|knows no feature gate/],
  ])('%s is answered in words', async (_, made, why) => {
    const { text } = await ctl('replay', fileOf(made()));
    expect(text).toMatch(why);
    expect({}).not.toHaveProperty('polluted');
  });

  it('a bomb is refused once it has said too much', async () => {
    const path = join(dir, 'bomb.inputs.zst');
    const zip = createZstdCompress();
    const zipped = pipeline(zip, createWriteStream(path));
    for (let i = 0; i < 17; i++) if (!zip.write(Buffer.alloc(2 ** 24))) await once(zip, 'drain');
    zip.end();
    await zipped;
    const { code, text } = await ctl('replay', path);
    expect([code, text]).toEqual([1, expect.stringContaining('a line of more than 256 MiB: this is no recording')]);
  });

  it('commands no terminal', async () => {
    const at = atFirst('step');
    const { text } = await ctl(
      'replay',
      fileOf(changed(at, ([code, , from, to, event]) => [code, 'node/\u001b[2J\u0007', from, to, event, ''])),
    );
    expect(text).toContain('DIVERGENCE');
    expect(text).not.toContain('\u001b');
  });

  it('names files outside its folder, and none is written', async () => {
    const outside = join(dir, 'outside');
    const text = lines.join('\n').replaceAll('/var/lib', `${outside}/../outside`);
    const before = digest(readdirSync(dir));
    for (const more of [[], ['--minimize', '--out', join(dir, 'inputs-small.zst')]])
      await ctl('replay', fileOf(text.split('\n'), 'y'), ...more);
    rmSync(join(dir, 'inputs-small.zst'), { force: true });
    rmSync(join(dir, 'y.inputs.zst'));
    expect(digest(readdirSync(dir))).toBe(before);
  });
});

const digest = (names: readonly string[]): string =>
  createHash('md5')
    .update([...names].sort().join())
    .digest('hex');

const HOSTILE: readonly unknown[] = [
  ...[null, -1, 0, 0.5, 1e15, 9_007_199_254_740_991, '', '\u001b[31m', '../../../etc/passwd', true, [], {}],
  ...[{ $: 'f', v: -1, n: 'x' }, { $: 'p', v: 0 }, { $: 'B', v: 1e9 }, { $: 'e' }, { $: 'm', v: 7 }, { $: 'u' }, { $: 'n', v: 'x' }],
  JSON.parse('{"__proto__":{"polluted":1}}'),
];

/** One value of a line is another one; or a line is gone, twice there, or in another place. */
function damaged(from: readonly string[], chance: () => number): string[] {
  const out = [...from];
  const at = Math.floor(chance() * out.length);
  const kind = Math.floor(chance() * 6);
  const line = out[at] ?? '';
  if (kind === 0) out.splice(at, 1);
  else if (kind === 1) out.splice(Math.floor(chance() * out.length), 0, line);
  else out[at] = JSON.stringify(withHostile(JSON.parse(line), chance));
  return out;
}

function withHostile(value: unknown, chance: () => number): unknown {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0 || chance() < 0.1)
    return HOSTILE[Math.floor(chance() * HOSTILE.length)];
  const keys = Object.keys(value);
  const key = keys[Math.floor(chance() * keys.length)] ?? '';
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value };
  Reflect.set(copy, key, withHostile(Reflect.get(copy, key), chance));
  return copy;
}

it('lines that are damaged at random get an answer in words', { timeout: 300_000 }, async () => {
  for (const i of rotating('damaged lines', [...Array(CASES).keys()], PARTS)) {
    const chance = seeded(i + 1);
    const { code, text } = await ctl('replay', fileOf(damaged(lines.slice(0, 600), chance)));
    expect({ i, code, text }).toMatchObject({ code: expect.toSatisfy((c) => c === 0 || c === 1) });
  }
});
