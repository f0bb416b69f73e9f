/** Places for requests under way: how many at once, in which order the others, and who gave up. */
import { expect, it } from 'vitest';
import { createSlots } from '../../../src/boot/dependencies/kube/slots.ts';

const never = new AbortController().signal;

it('lets so many in at once and the others one by one, in the order in which they came', async () => {
  const slots = createSlots(2);
  const [first, second] = [await slots.take(never), await slots.take(never)];
  const entered: string[] = [];
  const third = slots.take(never).then((leave) => {
    entered.push('third');
    return leave;
  });
  const fourth = slots.take(never).then((leave) => {
    entered.push('fourth');
    return leave;
  });
  await Promise.resolve();
  expect(entered).toEqual([]);
  first();
  // A place is released once, however often it is said.
  first();
  (await third)();
  await fourth;
  expect(entered).toEqual(['third', 'fourth']);
  second();
});

it('forgets who gave up waiting', async () => {
  const slots = createSlots(1);
  const leave = await slots.take(never);
  const abort = new AbortController();
  const waiting = slots.take(abort.signal);
  const next = slots.take(never);
  abort.abort(new Error('gave up'));
  await expect(waiting).rejects.toThrow('gave up');
  await expect(slots.take(AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
  leave();
  await next;
});
