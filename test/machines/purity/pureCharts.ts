/**
 * No `assign`, guard, delay or context factory of any machine does I/O, sends, logs, counts, reads a clock or a view, draws chance, or
 * changes an object of its context. `killEveryActor.test.ts` plays its stories, and each kind of step that a machine takes there without a
 * kill is taken again by xstate's pure functions. In each state, what a person sees of the context is looked at too.
 */
import { expect, it } from 'vitest';
import { createActor, fromPromise, toPromise } from 'xstate';
import { reviewMachine } from '../../../src/machines/edge/https/reviewMachine.ts';
import type { KubeResult } from '../../../src/machines/kube/request.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { PodsView } from '../../../src/machines/pods/manager/messages.ts';
import { type LifeEvent, podLifeMachine } from '../../../src/machines/pods/manager/podLifeMachine.ts';
import type { StatusEntry } from '../../../src/machines/pods/status/messages.ts';
import { observedProbesMachine } from '../../../src/machines/services/probes/observedMachine.ts';
import type { ProbesFacts } from '../../../src/machines/services/probes/probesMachine.ts';
import { LazyMoment, momentOf } from '../../../src/machines/xstate/facts.ts';
import { provided } from '../../../src/machines/xstate/provide.ts';
import type { Observer } from '../../integration/kill/killing.ts';
import { leaves, nodeMachines } from '../../integration/kill/killTables.ts';
import { RUNS_ALL } from '../../rotation.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { lockable } from './locked.ts';
import { recordShown } from './shown.ts';
import { impurities, recordSteps } from './steps.ts';

const ALL_PODS_END = 'needs the end of the bystanders: `nodeShutdown.test.ts` drives a node there';
const OF_A_STOP = 'of a daemon that stops: `test/edge/checkpoint.test.ts` drives the actor there';
const AT_ONCE = 'left in the step that creates the actor';
/** States that these stories do not show, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  'checkpoint flushing': OF_A_STOP,
  'checkpoint ended': OF_A_STOP,
  'nodeStatus beginning': AT_ONCE,
  'certificate beginning': AT_ONCE,
  'config beginning': AT_ONCE,
  'podWorker beginning': AT_ONCE,
  'podWriter beginning': AT_ONCE,
  'podAllocation beginning': AT_ONCE,
  'object choosing': AT_ONCE,
  'pleg relist.deciding': AT_ONCE,
  'pleg stream.deciding': AT_ONCE,
  'volume starting': AT_ONCE,
  'devicePlugin new': AT_ONCE,
  'containerStop choosing': AT_ONCE,
  'hook choosing': AT_ONCE,
  'listWatch stale': 'needs a watch that the API server ended as too old: `listWatch.test.ts` drives the machine there',
  'supervisor failed': 'final, of a supervisor that gives up: `test/supervision` drives it there',
  'nodeShutdown pods.shutdown.groupOver': ALL_PODS_END,
  'nodeShutdown pods.shutdown.finishing': ALL_PODS_END,
  'nodeShutdown pods.shutdown.released': ALL_PODS_END,
  'token gone': 'final: nothing happens in it',
  'podCertificate gone': 'final: nothing happens in it',
  'devicePlugin failed': 'final: nothing happens in it',
  'deaths pausing': 'needs more deaths at once than these stories have: `deaths.test.ts` drives a node there',
  'container stoppingAgain': 'needs a stop that fails after a failed hook: `hooks.test.ts` drives a node there',
};

const steps = recordSteps();
const shown = recordShown();
const found = new Map<string, Set<string>>();
const driven = new Set<string>();

function take(): void {
  for (const step of steps.taken()) {
    const { id } = step.machine.root;
    driven.add(id);
    const wrong = found.get(id) ?? new Set();
    for (const what of impurities(step)) wrong.add(what);
    if (wrong.size > 0) found.set(id, wrong);
  }
}

const machines = () => nodeMachines();

/** Watches the nodes of `killEveryActor.test.ts`, which play each story without the kill. */
export const chartWatch: Observer = {
  options: {
    inspect(e) {
      steps.see(e);
      shown.see(e);
    },
    ports: lockable,
  },
  look: take,
};

