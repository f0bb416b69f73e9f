/**
 * Steps that machines took in a running node, and the same steps once more as pure functions: xstate's
 * `initialTransition`, `transition` and `getNextTransitions`, with frozen contexts, while the environment is locked.
 */
import {
  type AnyActorLogic,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  createMachine,
  getNextTransitions,
  type InspectionEvent,
  initialTransition,
  StateMachine,
  transition,
} from 'xstate';
import { reading, readingOf, withFacts } from '../../../src/machines/xstate/facts.ts';
import { provided } from '../../../src/machines/xstate/provide.ts';
import { dottedState } from '../../../src/machines/xstate/words.ts';
import { fingerprint, frozen } from './data.ts';
import { underLock } from './locked.ts';

interface Step {
  machine: AnyStateMachine;
  /** Null: the first step, on `event.input`. */
  before: AnyMachineSnapshot | null;
  event: { type: string; input?: unknown };
}

export interface Steps {
  see(e: InspectionEvent): void;
  /** Takes what was seen since the last call. */
  taken(): Step[];
  /** States seen so far, `MACHINE STATE`. */
  readonly states: ReadonlySet<string>;
}

/** Of one machine, state and type of event. */
const SAMPLES = 2;

export function recordSteps(): Steps {
  const last = new WeakMap<object, AnyMachineSnapshot>();
  const counts = new Map<string, number>();
  const states = new Set<string>();
  let kept: Step[] = [];
  const note = (id: string, { _nodes }: AnyMachineSnapshot): void => {
    for (const node of _nodes) if (Object.keys(node.states).length === 0) states.add(`${id} ${node.path.join('.')}`.trimEnd());
  };
  return {
    states,
    see(e) {
      const machine: unknown = Reflect.get(e.actorRef, 'logic');
      if (!(machine instanceof StateMachine)) return;
      if (e.type !== '@xstate.microstep' && e.type !== '@xstate.snapshot') return;
      note(machine.root.id, e.snapshot as AnyMachineSnapshot);
      if (e.type === '@xstate.microstep') return;
      const before = last.get(e.actorRef) ?? null;
      const after = e.snapshot as AnyMachineSnapshot;
      last.set(e.actorRef, after);
      if (before === null ? e.event.type !== 'xstate.init' : before.status !== 'active') return;
      const moved = `${before === null ? '' : dottedState(before.value)} ${dottedState(after.value)}`;
      const key = `${machine.root.id} ${moved} ${e.event.type.replace(/\.[^.]*(#|:).*$/, '')}`;
      const count = counts.get(key) ?? 0;
      if (count >= SAMPLES) return;
      counts.set(key, count + 1);
      kept.push({ machine, before, event: e.event });
    },
    taken() {
      const now = kept;
      kept = [];
      return now;
    },
  };
}

const PARENT = createActor(createMachine({}));

/** xstate's pure functions know no parent, and sending to it is an error. This machine has one, which never starts. */
function child(machine: AnyStateMachine): AnyStateMachine {
  const born = (scope: AnyActorScope): AnyActorScope => {
    Reflect.set(scope.self, '_parent', PARENT);
    return scope;
  };
  return Object.assign(Object.create(machine) as AnyStateMachine, {
    transition: (snapshot: never, event: never, scope: AnyActorScope) => machine.transition(snapshot, event, born(scope)),
    getInitialSnapshot: (scope: AnyActorScope, input: never) => machine.getInitialSnapshot(born(scope), input),
  });
}

/** The same machine. Actors that it starts get facts that were read before the lock: what they do with them is a step of theirs. */
function reared(machine: AnyStateMachine): AnyStateMachine {
  const actors = Object.entries(machine.implementations.actors).map(([name, logic]): [string, AnyActorLogic] => {
    const own = logic as AnyActorLogic;
    const reads = readingOf(own);
    if (reads !== null) {
      const facts = asData(reads.read());
      return [name, reading(reared(reads.machine), () => facts)];
    }
    return [name, own instanceof StateMachine ? reared(own) : own];
  });
  return provided(machine, { actors: Object.fromEntries(actors) });
}

/** Why this step is not pure; none where it is. */
export function impurities({ machine, before, event }: Step): string[] {
  const reads = readingOf(machine);
  // A machine that reads facts gets them before the lock, as plain values.
  const facts = reads === null ? null : asData(before === null ? reads.read() : reads.read(event, before));
  const grown = reared(reads?.machine ?? machine);
  const pure = child(grown);
  const run = () => {
    const seen = new Map<object, unknown>();
    const step = () => {
      if (before === null) return initialTransition(pure, frozen((event.input ?? {}) as object, seen));
      const context: unknown = frozen(before.context as unknown, seen);
      return transition(pure, { ...before, machine: grown, context } as never, frozen(event, seen) as never);
    };
    return facts === null ? step() : withFacts(frozen(facts, seen), step);
  };
  const first = underLock(run);
  const again = underLock(run);
  const found = [...new Set([...first.used, ...again.used])].map((what) => `uses ${what}`);
  // An error that follows from the lock is not another one.
  if (found.length === 0 && first.error !== undefined) found.push(`throws ${text(first.error)}`);
  else if (found.length === 0 && outcome(first.result) !== outcome(again.result)) found.push('answers the same step in two ways');
  if (before !== null) getNextTransitions(before);
  return found.map((what) => `${before === null ? '(start)' : dottedState(before.value)} on ${event.type}: ${what}`);
}

function outcome(result: ReturnType<typeof transition> | undefined): string {
  const [snapshot, actions] = result ?? [];
  const { value, context, status } = (snapshot ?? {}) as { value?: unknown; context?: unknown; status?: unknown };
  return fingerprint({
    value,
    context,
    status,
    actions: (actions ?? []).map(({ type, params }: { type: string; params?: unknown }) => ({ type, params })),
  });
}

function asData(facts: object): object {
  const names = new Set<string>();
  for (let at: object = facts; at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  return Object.fromEntries([...names].map((name) => [name, looked(Reflect.get(facts, name))]));
}

/** Getters of a plain object look at their environment too. */
function looked(value: unknown): unknown {
  const plain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return plain && Object.values(Object.getOwnPropertyDescriptors(value)).some((d) => d.get !== undefined) ? { ...value } : value;
}

function text(error: unknown): string {
  return error instanceof Error ? `${error.message} ${error.stack?.split('\n')[1] ?? ''}` : String(error);
}
