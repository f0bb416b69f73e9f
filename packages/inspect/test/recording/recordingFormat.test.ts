/** The bytes of a recording: whole frames are found whatever stands around them, in time proportional to the file. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../src/recording/crc32.ts';
import { decodeFrame } from '../../src/recording/decode.ts';
import { FRAME_BYTES_MAX, frameOf, HEADER_BYTES, scan } from '../../src/recording/format.ts';
import { RECORDING_VERSION } from '../../src/recording/frames.ts';
import { Recording } from '../../src/recording/recording.ts';

const text = new TextDecoder();
const found = (bytes: Uint8Array) => scan(bytes).frames.map(({ from, to }) => JSON.parse(text.decode(bytes.subarray(from, to))) as unknown);
const joined = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
/** A small multiple of the file's size. */
const CHECKED_PER_BYTE_MAX = 4;

describe('the frames of a recording', () => {
  it('are checked by the CRC-32 of gzip', () => {
    expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
  });

  it('are found again, without the torn tail that a crash leaves', () => {
    const all = [{ a: 1 }, { text: 'ä'.repeat(300) }, [3]].map(frameOf);
    const whole = joined(...all);
    expect(found(whole)).toHaveLength(3);
    const last = all[2]?.length ?? 0;
    for (let cut = 1; cut <= last; cut++) {
      const torn = whole.subarray(0, whole.length - cut);
      expect(found(torn)).toEqual([{ a: 1 }, { text: 'ä'.repeat(300) }]);
      expect(scan(torn).damagedBytes).toBe(last - cut);
    }
    // The next daemon appends behind the torn tail.
    expect(found(joined(whole.subarray(0, whole.length - 1), frameOf('next')))).toEqual([{ a: 1 }, { text: 'ä'.repeat(300) }, 'next']);
  });

  it('are found around any damage', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 3, maxLength: 8 }), fc.nat(), fc.nat({ max: 255 }), (texts, where, byte) => {
        const frames = texts.map((t) => frameOf(t));
        const bytes = joined(...frames);
        const at = where % bytes.length;
        if (bytes[at] === byte) return;
        bytes[at] = byte;
        expect(found(bytes)).toHaveLength(texts.length - 1);
      }),
    );
  });

  it('are searched for in any bytes without an error, checking a small multiple of them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.constant(frameOf('x').subarray(0, 9)), fc.constant(frameOf('y')))),
        (parts) => {
          const bytes = joined(...parts);
          const { checkedBytes, damagedBytes, frames } = scan(bytes);
          expect(checkedBytes).toBeLessThanOrEqual(bytes.length * CHECKED_PER_BYTE_MAX);
          const whole = frames.reduce((n, f) => n + f.to - f.from + HEADER_BYTES, 0);
          expect(whole + damagedBytes).toBe(bytes.length);
        },
      ),
    );
  });

  it('cost a hostile file no more: headers that are right, each for a long text that is wrong', () => {
    const header = frameOf('z'.repeat(1_000_000)).subarray(0, HEADER_BYTES);
    const hostile = new Uint8Array(2_000_000);
    for (let at = 0; at + HEADER_BYTES <= hostile.length; at += HEADER_BYTES) hostile.set(header, at);
    const { checkedBytes, gaveUp, frames } = scan(hostile);
    expect(frames).toEqual([]);
    expect(gaveUp).toBe(true);
    expect(checkedBytes).toBeLessThanOrEqual(hostile.length * CHECKED_PER_BYTE_MAX);
  });

  it('of more than 4 MiB are neither written nor believed', () => {
    expect(() => frameOf('x'.repeat(FRAME_BYTES_MAX))).toThrow(/at most 4194304/);
  });
});

describe('what frames say', () => {
  const run = { t: 'run', v: RECORDING_VERSION, atMs: 1000, node: 'n1', version: 'v1', startedAtMs: 900 };
  const entry = (over: object) => ({
    t: 'e',
    atMs: 1000,
    base: 0,
    strings: ['node', 'x'],
    entries: [[0, 7, 0, 1, 1, 1]],
    lost: 0,
    ...over,
  });

  it('is checked field by field', () => {
    expect(decodeFrame(JSON.stringify(run))).toEqual(run);
    expect(decodeFrame(JSON.stringify(entry({})))).not.toBeNull();
    const wrong = [
      '',
      'null',
      '[]',
      '{"t":"__proto__"}',
      '{"t":"constructor"}',
      JSON.stringify({ ...run, atMs: '1' }),
      JSON.stringify({ ...run, atMs: 1e300 }),
      JSON.stringify(entry({ entries: [[0, 7, 0, 1, 1]] })),
      JSON.stringify(entry({ entries: [[0, 7, 0, 1, 1, 'x']] })),
      JSON.stringify(entry({ strings: [1] })),
      JSON.stringify({ t: 'f', atMs: 1, facts: [[0, 'pods', 'u', {}]] }),
      JSON.stringify({ t: 'f', atMs: 1, facts: [[0, 'cri', '', { state: 'ready' }]] }),
      JSON.stringify({ t: 'f', atMs: 1, facts: [[0, '#clock', '', 'x']] }),
      JSON.stringify({ t: 'r', atMs: 1, base: 0, strings: [], rows: [[0, 1, 2]] }),
      JSON.stringify({ t: 'calls', calls: [['u', 'm', 'a', 1, 'x', '']] }),
    ];
    for (const line of wrong) expect(decodeFrame(line), line).toBeNull();
  });

  it('is read as far as it goes from a recording whose numbers point nowhere', () => {
    const frames = [
      run,
      entry({ base: 9_000_000, entries: [[0, 99, 5, -1, 9_000_000, 1e9]] }),
      entry({ base: 0, entries: [[-5000, 6, 0, 1, 1, 1, [[1, 2, 3]]]] }),
      { t: 'calls', calls: [['u', 'StartContainer', 'a', 1, null, '']] },
    ];
    const recording = new Recording([joined(...frames.map(frameOf))]);
    const picture = recording.at(recording.toMs);
    expect(picture.run.node).toBe('n1');
    expect(recording.lastEntries(picture.reach, 10, (e) => e.path === '(lost)')).toHaveLength(1);
    expect(recording.historyAt('u', picture.reach)?.calls).toHaveLength(1);
  });

  it('of a file without a beginning is nothing', () => {
    expect(new Recording([joined(frameOf(entry({})))]).runs).toEqual([]);
    expect(new Recording([new Uint8Array()]).at(5).state().children).toEqual([]);
  });
});
