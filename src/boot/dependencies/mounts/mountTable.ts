/**
 * The mount table, read once for all who ask at the same time. A hundred pods that start or end together ask some hundred
 * times for a table of a thousand lines, which the kernel writes anew for each reader.
 */
import { readFileSync } from 'node:fs';
import { setImmediate as endOfTurn } from 'node:timers/promises';

/** As the kernel writes it: who looks for one path need not take all of it apart. */
export type MountTable = () => Promise<string>;

/** Everybody is given a table that was read after the question: a reading under way may have passed what was mounted since. */
export function createMountTable(read: () => Promise<string>): MountTable {
  let underWay: Promise<unknown> | null = null;
  let next: Promise<string> | null = null;
  return () => {
    next ??= (async () => {
      await underWay?.catch(() => undefined);
      // Answers and deadlines of a thousand calls can come in one turn of the event loop, each with a question.
      await endOfTurn();
      const mine = read();
      underWay = mine;
      next = null;
      try {
        return await mine;
      } finally {
        if (underWay === mine) underWay = null;
      }
    })();
    return next;
  };
}

/** The kernel gives a page of it at a time: read by the pool's threads, each page would cost more than what it takes to write it. */
export function ownMountTable(path = '/proc/self/mountinfo'): MountTable {
  return createMountTable(async () => readFileSync(path, 'utf8'));
}
