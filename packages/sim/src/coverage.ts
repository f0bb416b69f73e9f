/**
 * Which edges of which statecharts were taken, counted as the statecharts define them: one edge is one transition that leads
 * somewhere, of one state, on one event, under one guard. What there is to take is read from the machines that ran.
 */

import { logicOf, takenIn } from '@actorlet/kubelet/machines/xstate/inside.ts';
import type { InspectionEvent } from 'xstate';

/** By machine id: every edge with the times it was taken, 0 for one that never was. Plain data: it crosses processes. */
export type Coverage = Record<string, Record<string, number>>;

/** What is read of xstate's definitions; the same objects whatever the types of a machine's context and events. */
interface Definition {
  source: StateNodeLike;
  eventType: string;
  target?: readonly { path: readonly string[] }[] | undefined;
}
interface StateNodeLike {
  path: readonly string[];
  states: Record<string, StateNodeLike>;
  transitions: ReadonlyMap<string, readonly Definition[]>;
  always?: readonly Definition[] | undefined;
  invoke: readonly { id: string; src: unknown }[];
}
interface MachineLike {
  id: string;
  root: StateNodeLike;
}

export interface CoverageMeter {
  see(e: InspectionEvent): void;
  result(): Coverage;
}

export function coverageMeter(): CoverageMeter {
  const found: Coverage = {};
  const known = new WeakSet<object>();
  const names = new WeakMap<object, { machine: string; edge: string }>();

  const enter = (machine: MachineLike): void => {
    const edges = found[machine.id] ?? {};
    found[machine.id] = edges;
    for (const { definition, name } of edgesOf(machine.root)) {
      edges[name] ??= 0;
      names.set(definition, { machine: machine.id, edge: name });
    }
  };
  return {
    see(e) {
      if (e.type !== '@xstate.microstep') return;
      const machine = machineOf(logicOf(e.actorRef));
      if (machine === null) return;
      if (!known.has(machine)) {
        known.add(machine);
        enter(machine);
      }
      for (const taken of takenIn(e)) {
        const name = names.get(taken);
        const edges = name === undefined ? undefined : found[name.machine];
        if (name !== undefined && edges !== undefined) edges[name.edge] = (edges[name.edge] ?? 0) + 1;
      }
    },
    result: () => found,
  };
}

export function addCoverage(sum: Coverage, more: Coverage): void {
  for (const [machine, edges] of Object.entries(more)) {
    const mine = sum[machine] ?? {};
    sum[machine] = mine;
    for (const [edge, n] of Object.entries(edges)) mine[edge] = (mine[edge] ?? 0) + n;
  }
}

/** Taken and all edges of each machine, with the missing ones by name. */
export function coverageOf(c: Coverage): { machine: string; taken: number; total: number; missing: string[] }[] {
  return Object.entries(c)
    .map(([machine, edges]) => {
      const missing = Object.keys(edges).filter((edge) => edges[edge] === 0);
      const total = Object.keys(edges).length;
      return { machine, total, taken: total - missing.length, missing: missing.sort() };
    })
    .sort((a, b) => (a.machine < b.machine ? -1 : 1));
}

function machineOf(logic: unknown): MachineLike | null {
  if (logic === null || typeof logic !== 'object' || !('root' in logic) || !('id' in logic)) return null;
  return logic as MachineLike;
}

function* edgesOf(node: StateNodeLike): Generator<{ definition: Definition; name: string }> {
  const lists: [string, readonly Definition[]][] = [['', node.always ?? []], ...node.transitions];
  for (const [type, list] of lists) {
    for (const [i, definition] of list.entries()) {
      // What has no target changes the context only: the statechart stays where it is.
      if (definition.target === undefined || definition.target.length === 0) continue;
      const to = definition.target.map((t) => t.path.join('.') || '(root)').join('+');
      const among = list.length > 1 ? ` #${i + 1}` : '';
      yield { definition, name: `${node.path.join('.') || '(root)'} -> ${to} on ${eventText(node, type)}${among}` };
    }
  }
  for (const child of Object.values(node.states)) yield* edgesOf(child);
}

/** `done(fence)`, `error(fence)`, `after wait`, `always`, or the event's own name. */
function eventText(node: StateNodeLike, type: string): string {
  if (type === '') return 'always';
  const invoked = /^xstate\.(done|error)\.actor\.(.*)$/.exec(type);
  if (invoked !== null) {
    const src = node.invoke.find((i) => i.id === invoked[2])?.src;
    return `${invoked[1]}(${typeof src === 'string' ? src : (invoked[2] ?? '')})`;
  }
  const after = /^xstate\.after\.([^.]*)\./.exec(type);
  return after === null ? type : `after ${after[1]}`;
}
