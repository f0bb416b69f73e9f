/** One machine for all actors of a kind. What is one actor's own hangs on a small object that inherits from it. */
import type { AnyStateMachine } from 'xstate';
import { READING, type Read, withFacts } from './facts.ts';

const IO = Symbol('io');
const READ = Symbol('read');
export const NOTE = Symbol('note');

/** All of one kind have one hidden class. */
interface One {
  readonly [IO]: object;
  readonly [READ]: Read | null;
  /** Hears the type of each event before the machine takes it. */
  [NOTE]: ((type: string) => void) | null;
}

type Transition = (snapshot: unknown, event: { type: string }, scope: unknown) => unknown;
type Initial = (scope: { system: object }, input: unknown) => unknown;

/** What {@link oneOf} inherits from. `begins`: an actor with these effects takes its first step. */
export function kindOf(machine: AnyStateMachine, begins: (system: object, io: object) => void): object {
  const step = machine.transition as unknown as Transition;
  const begin = machine.getInitialSnapshot as unknown as Initial;
  const kind = Object.create(machine) as object;
  const methods = {
    transition(this: One, snapshot: object, event: { type: string }, scope: unknown): unknown {
      this[NOTE]?.(event.type);
      const read = this[READ];
      return read === null ? step(snapshot, event, scope) : withFacts(read(event, snapshot), () => step(snapshot, event, scope));
    },
    getInitialSnapshot(this: One, scope: { system: object }, input: unknown): unknown {
      begins(scope.system, this[IO]);
      const read = this[READ];
      return read === null ? begin(scope, input) : withFacts(read(), () => begin(scope, input));
    },
  };
  // For tools, which take the machine and its reader apart, and wire them anew.
  Object.defineProperty(kind, READING, {
    get(this: One) {
      return this[READ] === null ? undefined : { machine: oneOf(kind, this[IO], null), read: this[READ] };
    },
    set(value: unknown) {
      Object.defineProperty(this, READING, { value });
    },
  });
  return Object.assign(kind, methods);
}

export function oneOf(kind: object, io: object, read: Read | null): AnyStateMachine {
  const own: One = { [IO]: io, [READ]: read, [NOTE]: null };
  return Object.assign(Object.create(kind) as AnyStateMachine, own);
}
