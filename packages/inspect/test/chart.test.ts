import { type Chart, type ChartState, chartOf, eventLabel } from '@actorlet/kubelet/machines/chart/definition.ts';
import { configOf, mermaidOf } from '@actorlet/kubelet/machines/chart/export.ts';
import { describe, expect, it } from 'vitest';
import { createMachine } from 'xstate';
import { createMachine as createMachine4 } from 'xstate4';
import { nodeMachines } from '../../../test/integration/kill/killTables.ts';
import { pod, virtualNode } from '../../../test/integration/virtualNode.ts';
import { INSPECT } from './rig.ts';

/** The chart of every machine that runs in a node of a cluster with a pod on it. */
async function charts(): Promise<Map<string, Chart>> {
  await using h = await virtualNode({ ...INSPECT, cluster: true, servers: true });
  h.write('web', pod('web'));
  await h.until('web is known', () => h.record('web') !== undefined);
  await h.advance(1_000);
  const out = new Map<string, Chart>();
  const add = (ref: object | null) => {
    const chart = ref === null ? null : chartOf(Reflect.get(ref, 'logic'));
    if (chart !== null) out.set(chart.id, chart);
    const snapshot: unknown = (ref as { getSnapshot?: () => unknown } | null)?.getSnapshot?.();
    for (const child of Object.values((snapshot as { children?: Record<string, object> } | undefined)?.children ?? {})) add(child);
  };
  const visit = (state: { path: string; children: readonly object[] }) => {
    add(h.tree.actorAt(state.path));
    for (const child of state.children) visit(child as typeof state);
  };
  visit(h.tree.state());
  return out;
}
const ids = (s: ChartState): string[] => [s.id, ...s.states.flatMap(ids)];

describe('the chart of every running machine', () => {
  it('survives its export: xstate 5 builds the same states and transitions from it', async () => {
    const all = await charts();
    expect(all.size).toBeGreaterThan(15);
    for (const [id, chart] of all) {
      const again = chartOf(createMachine(configOf(chart, 'v5') as never));
      expect(again?.root === undefined ? [] : ids(again.root), id).toEqual(ids(chart.root));
      const edges = (c: Chart | null): string[] =>
        c === null
          ? []
          : statesIn(c.root)
              .flatMap((s) => s.transitions.map((t) => `${t.id} ${t.guard} ${t.targets.join()}`))
              .sort();
      expect(edges(again), id).toEqual(edges(chart));
    }
  });

  it('is revived by xstate 4, as the classic inspector does it', async () => {
    for (const [id, chart] of await charts()) {
      const machine = createMachine4(JSON.parse(JSON.stringify(configOf(chart, 'v4'))) as object);
      expect(machine.id, id).toBe(chart.id);
      expect([...machine.stateIds].sort(), id).toEqual(ids(chart.root).sort());
    }
  });

  it('has a Mermaid diagram with each of its states once, in words of letters and digits', async () => {
    for (const [id, chart] of await charts()) {
      const lines = mermaidOf(chart);
      const declared = lines.flatMap((l) => /^\s*state "[^"]*" as (\w+)$/.exec(l)?.[1] ?? []);
      expect(new Set(declared).size, id).toBe(declared.length);
      expect(declared.length, id).toBeGreaterThanOrEqual(ids(chart.root).length - 1);
      const mentioned = lines.flatMap((l) => {
        const m = /^\s*(\S+) --> (\S+)/.exec(l);
        return m === null ? [] : [m[1] ?? '', m[2] ?? ''];
      });
      for (const name of mentioned) expect(name === '[*]' || declared.includes(name), `${id}: ${name}`).toBe(true);
    }
  });
});

it('a machine that is one state is drawn with what it takes and does', async () => {
  const { statusMachine } = await import('@actorlet/kubelet/machines/pods/status/statusMachine.ts');
  const chart = chartOf(statusMachine);
  expect(chart?.root.states).toEqual([]);
  const lines = chart === null ? [] : mermaidOf(chart);
  expect(lines[1]).toMatch(/^ {2}state "\w+" as (\w+)$/);
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}(\w+) --> \1 : status\.set \/ keeps the status/));
  const { coordinatorMachine } = await import('@actorlet/kubelet/machines/allocation/coordinator/coordinatorMachine.ts');
  const coordinator = chartOf(coordinatorMachine);
  const drawn = coordinator === null ? [] : mermaidOf(coordinator);
  expect(drawn).toContainEqual(expect.stringMatching(/^ {2}(\w+) --> \1 : allocation\.admit \/ asks each provider/));
});

it('every transition of every machine carries the name of an event, of a delay or of the actor that ended', async () => {
  const unnamed: string[] = [];
  let count = 0;
  for (const machine of await nodeMachines()) {
    const chart = chartOf(machine);
    if (chart === null) throw new Error(`${machine.root.id} has no chart`);
    for (const { id, label } of statesIn(chart.root).flatMap((s) => s.transitions)) {
      count += 1;
      // `done.actor.*` is for each of several children.
      const any = id.includes('|xstate.done.actor.*|');
      if (!any && !/^(always$|after \w|done: \w|error: \w|[a-z][A-Za-z]*\.[A-Za-z.*]+$)/.test(label)) unnamed.push(`${id}: ${label}`);
    }
  }
  expect(count).toBeGreaterThan(500);
  expect(unnamed).toEqual([]);
});

it('names internal events in words', () => {
  expect(eventLabel('xstate.after.1500.a.b')).toBe('after 1.5s');
  expect(eventLabel('xstate.after.wait.a.b')).toBe('after wait');
  expect(eventLabel('xstate.done.actor.0.a', [{ id: '0.a', src: 'fence' }])).toBe('done: fence');
  expect(eventLabel('xstate.error.actor.0.a', [])).toBe('error');
  expect(eventLabel('')).toBe('always');
});

it('is none for what is no machine', () => {
  expect(chartOf(null)).toBeNull();
  expect(chartOf({ config: () => undefined })).toBeNull();
});

function statesIn(s: ChartState): ChartState[] {
  return [s, ...s.states.flatMap(statesIn)];
}
