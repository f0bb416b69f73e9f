import { describe, expect, it } from 'vitest';
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
