/** One actor in the words of the two stock protocols: `@statelyai/inspect` 0.7 and `@xstate/inspect` 0.8. Pure. */
import type { Chart } from '@actorlet/kubelet/machines/chart/definition.ts';
import { configOf, type Dialect } from '@actorlet/kubelet/machines/chart/export.ts';
import { projectEvent, projectSnapshot } from '../project.ts';
import type { SeenActor } from './allActors.ts';

/** What a bridge says about actors, each as the text of one frame. */
export interface Words {
  register(a: SeenActor): string;
  event(a: SeenActor, e: { event: unknown; source: string | undefined }): string;
  snapshot(a: SeenActor, e: { event: unknown; snapshot: unknown }): string;
  /** Null: this protocol has no word for it. */
  stop(a: SeenActor): string | null;
}

interface SnapshotLike {
  status?: string;
  value?: unknown;
}

/** The configuration of each kind of machine as text: many actors share one. */
function configTexts(dialect: Dialect): (chart: Chart) => string {
  const texts = new WeakMap<Chart, string>();
  return (chart) => {
    const text = texts.get(chart) ?? JSON.stringify(configOf(chart, dialect));
    texts.set(chart, text);
    return text;
  };
}

// ---- @statelyai/inspect ----------------------------------------------------------------------------------------------

/** The version whose receiver these frames were tried with. */
const STATELY_VERSION = '0.7.2';

export function statelyWords(nowMs: () => number): Words {
  const configText = configTexts('v5');
  const base = (a: SeenActor) => ({
    sessionId: a.session,
    rootId: a.root,
    id: null,
    createdAt: String(Math.round(nowMs())),
    _version: STATELY_VERSION,
  });
  const snapshotOf = (snapshot: unknown) => {
    const { status, value } = (snapshot ?? {}) as SnapshotLike;
    return { status: status ?? 'active', ...(value === undefined ? {} : { value }), context: projectSnapshot(snapshot) };
  };
  return {
    register: (a) =>
      JSON.stringify({
        type: '@xstate.actor',
        name: a.name,
        parentId: a.parent,
        definition: a.chart === null ? JSON.stringify({ id: a.name }) : configText(a.chart),
        snapshot: snapshotOf(a.ref.getSnapshot()),
        ...base(a),
      }),
    event: (a, e) => JSON.stringify({ type: '@xstate.event', event: projectEvent(e.event), sourceId: e.source, ...base(a) }),
    snapshot: (a, e) =>
      JSON.stringify({ type: '@xstate.snapshot', event: projectEvent(e.event), snapshot: snapshotOf(e.snapshot), ...base(a) }),
    // A last snapshot that is not active says it; of an actor that was killed there is none.
    stop: (a) =>
      JSON.stringify({
        type: '@xstate.snapshot',
        event: { type: 'xstate.stop' },
        snapshot: { ...snapshotOf(a.ref.getSnapshot()), status: stoppedStatus(a) },
        ...base(a),
      }),
  };
}

function stoppedStatus(a: SeenActor): string {
  const { status } = (a.ref.getSnapshot() ?? {}) as SnapshotLike;
  return status === undefined || status === 'active' ? 'stopped' : status;
}

// ---- @xstate/inspect (xstate 4) --------------------------------------------------------------------------------------

/** What is no machine has one state. */
const NO_MACHINE = 'running';

export function classicWords(): Words {
  const configText = configTexts('v4');
  const scxml = (event: unknown, origin?: string) => {
    const data = projectEvent(event);
    return { name: data.type, data, $$type: 'scxml', type: 'external', ...(origin === undefined ? {} : { origin }) };
  };
  const state = (a: SeenActor, e: { event: unknown; snapshot: unknown }) => {
    const { status, value } = (e.snapshot ?? {}) as SnapshotLike;
    const told = scxml(e.event);
    return JSON.stringify({
      value: value ?? NO_MACHINE,
      context: projectSnapshot(e.snapshot),
      _event: told,
      event: told.data,
      _sessionid: a.session,
      historyValue: null,
      actions: [],
      activities: {},
      meta: {},
      events: [],
      configuration: [],
      transitions: [],
      children: {},
      done: status === 'done',
      changed: true,
      tags: [],
    });
  };
  return {
    register: (a) => {
      const one = { id: a.name, initial: NO_MACHINE, states: { [NO_MACHINE]: {} } };
      const config = a.chart === null ? JSON.stringify(one) : configText(a.chart);
      const snapshot: unknown = a.ref.getSnapshot();
      const context = JSON.stringify(projectSnapshot(snapshot) ?? null);
      return JSON.stringify({
        type: 'service.register',
        machine: `${config.slice(0, -1)},"context":${context}}`,
        state: state(a, { event: { type: 'xstate.init' }, snapshot }),
        id: a.name,
        sessionId: a.session,
        parent: a.parent,
      });
    },
    event: (a, e) => JSON.stringify({ type: 'service.event', event: JSON.stringify(scxml(e.event, e.source)), sessionId: a.session }),
    snapshot: (a, e) => JSON.stringify({ type: 'service.state', state: state(a, e), sessionId: a.session }),
    stop: (a) => JSON.stringify({ type: 'service.stop', sessionId: a.session }),
  };
}
