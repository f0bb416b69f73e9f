/**
 * Machines without actors: somebody keeps state and context of thousands, and takes each step here. Steps are xstate's own, in one
 * inert scope for all. xstate's `transition()` makes an actor for each step, which costs five times as much.
 */
import type {
  ActionExecutor,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  ContextFrom,
  EventFromLogic,
  InspectionEvent,
  StateValue,
} from 'xstate';

export type Inspect = (event: InspectionEvent) => void;
export type TakenTransition = Extract<InspectionEvent, { type: '@xstate.microstep' }>['_transitions'][number];

/** An action that changes no context, as a machine declares it. */
interface Act {
  type: string;
  params?: unknown;
}

interface KeptStep<M extends AnyStateMachine, A extends Act> {
  /** Key of the innermost state. */
  readonly state: string;
  readonly context: ContextFrom<M>;
  /** In their order. Nobody has carried them out. */
  readonly actions: readonly A[];
  /** The transition that led into `state`; null: it is the state of before. */
  readonly taken: TakenTransition | null;
}

/** `state`: the key of an innermost state, which no two of the machine may share. `inspect` hears of the step as of an actor's. */
type TakeStep<M extends AnyStateMachine, A extends Act> = (
  at: { state: string; context: ContextFrom<M> },
  event: EventFromLogic<M>,
  inspect?: Inspect | null,
) => KeptStep<M, A>;

export function stepsOf<M extends AnyStateMachine, A extends Act>(machine: M): TakeStep<M, A> {
  const places = placesOf(machine);
  let actions: A[] = [];
  let taken: TakenTransition | null = null;
  let inspect: Inspect | null = null;
  const self = { logic: machine };
  const actionExecutor: ActionExecutor = ({ type, params }) => void actions.push({ type, params } as A);
  const seen: Inspect = (event) => {
    if (event.type !== '@xstate.microstep') return;
    for (const t of event._transitions) if ((t.target?.length ?? 0) > 0) taken = t;
    inspect?.(event);
  };
  const scope = { self, actionExecutor, system: { _sendInspectionEvent: seen } } as unknown as AnyActorScope;
  return ({ state, context }, event, watch = null) => {
    const place = places.get(state);
    if (place === undefined) throw new Error(`${machine.id} has no innermost state ${state}`);
    [actions, taken, inspect] = [[], null, watch];
    const next = machine.transition({ ...place, context } as AnyMachineSnapshot, event, scope) as AnyMachineSnapshot;
    return { state: innermost(next), context: next.context as ContextFrom<M>, actions, taken };
  };
}

/** Where the inspection of an actor is told of what happens in its system. */
export function inspectionOf(system: object): Inspect {
  const { _sendInspectionEvent: send } = system as { _sendInspectionEvent?: Inspect };
  if (send === undefined) throw new Error('this version of xstate has no inspection of a system');
  return send;
}

function innermost({ _nodes }: AnyMachineSnapshot): string {
  return _nodes.find((node) => node.type === 'atomic' || node.type === 'final')?.key ?? '';
}

/** A snapshot of each innermost state. Its context is another one in each step. */
function placesOf(machine: AnyStateMachine): ReadonlyMap<string, AnyMachineSnapshot> {
  const found = new Map<string, AnyMachineSnapshot>();
  const look = (node: AnyStateMachine['root']): void => {
    for (const child of Object.values(node.states)) look(child);
    if (Object.keys(node.states).length > 0) return;
    if (found.has(node.key)) throw new Error(`${machine.id} has two states ${node.key}`);
    const value = node.path.reduceRight<StateValue | null>((inner, key) => (inner === null ? key : { [key]: inner }), null);
    found.set(node.key, machine.resolveState({ value: value ?? {}, context: {} }) as AnyMachineSnapshot);
  };
  look(machine.root);
  return found;
}
