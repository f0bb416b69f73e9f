/**
 * Host names that probes and hooks dial. The process looks up two names at a time (libuv gives that half of its four threads),
 * and a call that hangs goes on when its probe has given up. So each name is asked for once, and of those two at a time: the
 * node's own names come next, however often names that nobody answers for are probed.
 */
import dns, { type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { AtOnce } from '../../../ports/turns.ts';

const NAMES_AT_ONCE = 2;
/** It is on every machine, so it waits for no other name. */
const LOCALHOST: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** @param system Rejects where there is no address. */
export function sharedLookup(system: (name: string) => Promise<LookupAddress[]>): LookupFunction {
  const turns = new AtOnce(NAMES_AT_ONCE);
  const running = new Map<string, Promise<LookupAddress[]>>();
  const find = (name: string): Promise<LookupAddress[]> => {
    if (name === 'localhost') return Promise.resolve(LOCALHOST);
    const found = running.get(name) ?? turns.run('', () => system(name)).finally(() => running.delete(name));
    running.set(name, found);
    return found;
  };
  return (name, { all }, done) => {
    find(name).then(
      (found) => (all === true ? done(null, found) : done(null, found[0]?.address ?? '', found[0]?.family)),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
}

export const lookup = sharedLookup(
  (name) =>
    new Promise((resolve, reject) => {
      dns.lookup(name, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error)));
    }),
);
