/** Log options and log lines (boot-and-node 8.6; traps 34 to 36), with a golden table of what each option gives. */
import { describe, expect, it } from 'vitest';
import { fixedFraction, logWriter, nanosOf, parseLogLine } from '../../../src/machines/edge/https/logs/logLines.ts';
import { parseLogOptions } from '../../../src/machines/edge/https/logs/logOptions.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (b: Uint8Array | undefined) => (b === undefined ? undefined : new TextDecoder().decode(b));
const parse = (query: string) => parseLogOptions(new URLSearchParams(query), NOW_MS);

describe('the query', () => {
  it.each([
    ['tailLines=x', 400],
    ['limitBytes=1.5', 400],
    ['sinceSeconds=', 400],
    ['sinceTime=yesterday', 400],
    ['tail=few', 400],
    ['tailLines=-1', 422],
    ['limitBytes=0', 422],
    ['sinceSeconds=0', 422],
    ['sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z', 422],
    ['stream=Both', 422],
    ['stream=Stdout&tailLines=1', 422],
  ])('%s is refused with %i', (query, status) => {
    const parsed = parse(query);
    expect([parsed.ok, !parsed.ok && parsed.status]).toEqual([false, status]);
  });
  it('has its defaults', () => {
    expect(parse('container=x&insecureSkipTLSVerifyBackend=true')).toEqual({
      ok: true,
      options: { follow: false, previous: false, timestamps: false, sinceNs: null, tailLines: null, limitBytes: null, stream: null },
    });
  });
  it('reads booleans as Go does, and an older tail over tailLines', () => {
    expect(parse('follow&previous=False&timestamps=yes&tail=all&tailLines=3')).toMatchObject({
      options: { follow: true, previous: false, timestamps: true, tailLines: null },
    });
    expect(parse('tail=2&tailLines=3')).toMatchObject({ options: { tailLines: 2 } });
  });
  it('counts sinceSeconds from the request', () => {
    expect(parse('sinceSeconds=60')).toMatchObject({ options: { sinceNs: BigInt(NOW_MS - 60_000) * 1_000_000n } });
    expect(parse('sinceTime=2026-01-01T00:00:00.5Z')).toMatchObject({
      options: { sinceNs: BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n + 500_000_000n },
    });
  });
});

describe('a line', () => {
  it('keeps bytes that are no text', () => {
    const line = Uint8Array.from([...bytes('2026-01-01T00:00:00.1Z stdout F '), 0xff, 0x00, 0x20]);
    expect([...(parseLogLine(line)?.content ?? [])]).toEqual([0xff, 0, 0x20, 0x0a]);
  });
  it('is partial by its first tag', () => {
    expect(parseLogLine(bytes('2026-01-01T00:00:00Z stderr P:x ab'))).toMatchObject({ partial: true, stream: 'stderr' });
    expect(text(parseLogLine(bytes('2026-01-01T00:00:00Z stderr P:x ab'))?.content)).toBe('ab');
    expect(text(parseLogLine(bytes('2026-01-01T00:00:00Z stdout F'))?.content)).toBe('\n');
  });
  it('may be of the older JSON form', () => {
    const line = parseLogLine(bytes('{"log":"hi\\n","stream":"stderr","time":"2026-01-01T00:00:00.12Z"}'));
    expect([line?.stream, text(line?.content), line?.partial]).toEqual(['stderr', 'hi\n', false]);
  });
  it.each(['', 'hello', '2026-01-01T00:00:00Z stdin F x', 'now stdout F x', '{"log":1}', '{nonsense', '[]'])('%j is none', (line) => {
    expect(parseLogLine(bytes(line))).toBeUndefined();
  });
  it('has its time in nanoseconds, in any zone', () => {
    expect(nanosOf('2026-01-01T02:00:00.000000001+02:00')).toBe(BigInt(Date.UTC(2026, 0, 1)) * 1_000_000n + 1n);
    expect([nanosOf('2026-13-01T00:00:00Z'), nanosOf('2026-01-01'), nanosOf('')]).toEqual([undefined, undefined, undefined]);
    expect(fixedFraction('2026-01-01T00:00:00.5+01:00')).toBe('2026-01-01T00:00:00.500000000+01:00');
    // As Go writes it: runtimes that write an offset of zero (CRI-O) get a Z.
    expect(fixedFraction('2026-01-01T00:00:00.5+00:00')).toBe('2026-01-01T00:00:00.500000000Z');
  });
});

const FILE = [
  '2026-01-01T11:58:00.1Z stdout F one',
  '2026-01-01T11:59:30Z stderr P tw',
  '2026-01-01T11:59:30.2Z stderr F o',
  'torn line',
  '2026-01-01T11:59:50.123456789Z stdout F three',
];
describe('what a client gets', () => {
  it('of a line that comes in pieces is that line, with one stamp and one end', () => {
    const all = { follow: false, previous: false, sinceNs: null, tailLines: null, limitBytes: null, stream: null };
    const writer = logWriter({ ...all, timestamps: true });
    const stamp = '2026-01-01T00:00:00.000000000Z';
    const pieces = [`${stamp} stdout F a`, `${stamp} stderr P b`, 'c'].map((piece, i) => text(writer.line(bytes(piece), i === 2)));
    expect(pieces).toEqual([`${stamp} a`, `${stamp} stderr P b`, 'c\n']);
    expect(text(writer.line(bytes(`${stamp} stdout F next`)))).toBe(`${stamp} next\n`);
    // Of no known format: none of it, told once.
    expect([writer.line(bytes('torn'), false), writer.line(bytes(`${stamp} stdout F x`))]).toEqual([undefined, undefined]);
    expect(writer.unreadable).toBe(1);
    expect(text(writer.line(bytes(`${stamp} stdout F next`)))).toBe(`${stamp} next\n`);
  });
  const got = (query: string) => {
    const parsed = parse(query);
    if (!parsed.ok) throw new Error(query);
    const writer = logWriter(parsed.options);
    const out: string[] = [];
    for (const line of FILE) {
      if (writer.full) break;
      out.push(text(writer.line(bytes(line))) ?? '');
    }
    return { out: out.join(''), unreadable: writer.unreadable };
  };
  it.each([
    ['', 'one\ntwo\nthree\n'],
    ['timestamps=true', '2026-01-01T11:58:00.100000000Z one\n2026-01-01T11:59:30.000000000Z two\n2026-01-01T11:59:50.123456789Z three\n'],
    ['sinceSeconds=45', 'two\nthree\n'],
    ['sinceTime=2026-01-01T11:59:50.123456789Z', 'three\n'],
    ['sinceTime=2026-01-01T11:59:50.12345679Z', ''],
    // What is written while a tail is read is none of it, unless the log is followed.
    ['tailLines=0', ''],
    ['tailLines=2', 'one\ntw'],
    ['tailLines=2&follow=true', 'one\ntwo\nthree\n'],
    ['limitBytes=5', 'one\nt'],
    ['limitBytes=5&timestamps=true', '2026-'],
    ['stream=Stderr', 'two\n'],
    ['stream=Stdout&timestamps=1', '2026-01-01T11:58:00.100000000Z one\n2026-01-01T11:59:50.123456789Z three\n'],
  ])('%j', (query, expected) => {
    expect(got(query).out).toBe(expected);
  });
  it('leaves out what it cannot read, and counts it', () => expect(got('').unreadable).toBe(1));
});
