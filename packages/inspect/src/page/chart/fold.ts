/** Large charts fold: a compound state that is closed is one box, and the transitions of what is in it are its own. Pure. */
import { type ChartState, statesOf } from '@actorlet/kubelet/machines/chart/definition.ts';

export interface Folded {
  root: ChartState;
  /** By closed state: how many states are in it. */
  inside: ReadonlyMap<string, number>;
}

/** The box from which transitions of the root are drawn: they can be taken in every state. */
export function anyStateOf(root: ChartState): string {
  return `${root.id}|any`;
}

/** States that can be closed. */
export function compoundsOf(root: ChartState): ChartState[] {
  return statesOf(root).filter((s) => s !== root && s.states.length > 0);
}

/** The states around one, the outermost first, and it itself. */
export function pathTo(root: ChartState, id: string): readonly ChartState[] {
  if (root.id === id) return [root];
  const below = root.states.map((s) => pathTo(s, id)).find((path) => path.length > 0);
  return below === undefined ? [] : [root, ...below];
}

export function fold(root: ChartState, open: ReadonlySet<string>): Folded {
  const isClosed = (s: ChartState): boolean => s !== root && s.states.length > 0 && !open.has(s.id);
  const shownAs = new Map<string, string>();
  const mark = (s: ChartState, within: string): void => {
    shownAs.set(s.id, within || s.id);
    for (const child of s.states) mark(child, within || (isClosed(s) ? s.id : ''));
  };
  mark(root, '');
  const inside = new Map<string, number>();
  const transitionsOf = (s: ChartState): ChartState['transitions'] =>
    s.transitions.map((t) => ({ ...t, targets: [...new Set(t.targets.flatMap((id) => shownAs.get(id) ?? []))] }));
  const drawn = (s: ChartState): ChartState => {
    if (!isClosed(s)) return { ...s, transitions: transitionsOf(s), states: s.states.map(drawn) };
    const all = statesOf(s);
    inside.set(s.id, all.length - 1);
    // Steps from one state to another in it are not seen.
    const leaving = all.flatMap(transitionsOf).filter((t) => t.targets.some((id) => id !== s.id));
    return { ...s, initial: '', transitions: leaving, states: [] };
  };
  const whole = drawn(root);
  const ofRoot = whole.transitions.filter((t) => t.targets.some((id) => id !== root.id));
  if (ofRoot.length === 0) return { root: whole, inside };
  const anyState: ChartState = {
    ...{ id: anyStateOf(root), key: 'any state', type: 'atomic', initial: '', reason: '', message: 'Whichever state it is in.' },
    ...{ entry: [], exit: [], invokes: [], transitions: ofRoot, states: [] },
  };
  return { root: { ...whole, transitions: [], states: [anyState, ...whole.states] }, inside };
}
