/** Rotation leaves nothing out for good. */
import { expect, it } from 'vitest';
import { partOf, turnFrom } from '../../rotation.ts';

const LIST = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

it('the parts of a list are the whole list, each entry once', () => {
  const parts = [0, 1, 2].flatMap((turn) => partOf(LIST, { turn, parts: 3 }));
  expect(parts.toSorted()).toEqual(LIST);
  expect(partOf(LIST, { turn: 'all', parts: 3 })).toEqual(LIST);
});

it('an entry that is appended leaves the others in their parts', () => {
  const longer = [...LIST, 'h'];
  for (const turn of [0, 1, 2])
    expect(partOf(longer, { turn, parts: 3 })).toEqual(expect.arrayContaining(partOf(LIST, { turn, parts: 3 })));
});

it('the commit chooses the part, unless ACTORLET_ROTATION does', () => {
  const commit = () => '0000000a5b2c';
  expect(turnFrom(undefined, commit)).toBe(10);
  expect(turnFrom('', commit)).toBe(10);
  expect(turnFrom('4', commit)).toBe(4);
  expect(turnFrom('all', commit)).toBe('all');
  expect(() => turnFrom('some', commit)).toThrow('ACTORLET_ROTATION is "some": it must be a number, or "all"');
});
