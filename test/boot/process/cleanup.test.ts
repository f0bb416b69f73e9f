import { expect, it } from 'vitest';
import { Cleanup } from '../../../src/boot/cleanup.ts';

it('undoes in reverse order, once, all of it whatever throws, and tells the first error', () => {
  const undone: string[] = [];
  const cleanup = new Cleanup();
  const thing = { [Symbol.dispose]: () => void undone.push('thing') };
  expect(cleanup.use(thing)).toBe(thing);
  for (const name of ['second', 'third'])
    cleanup.defer(() => {
      undone.push(name);
      throw new Error(name);
    });
  expect(() => cleanup[Symbol.dispose]()).toThrow('third');
  expect(undone).toEqual(['third', 'second', 'thing']);
  cleanup[Symbol.dispose]();
  expect(undone).toHaveLength(3);
});
