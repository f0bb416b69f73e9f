/** New versions of plain data that share with the old one what did not change. */
import { describe, expect, it } from 'vitest';
import { shareData, shareWithin } from '../../src/machines/data/sharedData.ts';

const version = (status: string) =>
  JSON.parse(`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"list":[{"a":1},{"b":[1,2]}]},"status":{"phase":"${status}"}}`);

describe('shared data', () => {
  it('keeps every part that says the same, and only those', () => {
    const before = version('Pending');
    const next = version('Running');
    const text = JSON.stringify(next);
    const shared = shareData(before, next);
    expect(JSON.stringify(shared)).toBe(text);
    expect(shared.metadata).toBe(before.metadata);
    expect(shared.spec).toBe(before.spec);
    expect(shared.status).not.toBe(before.status);
    expect(before.status).toEqual({ phase: 'Pending' });
  });

  it('changes neither of the two', () => {
    const frozen = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      for (const part of Object.values(value)) frozen(part);
      return Object.freeze(value);
    };
    const [before, next] = [frozen(version('Pending')), frozen(version('Running'))];
    expect(shareData(before, next)).toEqual(version('Running'));
    expect([before, next]).toEqual([version('Pending'), version('Running')]);
  });

  it('is the old object when nothing changed', () => {
    const before = version('Pending');
    expect(shareData(before, version('Pending'))).toBe(before);
  });

  it.each([
    ['a field more', '{"a":{"b":1},"c":1}', '{"a":{"b":1},"c":1,"d":2}'],
    ['a field less', '{"a":{"b":1},"c":1}', '{"a":{"b":1}}'],
    ['another field of the same number', '{"a":1}', '{"b":1}'],
    ['a longer list', '[1,{"a":1}]', '[1,{"a":1},2]'],
    ['a list in place of a mapping', '{"0":1}', '[1]'],
    ['null in place of a mapping', '{"a":{"b":1}}', '{"a":null}'],
    ['keys of the prototype', '{"__proto__":{"a":1},"constructor":1}', '{"__proto__":{"a":1},"constructor":2}'],
  ])('says what the new one says: %s', (_, before, next) => {
    expect(JSON.stringify(shareData(JSON.parse(before), JSON.parse(next)))).toBe(next);
  });

  it('does not run out of stack for data of very many levels', () => {
    const deep = (): unknown => JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
    expect(() => shareData(deep(), deep())).not.toThrow();
  });
});

describe('equal parts of one document', () => {
  const text = JSON.stringify({
    items: Array.from({ length: 4 }, (_, i) => ({ path: `file-${i % 2}`, fieldRef: { fieldPath: 'metadata.name', apiVersion: 'v1' } })),
    other: { fieldPath: 'metadata.name', apiVersion: 'v1' },
    list: [[{}], [{}]],
    big: { a: 1, b: 2, c: 3, d: 4, e: 5 },
    nothing: null,
  });

  it('are kept once where they are small, and say what they said', () => {
    const shared = shareWithin(JSON.parse(text));
    expect(JSON.stringify(shared)).toBe(text);
    expect(new Set(shared.items.map((i: { fieldRef: object }) => i.fieldRef))).toEqual(new Set([shared.other]));
    expect(shared.items[0].fieldRef).toBe(shared.other);
    expect(shared.items[0]).not.toBe(shared.items[1]);
  });

  it('leave a field named __proto__ a field', () => {
    const evil = `{"labels":{"__proto__":"${'x'.repeat(20)}","constructor":"y"},"deep":{"__proto__":{"a":{"b":1}}}}`;
    expect(JSON.stringify(shareWithin(JSON.parse(evil)))).toBe(evil);
    expect(({} as { a?: unknown }).a).toBeUndefined();
  });

  it('are not looked for in the depth', () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const parsed = JSON.parse(deep);
    expect(shareWithin(parsed)).toBe(parsed);
  });
});
