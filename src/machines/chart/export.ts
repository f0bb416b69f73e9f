/** A chart in the forms that other tools read: Mermaid, a configuration for `createMachine`. Pure. */
import { type Chart, type ChartState, type ChartTransition, onlyState } from './definition.ts';

// ---- machine configuration -------------------------------------------------------------------------------------------

/** `v5`: for xstate 5 and Stately's editor. `v4`: for the classic inspector, which revives it with xstate 4. */
export type Dialect = 'v5' | 'v4';
type Config = Record<string, unknown>;

/** Plain JSON that `createMachine` takes; names stand for guards, actions and actors. */
export function configOf(chart: Chart, dialect: Dialect = 'v5'): Config {
  return stateConfig(chart.root, { dialect, root: true });
}

function stateConfig(state: ChartState, o: { dialect: Dialect; root?: boolean }): Config {
  const { dialect } = o;
  const config: Config = { id: state.id };
  if (state.type === 'parallel' || state.type === 'final' || state.type === 'history') config.type = state.type;
  const first = state.states.find((s) => s.id === state.initial);
  if (first !== undefined && state.type === 'compound') config.initial = first.key;
  if (state.reason !== '' || state.message !== '') config.meta = { reason: state.reason, message: state.message };
  if (state.message !== '') config.description = state.message;
  if (state.entry.length > 0) config.entry = state.entry.map((name) => actionOf(name, dialect));
  if (state.exit.length > 0) config.exit = state.exit.map((name) => actionOf(name, dialect));
  const invokes = state.invokes.map((invoke) => invokeConfig(invoke, state, dialect));
  if (invokes.length > 0) config.invoke = invokes;
  const plain = state.transitions.filter((t) => !isOfInvoke(t, state));
  const always = plain.filter((t) => t.event === '').map((t) => transitionConfig(t, dialect));
  if (always.length > 0) config.always = always;
  const after = grouped(
    plain.filter((t) => t.event.startsWith('xstate.after.')),
    (t) => /^xstate\.after\.([^.]+)\./.exec(t.event)?.[1] ?? t.event,
    dialect,
  );
  if (after !== null) config.after = after;
  const done = plain.filter((t) => t.event.startsWith('xstate.done.state.')).map((t) => transitionConfig(t, dialect));
  if (done.length > 0) config.onDone = done;
  const on = grouped(
    plain.filter((t) => t.event !== '' && !/^xstate\.(?:after|done\.state)\./.test(t.event)),
    (t) => t.event,
    dialect,
  );
  if (on !== null) config.on = on;
  if (state.states.length > 0) config.states = Object.fromEntries(state.states.map((s) => [s.key, stateConfig(s, { dialect })]));
  return config;
}

function invokeConfig(invoke: { id: string; src: string }, state: ChartState, dialect: Dialect): Config {
  const of = (kind: string) =>
    state.transitions.filter((t) => t.event === `xstate.${kind}.actor.${invoke.id}`).map((t) => transitionConfig(t, dialect));
  const [onDone, onError, onSnapshot] = [
    of('done'),
    of('error'),
    state.transitions.filter((t) => t.event === `xstate.snapshot.${invoke.id}`),
  ];
  return {
    id: invoke.id,
    src: invoke.src,
    ...(onDone.length > 0 ? { onDone } : {}),
    ...(onError.length > 0 ? { onError } : {}),
    ...(onSnapshot.length > 0 && dialect === 'v5' ? { onSnapshot: onSnapshot.map((t) => transitionConfig(t, dialect)) } : {}),
  };
}

function isOfInvoke({ event }: ChartTransition, state: ChartState): boolean {
  return state.invokes.some(
    ({ id }) => event === `xstate.done.actor.${id}` || event === `xstate.error.actor.${id}` || event === `xstate.snapshot.${id}`,
  );
}

function grouped(list: readonly ChartTransition[], keyOf: (t: ChartTransition) => string, dialect: Dialect): Config | null {
  const out = new Map<string, Config[]>();
  for (const t of list) out.set(keyOf(t), [...(out.get(keyOf(t)) ?? []), transitionConfig(t, dialect)]);
  return out.size === 0 ? null : Object.fromEntries(out);
}

