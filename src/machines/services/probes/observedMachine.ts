/**
 * The probe manager of a node that only observes: no probe runs, and the results are those that the kubelet has put into the
 * statuses of its pods.
 */
import type { ContainerStatus } from '../../kube/types.ts';
import type { ProbeLedger, ProbeResult, ProbeType } from '../../pod/probes/probes.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { ProbesEvent } from './messages.ts';
import { type ProbesFacts, podFacts, shownPod } from './probesMachine.ts';
import { lookedAt, withoutPods, withResult } from './state.ts';

/** Results of pods that are in no list go by then. */
const SWEEP_MS = 60_000;

interface Context {
  ledger: ProbeLedger;
}

const { setup, facts } = setupWith<ProbesFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as ProbesEvent },
  actions: {
    publish: unprovidedAction<{ ledger: ProbeLedger }>(),
    sayChanged: unprovidedAction<{ uids: readonly string[] }>(),
  },
});

export const observedProbesMachine = effects
  .extend({
    actions: {
      look: effects.enqueueActions(({ context, event, enqueue }) => {
        const seen = facts();
        const uids = event.type === 'probes.look' && event.uid !== null ? [event.uid] : [...(seen.statuses?.keys() ?? [])];
        let { ledger } = context;
        const changed: string[] = [];
        for (const uid of uids) {
          const next = observed(ledger, uid, seen);
          if (next !== ledger) changed.push(uid);
          ledger = next;
        }
        if (ledger === context.ledger) return;
        enqueue.assign({ ledger });
        enqueue({ type: 'publish', params: { ledger } });
        enqueue({ type: 'sayChanged', params: { uids: changed } });
      }),
      sweep: effects.enqueueActions(({ context, enqueue }) => {
        const { pods } = facts();
        if (pods?.sourcesReady !== true) return;
        const gone = new Set([...context.ledger.values()].map((e) => e.uid).filter((uid) => !pods.records.has(uid)));
        enqueue.assign({ ledger: withoutPods(context.ledger, gone) });
      }),
    },
    delays: { sweep: SWEEP_MS },
  })
  .createMachine({
    id: 'observedProbes',
    meta: projecting<Context>(({ ledger }) => ({ containers: ledger.size })),
    context: () => ({ ledger: new Map() }),
    initial: 'observing',
    entry: [{ type: 'publish', params: ({ context: { ledger } }) => ({ ledger }) }],
    states: {
      observing: {
        meta: {
          reason: 'Observing',
          message: ({ ledger }: Context) => `the kubelet probes; its results of ${ledger.size} containers are read from its statuses`,
        },
        entry: ['look'],
        on: { 'probes.look': { actions: ['look'] } },
        after: { sweep: { target: 'observing', reenter: true, actions: ['sweep'] } },
      },
    },
  });

/** The results of one pod's containers, as the API shows them. The same object when nothing changed. */
function observed(ledger: ProbeLedger, uid: string, seen: ProbesFacts): ProbeLedger {
  const pod = podFacts(uid, seen);
  if (pod === undefined) return ledger;
  const shown = shownPod(pod.pod, seen.api);
  let next = lookedAt(ledger, { ...pod, pod: shown, said: shown.status });
  const statuses = [...(shown.status.initContainerStatuses ?? []), ...(shown.status.containerStatuses ?? [])];
  for (const [containerId, entry] of next) {
    if (entry.uid !== uid) continue;
    const said = statuses.find((s) => s.name === entry.container && s.containerID?.endsWith(`//${containerId}`) === true);
    for (const type of ['startup', 'readiness', 'liveness'] as const)
      if (entry[type] !== undefined) next = withResult(next, { containerId, type, result: resultOf(type, said) });
  }
  return same(ledger, next, uid) ? ledger : next;
}

/** A kubelet that ends a container for its liveness probe does so: nothing is said of it before. */
function resultOf(type: ProbeType, said: ContainerStatus | undefined): ProbeResult {
  if (type === 'liveness') return 'success';
  if (type === 'startup') return said?.started === true ? 'success' : 'unknown';
  return said?.ready === true ? 'success' : 'failure';
}

function same(before: ProbeLedger, now: ProbeLedger, uid: string): boolean {
  const of = (ledger: ProbeLedger) => JSON.stringify([...ledger].filter(([, entry]) => entry.uid === uid));
  return before === now || of(before) === of(now);
}
