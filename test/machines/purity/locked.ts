/**
 * A lock on the environment. While it is on, every port, registry call, message to an actor, clock and random number of
 * the process throws, and the attempt is noted. A pure step of a statechart passes under it.
 */
import { Actor } from 'xstate';
import { RegistryCore } from '../../../src/actors/supervision/registry.ts';
import type { Ports } from '../../../src/ports/ports.ts';

let locked = false;
let noted: string[] = [];

function guard(what: string): void {
  if (!locked) return;
  noted.push(what);
  throw new Error(`a pure step used ${what}`);
}

type Callable = (...args: unknown[]) => unknown;

/** Digests of bytes: the answer follows from the argument alone. */
const PURE = /^entropy\.(md5Hex|sha256Hex)$/;
/** These answer with an object that is a port of its own. */
const MAKERS = /^(log|metrics)(\.|$)/;

function watched(port: object, name: string): object {
  return new Proxy(port, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key);
      if (typeof own !== 'function' || typeof key !== 'string') return own;
      const what = `${name}.${key}`;
      return (...args: unknown[]) => {
        if (!PURE.test(what)) guard(what);
        const result: unknown = Reflect.apply(own, target, args);
        return MAKERS.test(what) && typeof result === 'object' && result !== null ? watched(result, what) : result;
      };
    },
  });
}

/** The same ports, which answer to the lock. */
export function lockable(ports: Ports): Ports {
  return Object.fromEntries(
    Object.entries(ports).map(([name, port]) => [name, typeof port === 'object' && port !== null ? watched(port, name) : port]),
  ) as unknown as Ports;
}

/** Methods that reach other actors, or read what they publish, and the globals that lint keeps out of the sources. */
const DOORS: readonly [name: string, owner: object, keys: readonly string[]][] = [
  ['registry', RegistryCore.prototype, ['send', 'ask', 'askAs', 'post', 'publish', 'read', 'watch']],
  ['actor', Actor.prototype, ['send', 'start', 'stop']],
  ['Date', Date, ['now']],
  ['Math', Math, ['random']],
];

/** Runs `step` under the lock. `used`: what it tried to use, also where it caught the error. */
export function underLock<T>(step: () => T): { used: string[]; result?: T; error?: unknown } {
  const kept = DOORS.flatMap(([name, owner, keys]) =>
    keys.map((key) => ({ owner, key, own: Reflect.get(owner, key) as Callable, what: `${name}.${key}` })),
  );
  for (const { owner, key, what } of kept) Reflect.set(owner, key, () => guard(what));
  noted = [];
  locked = true;
  try {
    return { used: noted, result: step() };
  } catch (error) {
    return { used: noted, error };
  } finally {
    locked = false;
    for (const { owner, key, own } of kept) Reflect.set(owner, key, own);
  }
}
