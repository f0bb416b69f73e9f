import { describe, expect, it } from 'vitest';
import { copyData } from '../../src/machines/data/copyData.ts';
import { sameData } from '../../src/machines/data/sameData.ts';
import { canonicalJson } from '../../src/machines/pod/names.ts';

const VALUES: readonly unknown[] = [
  undefined,
  null,
  0,
  -0,
  1,
  '',
  '1',
  true,
  false,
  [],
  {},
  [null],
  [undefined],
  [[]],
  [1, 2],
  [2, 1],
  [1, 2, null],
  { 0: 1, 1: 2 },
  { a: null },
  { a: undefined },
  { a: undefined, b: 1 },
  { b: 1 },
  { a: 1, b: 2 },
  { b: 2, a: 1 },
  { a: 1, c: 2 },
  { a: { b: [{ c: 'd', e: undefined }] } },
  { a: { b: [{ c: 'd' }] } },
  { a: { b: [{ c: 'd', e: null }] } },
];

describe('two pieces of data are the same', () => {
  it('where their canonical JSON is, for every pair of a list of them', () => {
    for (const a of VALUES) {
      for (const b of VALUES) {
        const expected = canonicalJson(a ?? null) === canonicalJson(b ?? null);
        expect(sameData(a, b), `${canonicalJson(a)} and ${canonicalJson(b)}`).toBe(expected);
      }
    }
  });

  it('and a field of a prototype is no field', () => {
    expect(sameData({ constructor: Object }, {})).toBe(false);
    expect(sameData({}, { toString: 'x' })).toBe(false);
  });
});

describe('a copy of plain data', () => {
  it('says the same, and shares no object and no list with it', () => {
    for (const value of VALUES) expect(copyData(value)).toEqual(value);
    const value = JSON.parse('{"a":[{"b":1}],"__proto__":{"c":[2]},"d":null}') as Record<string, unknown>;
    const copy = copyData(value);
    expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    const objectsOf = (it: unknown): unknown[] =>
      typeof it === 'object' && it !== null ? [it, ...Object.values(it).flatMap(objectsOf)] : [];
    const there = new Set(objectsOf(value));
    expect(objectsOf(copy).filter((it) => there.has(it))).toEqual([]);
  });
});
