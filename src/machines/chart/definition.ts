/** A state machine as plain data: what its picture, its export and the inspectors are drawn from. Pure. */

export interface ChartTransition {
  /** Unique within the chart: source state, event, place among the transitions of that event. */
  id: string;
  /** As xstate names it; '' for eventless. */
  event: string;
  /** For people: `after 1s`, `done: relist`. */
  label: string;
  guard: string;
  /** Ids of states; none: the state stays. */
  targets: readonly string[];
  actions: readonly string[];
  reenter: boolean;
  /** What it does, in words; absent: the machine does not say. */
  does?: string;
}
export interface ChartState {
  id: string;
  key: string;
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** Id of the first child; '' where there is none. */
  initial: string;
  /** From `meta`; '' where it is computed or missing. */
  reason: string;
  message: string;
  entry: readonly string[];
  exit: readonly string[];
  invokes: readonly { id: string; src: string }[];
  transitions: readonly ChartTransition[];
  states: readonly ChartState[];
}
export interface Chart {
  id: string;
  root: ChartState;
}

/** The state and all in it. */
export function statesOf(state: ChartState): ChartState[] {
  return [state, ...state.states.flatMap(statesOf)];
}

/** Where a machine is always the same: its one state, which takes all its messages. Null: it has several. */
export function onlyState({ root }: Chart): ChartState | null {
  if (root.states.length === 0) return root;
  const [only, ...others] = root.states;
  return only !== undefined && others.length === 0 && only.states.length === 0 && root.transitions.length === 0 ? only : null;
}

/** States of one chart; ours have some tens. The rest of a larger one is left out. */
const STATES_MAX = 400;
/** Longest name or text. */
const TEXT_CHARS_MAX = 300;

interface NodeLike {
  id: string;
  key: string;
  type: ChartState['type'];
  meta?: unknown;
  entry?: readonly unknown[];
  exit?: readonly unknown[];
  invoke?: readonly { id?: unknown; src?: unknown }[];
  initial?: { target?: readonly { id: string }[] } | undefined;
  transitions?: ReadonlyMap<string, readonly TransitionLike[]>;
  always?: readonly TransitionLike[];
  states?: Readonly<Record<string, NodeLike>>;
}
export interface TransitionLike {
  eventType?: string;
  source?: { id: string };
  target?: readonly { id: string }[] | undefined;
  guard?: unknown;
  actions?: readonly unknown[];
  reenter?: boolean;
  description?: unknown;
}

/** The chart of an actor's logic; null for what is no machine (promises, callbacks). */
export function chartOf(logic: unknown): Chart | null {
  const root = (logic as { root?: NodeLike } | null)?.root;
  if (root === undefined || typeof root.id !== 'string' || root.states === undefined) return null;
  const budget = { left: STATES_MAX };
  return { id: root.id, root: stateOf(root, budget) };
}

/** The id that {@link chartOf} gives a transition which xstate has just taken; null for one it does not know. */
export function transitionId(t: TransitionLike): string | null {
  const source = t.source as NodeLike | undefined;
  if (source === undefined) return null;
  const event = t.eventType ?? '';
  const among = event === '' ? source.always : source.transitions?.get(event);
  const index = among?.indexOf(t) ?? -1;
  return index < 0 ? null : idOf(source.id, event, index);
}

function idOf(source: string, event: string, index: number): string {
  return `${source}|${event}|${index}`;
}

function stateOf(node: NodeLike, budget: { left: number }): ChartState {
  budget.left -= 1;
  const meta = (node.meta ?? {}) as { reason?: unknown; message?: unknown };
  const invokes = (node.invoke ?? []).map((i) => ({ id: text(i.id), src: nameOf(i.src) }));
  const transitions = [...(node.transitions ?? [])].flatMap(([event, list]) =>
    list.map((t, i) => transitionOf(t, { node, event, i, invokes })),
  );
  const always = (node.always ?? []).map((t, i) => transitionOf(t, { node, event: '', i, invokes }));
  const states: ChartState[] = [];
  for (const child of Object.values(node.states ?? {})) if (budget.left > 0) states.push(stateOf(child, budget));
  return {
    id: text(node.id),
    key: text(node.key),
    type: node.type,
    initial: node.initial?.target?.[0]?.id ?? '',
    reason: typeof meta.reason === 'string' ? text(meta.reason) : '',
    message: typeof meta.message === 'string' ? text(meta.message) : '',
    entry: (node.entry ?? []).map(nameOf),
    exit: (node.exit ?? []).map(nameOf),
    invokes,
    // xstate lists eventless transitions in its map too.
    transitions: [...transitions.filter((t) => t.event !== ''), ...always],
    states,
  };
}

function transitionOf(
  t: TransitionLike,
  at: { node: NodeLike; event: string; i: number; invokes: readonly { id: string; src: string }[] },
): ChartTransition {
  return {
    id: idOf(at.node.id, at.event, at.i),
    event: text(at.event),
    label: eventLabel(at.event, at.invokes),
    guard: t.guard === undefined ? '' : nameOf(t.guard),
    targets: (t.target ?? []).map((s) => s.id),
    actions: (t.actions ?? []).map(nameOf),
    reenter: t.reenter === true,
    ...(typeof t.description === 'string' ? { does: text(t.description) } : {}),
  };
}

/** Internal event names in words: `xstate.after.1000.x.y` is `after 1s`. */
export function eventLabel(event: string, invokes: readonly { id: string; src: string }[] = []): string {
  if (event === '') return 'always';
  const after = /^xstate\.after\.([^.]+)\./.exec(event);
  if (after !== null) return `after ${delayText(after[1] ?? '')}`;
  const ended = /^xstate\.(done|error)\.actor\.(.+)$/.exec(event);
  if (ended !== null) {
    const src = invokes.find((i) => i.id === ended[2])?.src;
    // An actor that an action spawned has its id alone.
    const name = src ?? (/^[a-z][A-Za-z]*$/.test(ended[2] ?? '') ? ended[2] : '');
    return `${ended[1]}${name === '' || name === 'inline' ? '' : `: ${name}`}`;
  }
  if (event.startsWith('xstate.done.state.')) return 'done';
  if (event === 'xstate.init') return 'start';
  if (event === 'xstate.stop') return 'stop';
  return text(event);
}

function delayText(delay: string): string {
  const ms = Number(delay);
  if (!Number.isFinite(ms)) return text(delay);
  return ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
}

/** The name of an action, a guard or an actor source; `inline` where it has none. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return text(value);
  if (typeof value === 'function') return builtIn(value);
  if (typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string') return text(value.type);
  return 'inline';
}
function builtIn(fn: { name: string; type?: unknown }): string {
  // `assign`, `raise` and the like carry their kind: xstate.assign.
  if (typeof fn.type === 'string' && fn.type.startsWith('xstate.')) return fn.type.slice('xstate.'.length);
  return 'inline';
}

function text(value: unknown): string {
  const all = typeof value === 'string' ? value : '';
  return all.length > TEXT_CHARS_MAX ? `${all.slice(0, TEXT_CHARS_MAX - 1)}…` : all;
}
