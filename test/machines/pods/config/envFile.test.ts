/** Variables from files that other containers of the pod wrote (`fileKeyRef`): what a file says, and what becomes of one that says nothing. */
import { describe, expect, it } from 'vitest';
import type { FileKeyRef } from '../../../../src/machines/kube/podTable.ts';
import { containerEnv } from '../../../../src/machines/pods/workers/config/env.ts';
import { type EnvFile, envFileKey, envFileValue } from '../../../../src/machines/pods/workers/config/envFile.ts';
import { container, FACTS, pod } from '../fixtures.ts';
import answers from './envFileAnswers.json' with { type: 'json' };

const bytes = (text: string) => new TextEncoder().encode(text);
const PATH = '/pods/u/volumes/kubernetes.io~empty-dir/data/app.env';
const parsed = (text: string, key = 'A') => {
  const result = envFileValue(bytes(text), key);
  return result.ok ? result.value : result.message;
};

describe('a file of variables', () => {
  /** `line`: the one that a mistake is on, as the reference says it. */
  type Recorded = { file: string; key: string } & ({ value: string } | { line: number });
  it('is read as the reference reads it, value by value and mistake by mistake', () => {
    const differences = (answers as Recorded[]).filter((a) => {
      const said = parsed(a.file, a.key);
      if ('line' in a) return typeof said !== 'string' || !said.startsWith(`couldn't parse env file: line ${a.line} `);
      // The reference does not tell a name that is not there from one without a value.
      return (said ?? '') !== a.value;
    });
    expect(differences).toEqual([]);
  });

  it.each([
    ['a value in single quotes', "B='2'\nA='1 2  3'\n", '1 2  3'],
    ['white space before the name left out', " \t A='1'\t \n", '1'],
    ['other quotes and dollars as they stand', `A='"$(B)" \\n'`, '"$(B)" \\n'],
    ['a comment behind the value', "A='b=c # d' # e", 'b=c # d'],
    ['the first of two', "A='1'\nA='2'", '1'],
    ['nothing where white space follows the =', "A= '1'\nA='2'", ''],
    ['lines of Windows', "B='2'\r\nA='1\r\n2'\r\n", '1\n2'],
    ['a value over several lines', "A='1\n\n# 2'\nB='4'", '1\n\n# 2'],
    ['no such name', "AA='1'\na='2'\n", null],
    ['no line at all', '', null],
    ['what stands before a mistake', "A='1'\nnonsense", '1'],
  ])('has %s', (_, text, value) => {
    expect(parsed(text)).toBe(value);
  });

  it.each([
    ['no =', "B='1'\nnonsense\nA='1'", 'line 2 has no ='],
    ['no name', "='1'", 'line 1 has no name before ='],
    ['white space before the =', "A ='1'", 'line 1 has white space before ='],
    ['a value as kubelets before 1.35 took it', 'A=1', 'line 1 has a value that is not in single quotes'],
    ['more than a comment behind the value', "A='it'\\''s'", 'line 1 has something behind the closing quote'],
    ['a quote that is not closed', "B=''\nA='1\n2\n", 'line 2 begins a value whose quote is not closed'],
    ['a zero byte', "A='1\0'", 'line 1 has a zero byte'],
  ])('is refused for %s, with the line and nothing of what it says', (_, text, why) => {
    expect(parsed(text)).toBe(`couldn't parse env file: ${why}`);
  });

  // As measured of the reference: 65,535 bytes with a carriage return are a line, one more is none.
  const filled = (before: string, bytesOfLine: number, after = '') =>
    `${before}${'x'.repeat(bytesOfLine - before.length - after.length)}${after}`;
  it.each([
    ['of a value', (n: number) => `${filled("A='", n, "'")}\n`],
    ['of a value at the end', (n: number) => filled("A='", n, "'")],
    ['of Windows', (n: number) => `${filled("A='", n, "'\r")}\n`],
    ['of a comment', (n: number) => `${filled('#', n)}\nA='1'`],
  ])('has lines of at most 65,535 bytes: one %s', (_, file) => {
    expect(envFileValue(bytes(file(65_535)), 'A')).toMatchObject({ ok: true });
    expect(parsed(file(65_536))).toBe("couldn't parse env file: line 1 is longer than 65535 bytes");
  });
  it('ends at a line that is too long, also within a value', () => {
    expect(parsed(`A='1'\n${filled('#', 65_536)}`)).toBe('1');
    expect(parsed(`B='\n${filled('#', 65_536)}'\nA='1'`)).toBe("couldn't parse env file: line 1 begins a value whose quote is not closed");
  });
  it('counts the bytes of a line, not its characters', () => {
    expect(parsed(`A='${'ä'.repeat(32_765)}'`)).toHaveLength(32_765);
    expect(parsed(`A='${'ä'.repeat(32_766)}'`)).toContain('longer than 65535 bytes');
  });

  it('may hold what is no text: in a value it is U+FFFD', () => {
    const file = new Uint8Array([...bytes('# '), 0xff, ...bytes("\nA='1'\nB='"), 0xff, ...bytes("'\nC='3'\n")]);
    expect(envFileValue(file, 'A')).toEqual({ ok: true, value: '1' });
    expect(envFileValue(file, 'B')).toEqual({ ok: true, value: '\ufffd' });
    expect(envFileValue(file, 'C')).toEqual({ ok: true, value: '3' });
  });
});

describe('a variable from a file', () => {
  const ref = (more: Partial<FileKeyRef> = {}): FileKeyRef => ({ volumeName: 'data', path: 'app.env', key: 'A', ...more });
  const env = (file: EnvFile | undefined, more: Partial<FileKeyRef> = {}) => {
    const files = new Map(file === undefined ? [] : [[envFileKey(ref()), file]]);
    const variables = [
      { name: 'X', value: 'before' },
      { name: 'X', valueFrom: { fileKeyRef: ref(more) } },
      { name: 'Y', value: '<$(X)>' },
    ];
    const result = containerEnv({ pod: pod({}), container: container('main', { env: variables }), podIPs: [], facts: FACTS, files });
    return result.ok ? Object.fromEntries(result.value.map(({ key, value }) => [key, value])) : result.message;
  };
  const found = (text: string): EnvFile => ({ kind: 'found', path: PATH, content: bytes(text) });

  it('has the value as it is written, and others may refer to it', () => {
    expect(env(found("A='$(Y) 1'"))).toEqual({ X: '$(Y) 1', Y: '<$(Y) 1>' });
  });

  it.each([
    ['a key that is not there', found("B='1'"), `environment variable key "A" not found in file "${PATH}"`],
    ['a key without a value', found("A=''"), `environment variable key "A" not found in file "${PATH}"`],
    ['a file that is not there', { kind: 'absent', path: PATH } as const, `couldn't parse env file: there is no file "${PATH}"`],
  ])('is refused for %s, unless it is optional: then what was there stays', (_, file, message) => {
    expect(env(file)).toBe(message);
    expect(env(file, { optional: true })).toEqual({ X: 'before', Y: '<before>' });
  });

  it.each([
    ['a volume that no container mounts', undefined, 'cannot find the volume "data" referenced by FileKeyRef'],
    ['a file that cannot be read', { kind: 'unreadable', why: 'it leads out' } as const, "couldn't parse env file: it leads out"],
    ['a mistake in the file', found('nonsense'), "couldn't parse env file: line 1 has no ="],
  ])('is refused for %s, optional or not', (_, file, message) => {
    expect(env(file)).toBe(message);
    expect(env(file, { optional: true })).toBe(message);
  });
});