/** What needs no node. */
export function itStepsWithoutANode(): void {
  it('a question to the API server about a caller', async () => {
    const refused: KubeResult = { ok: false, failure: { code: 500, reason: 'InternalError', message: '', outcome: 'failed' } };
    const answers = [refused, { ok: true, body: {}, code: 200 } as KubeResult];
    const ports = lockable(fakePorts());
    let asked = 0;
    const ask = async () => answers[asked++] ?? refused;
    const actor = createActor(provided(reviewMachine, { actors: { ask: fromPromise(ask) } }, momentOf(ports)), {
      inspect: (e) => steps.see(e),
    });
    actor.start();
    await toPromise(actor);
    expect(asked).toBe(2);
    take();
  });

  /** No node of these stories observes: `packages/observe/test/observe.test.ts` drives one, and kills its actor. */
  it('results of probes that the kubelet has put into a status', () => {
    const ports = lockable(fakePorts());
    const containers = [{ name: 'main', readinessProbe: {} }];
    const containerStatuses = [{ name: 'main', ready: true, containerID: 'cri://c', state: { running: {} } }];
    const pod = { metadata: { uid: 'u', name: 'web' }, spec: { containers }, status: { containerStatuses } } as unknown as Pod;
    const seen = {
      pods: { records: new Map([['u', { pod, state: { is: 'running', listed: null } }]]), sourcesReady: true } as unknown as PodsView,
      statuses: new Map([['u', { status: pod.status } as StatusEntry]]),
      ...{ api: undefined, phase: () => 0 },
    };
    const changed: (readonly string[])[] = [];
    const actions = { publish: () => {}, sayChanged: (_: unknown, { uids }: { uids: readonly string[] }) => void changed.push(uids) };
    const facts = (): ProbesFacts => Object.assign(new LazyMoment(ports), seen);
    const actor = createActor(provided(observedProbesMachine, { actions }, facts), { inspect: (e) => steps.see(e) });
    actor.start();
    actor.send({ type: 'probes.look', uid: 'u' });
    actor.stop();
    expect(changed).toEqual([['u']]);
    take();
  });

  /** The ledger steps it without an actor: its steps in a running node are seen, and each is taken again here. */
  it("a pod's life, through each of its states", () => {
    const nothing = () => {};
    const acts = ['create', 'update', 'kill', 'reject', 'forget', 'sweep', 'wake', 'renew'] as const;
    const machine = provided(podLifeMachine, { actions: Object.fromEntries(acts.map((act) => [act, nothing])) });
    const pod = { metadata: { uid: 'u', name: 'web', namespace: 'ns' }, spec: { containers: [] }, status: {} } as unknown as Pod;
    const first = { pod, source: 'api', seenAtMs: 0, worker: null, life: 1, renewed: false, causes: [], way: [], state: null } as const;
    const worker = { phase: 'syncing', state: '', reason: '', message: '', sinceMs: 0, containers: [], causes: [] } as const;
    const eviction = { reason: 'Evicted', message: '', graceSeconds: 1 };
    const named = { pod, source: 'api', causes: [] } as const;
    const free = { type: 'life.turn', behind: null, nowMs: 0 } as const;
    const removed = { type: 'life.removed', causes: [], heard: true } as const;
    const refusal = { type: 'life.refused', ...named, why: [], refused: { reason: 'OutOfcpu', message: '' } } as const;
    const ways: LifeEvent[][] = [
      [
        { type: 'life.turn', behind: 'other', nowMs: 0 },
        free,
        { type: 'life.reported', worker },
        removed,
        { type: 'life.finished', worker },
      ],
      [
        refusal,
        { type: 'life.found', listed: { uid: 'u', name: 'web', namespace: 'ns', sandboxes: [], containers: [] }, causes: [] },
        refusal,
      ],
      [free, { type: 'life.evicted', eviction, causes: [], hurry: false, heard: true }, { type: 'life.finished', worker }, removed],
      [
        free,
        { type: 'life.quarantined', error: 'it crashed' },
        { type: 'life.added', ...named, heard: true },
        { type: 'life.redefined', pod },
      ],
    ];
    for (const way of ways) {
      const actor = createActor(machine, { input: first, inspect: (e) => steps.see(e) });
      actor.start();
      for (const event of way) actor.send(event);
    }
    take();
  });
}

/** What was seen in the stories of this run. That they show everything is known where all of them were played. */
export function itSawNothingButDecisions(): void {
  it('no machine does anything but decide', () => {
    expect(Object.fromEntries([...found].map(([id, what]) => [id, [...what]]))).toEqual({});
  });

  it('no machine holds a function, a signal, an actor or an environment in its context', () => {
    expect([...shown.effects]).toEqual([]);
  });

  it('what every machine shows is plain, bounded, and holds no secret, environment or output', () => {
    expect([...shown.wrong]).toEqual([]);
    expect(shown.planted).toBeGreaterThan(RUNS_ALL ? 40 : 5);
  });

  if (!RUNS_ALL) return;

  it('drives every machine', async () => {
    const ids = new Set((await machines()).map(({ root }) => root.id));
    expect(ids.size).toBeGreaterThan(30);
    expect([...ids].filter((id) => !driven.has(id))).toEqual([]);
  });

  it('sees every state of every machine, or says why not', async () => {
    const known = (await machines()).flatMap(({ root }) => leaves(root).map((leaf) => `${root.id} ${leaf}`.trimEnd()));
    expect(known.filter((state) => !steps.states.has(state)).sort()).toEqual(Object.keys(NOT_SEEN).sort());
  });
}