function transitionConfig(t: ChartTransition, dialect: Dialect): Config {
  const config: Config = {};
  if (t.targets.length === 1) config.target = `#${t.targets[0]}`;
  if (t.targets.length > 1) config.target = t.targets.map((id) => `#${id}`);
  if (t.guard !== '') config[dialect === 'v5' ? 'guard' : 'cond'] = dialect === 'v5' ? { type: t.guard } : t.guard;
  if (t.actions.length > 0) config.actions = t.actions.map((name) => actionOf(name, dialect));
  if (dialect === 'v5' && t.reenter) config.reenter = true;
  if (dialect === 'v4' && !t.reenter && t.targets.length > 0) config.internal = true;
  return config;
}

function actionOf(name: string, dialect: Dialect): unknown {
  return dialect === 'v5' ? { type: name } : name;
}

// ---- Mermaid ---------------------------------------------------------------------------------------------------------

/** A `stateDiagram-v2`. Transitions that leave no state are left out; of a machine that is one state, they are all there is. */
export function mermaidOf(chart: Chart): string[] {
  const names = new Map<string, string>();
  const name = (id: string): string => {
    const known = names.get(id);
    if (known !== undefined) return known;
    // Ids of Mermaid are words; a number keeps two apart that differ in other characters only.
    const made = `${id.replaceAll(/[^A-Za-z0-9]/g, '_')}_${names.size}`;
    names.set(id, made);
    return made;
  };
  const { root } = chart;
  const only = onlyState(chart);
  if (only !== null) {
    const it = name(only.id);
    const loops = only.transitions.map((t) => `  ${it} --> ${it} : ${escaped(stepText(t))}`);
    return ['stateDiagram-v2', `  state "${escaped(only.key)}" as ${it}`, `  [*] --> ${it}`, ...loops];
  }
  // Regions, and transitions of the machine as a whole, need a state around them.
  const wrapped = root.type === 'parallel' || root.transitions.some((t) => t.targets.length > 0);
  const body = wrapped
    ? [`  state "${escaped(root.id)}" as ${name(root.id)}`, `  state ${name(root.id)} {`, ...bodyOf(root, '    ', name), '  }']
    : bodyOf(root, '  ', name);
  return ['stateDiagram-v2', ...body, ...edgesOf(root, name)];
}

function bodyOf(state: ChartState, indent: string, name: (id: string) => string): string[] {
  const lines: string[] = [];
  if (state.initial !== '' && state.type !== 'parallel') lines.push(`${indent}[*] --> ${name(state.initial)}`);
  state.states.forEach((child, i) => {
    if (i > 0 && state.type === 'parallel') lines.push(`${indent}--`);
    lines.push(`${indent}state "${escaped(child.key)}" as ${name(child.id)}`);
    if (child.states.length > 0) lines.push(`${indent}state ${name(child.id)} {`, ...bodyOf(child, `${indent}  `, name), `${indent}}`);
    if (child.type === 'final') lines.push(`${indent}${name(child.id)} --> [*]`);
  });
  return lines;
}

function edgesOf(state: ChartState, name: (id: string) => string): string[] {
  const own = state.transitions.flatMap((t) =>
    t.targets.filter((target) => target !== state.id).map((target) => `  ${name(state.id)} --> ${name(target)} : ${escaped(edgeText(t))}`),
  );
  return [...own, ...state.states.flatMap((s) => edgesOf(s, name))];
}

/** Event and guard of a transition in one line. */
function edgeText(t: Pick<ChartTransition, 'label' | 'guard'>): string {
  return t.guard === '' ? t.label : `${t.label} [${t.guard}]`;
}

/** The same with what it does: in words where the machine has some. */
function stepText({ label, guard, actions, does = actions.join(', ') }: ChartTransition): string {
  return `${edgeText({ label, guard })}${does === '' ? '' : ` / ${does}`}`;
}

function escaped(text: string): string {
  return text.replaceAll(/["#;:<>{}\n]/g, (c) => (c === '"' ? "'" : c === '\n' ? ' ' : `#${c.charCodeAt(0)};`));
}
