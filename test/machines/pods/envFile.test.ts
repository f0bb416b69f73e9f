/** Variables from files that other containers of the pod wrote (`fileKeyRef`): what a file says, and what becomes of one that says nothing. */
import { describe, expect, it } from 'vitest';
import { containerEnv } from '../../../src/machines/pods/workers/config/env.ts';
import { type EnvFile, envFileKey, envFileValue, type FileKeyRef } from '../../../src/machines/pods/workers/config/envFile.ts';
import { container, FACTS, pod } from './fixtures.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const PATH = '/pods/u/volumes/kubernetes.io~empty-dir/data/app.env';
const parsed = (text: string, key = 'A') => {
  const result = envFileValue(bytes(text), key);
  return result.ok ? result.value : result.message;
};

describe('a file of variables', () => {
  it.each([
    ['a value up to the end of the line', 'B=2\nA=1 2  3\n', '1 2  3'],
    ['white space around everything left out', ' \t A \t= 1\t \n', '1'],
    ['quotes as they stand', `A="1 '2'"`, `"1 '2'"`],
    ['a second = and a # as part of the value', 'A=b=c # d', 'b=c # d'],
    ['the first of two', 'A=1\nA=2', '1'],
    ['comments and blank lines without meaning', '# A=0\n\n   \n  # A=0\nA=1', '1'],
    ['lines of Windows', 'B=2\r\nA=1\r\n', '1'],
    ['a value over several lines, one space between', 'A=1 \\\n  2\\\n\t3\nB=4', '1 2 3'],
    ['the line after a continued one', 'B=1 \\\n 2\nA=3', '3'],
    ['an empty value', 'A=\n', ''],
    ['no such name', 'AA=1\na=2\n', null],
    ['no line at all', '', null],
    ['what stands before a mistake', 'A=1\nnonsense', '1'],
  ])('has %s', (_, text, value) => {
    expect(parsed(text)).toBe(value);
  });

  it.each([
    ['no =', 'B=1\nnonsense\nA=1', 'line 2 is not NAME=VALUE'],
    ['no name', '=1', 'line 1 is not NAME=VALUE'],
    ['a blank line in the middle', 'B=1\\\n\nA=2', 'line 2 is blank where the line before goes on'],
    ['a comment in the middle', 'B=1\\\n# b\nA=2', 'line 2 is a comment where the line before goes on'],
    ['an end in the middle', 'A=1\\\n', 'line 1 goes on, and the file ends'],
    ['a zero byte', 'A=1\0', 'line 1 has a zero byte'],
  ])('is refused for %s, with the line and nothing of what it says', (_, text, why) => {
    expect(parsed(text)).toBe(`couldn't parse env file: ${why}`);
  });

  it('is refused when it is not text', () => {
    expect(envFileValue(new Uint8Array([0x41, 0x3d, 0xff]), 'A')).toEqual({
      ok: false,
      message: "couldn't parse env file: it is not UTF-8 text",
    });
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
    expect(env(found('A=$(Y) 1'))).toEqual({ X: '$(Y) 1', Y: '<$(Y) 1>' });
  });

  it.each([
    ['a key that is not there', found('B=1'), `environment variable key "A" not found in file "${PATH}"`],
    ['a key without a value', found('A='), `environment variable key "A" not found in file "${PATH}"`],
    ['a file that is not there', { kind: 'absent', path: PATH } as const, `couldn't parse env file: there is no file "${PATH}"`],
  ])('is refused for %s, unless it is optional: then what was there stays', (_, file, message) => {
    expect(env(file)).toBe(message);
    expect(env(file, { optional: true })).toEqual({ X: 'before', Y: '<before>' });
  });

  it.each([
    ['a volume that no container mounts', undefined, 'cannot find the volume "data" referenced by FileKeyRef'],
    ['a file that cannot be read', { kind: 'unreadable', why: 'it leads out' } as const, "couldn't parse env file: it leads out"],
    ['a mistake in the file', found('nonsense'), "couldn't parse env file: line 1 is not NAME=VALUE"],
  ])('is refused for %s, optional or not', (_, file, message) => {
    expect(env(file)).toBe(message);
    expect(env(file, { optional: true })).toBe(message);
  });
});
