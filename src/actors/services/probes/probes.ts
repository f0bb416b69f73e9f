/**
 * State held: the results of probes by container id; per probe its schedule, the row of equal outcomes, who may go next.
 * Lost on restart: schedules and rows (counts begin again), attempts under way.
 * Rebuilt from: the last published view of results, or after a restart of the node the checkpoint `probes`; which probes
 * there are, from the pod manager's and the status manager's views.
 */

import { fromPromise } from 'xstate';
import { apiView } from '../../../machines/api/messages.ts';
import { type CheckpointFound, checkpointAddr, eventsAddr } from '../../../machines/foundation/messages.ts';
import type { ProbeLedger, ProbeOutcome, ProbeResult, ProbeTarget } from '../../../machines/pod/probes/probes.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { workersAddr } from '../../../machines/pods/workers/messages.ts';
import { fromCheckpoint, PROBES_CHECKPOINT, toCheckpoint } from '../../../machines/services/probes/carried.ts';
import { type ProbesEvent, probesAddr, probesView } from '../../../machines/services/probes/messages.ts';
import { proberMachine } from '../../../machines/services/probes/proberMachine.ts';
import { type ProbesFacts, probeManagerMachine } from '../../../machines/services/probes/probesMachine.ts';
import { probeEvent } from '../../../machines/services/probes/said.ts';
import { phaseOf } from '../../../machines/services/probes/schedule.ts';
import { because, type ReplyTo } from '../../../machines/supervision/address.ts';
import { LazyMoment, momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';
import { Attempts } from './attempt.ts';
import { type ProbeMetrics, probeMetrics } from './metrics.ts';

export interface ProbesOptions {
  /** The node belongs to a cluster: its API server shows mirrors of static pods. */
  cluster: boolean;
  runtimeRequestTimeoutMs: number;
  podsMax: number;
}

/** A checkpoint is one small file; a disk that is slower must not hold back the pods. */
const LOAD_TIMEOUT_MS = 5_000;
/** Loading, and some air. */
const READY_TIMEOUT_MS = 15_000;

/** The actor behind `addr.probes`. The pods layer starts after it, so that the first status of a pod knows the results. */
export function probesSpec(opts: ProbesOptions): ActorSpec<ProbesEvent> {
  return {
    type: 'actor',
    id: 'probes',
    backoff: { jitter: 0.1 },
    mailbox: {
      capacity: 4 * opts.podsMax + 64,
      key: (e) => e.uid ?? '*',
      overflow: 'mark-resync',
      resync: () => ({ type: 'probes.look', uid: null }),
    },
    ready: { when: (snapshot) => !(snapshot as { matches(state: string): boolean }).matches('loading'), timeoutMs: READY_TIMEOUT_MS },
    start: (ctx) => {
      const io = new Io(ctx, opts);
      if (opts.cluster) lookOnceHeard(ctx);
      const prober = provided(
        proberMachine,
        {
          actors: { attempt: fromPromise<ProbeOutcome, { target: ProbeTarget }>(({ input, signal }) => io.attempt(input.target, signal)) },
          actions: { sayAttempted: (_, { target, outcome, durationMs }) => io.attempted(target, outcome, durationMs) },
        },
        momentOf(ctx.ports),
      );
      const logic = provided(
        probeManagerMachine,
        {
          actors: { prober, load: fromPromise<ProbeLedger>(({ signal }) => io.load(signal)) },
          actions: {
            publish: (_, { ledger }) => io.publish(ledger),
            sayChanged: (_, { target, result, output }) => io.changed(target, result, output),
            sayEnded: (_, { uid }) => io.ended(uid),
            sayTakenOver: (_, { uid }) => io.takenOver(uid),
          },
        },
        () => new ProbesMoment(ctx, opts),
      );
      return { logic };
    },
  };
}

/** The first list of the API server has the mirrors of static pods. */
function lookOnceHeard({ registry, signal }: ActorCtx<ProbesEvent>): void {
  const isHeard = () => registry.read(apiView.pods)?.value.synced === true;
  if (isHeard()) return;
  const watching = registry.watch(apiView.pods, () => {
    if (!isHeard()) return;
    watching[Symbol.dispose]();
    registry.send(probesAddr, { type: 'probes.look', uid: null });
  });
  signal.addEventListener('abort', () => watching[Symbol.dispose](), { once: true });
}

class ProbesMoment extends LazyMoment implements ProbesFacts {
  readonly #registry: Registry;
  readonly #entropy: ActorCtx['ports']['entropy'];
  readonly #cluster: boolean;

  constructor({ ports, registry }: ActorCtx<ProbesEvent>, { cluster }: ProbesOptions) {
    super(ports);
    this.#registry = registry;
    this.#cluster = cluster;
    this.#entropy = ports.entropy;
  }
  phase(key: string): number {
    return phaseOf(this.#entropy.md5Hex(key));
  }
  get pods(): ProbesFacts['pods'] {
    return this.#registry.read(podsView)?.value;
  }
  get statuses(): ProbesFacts['statuses'] {
    return this.#registry.read(statusesView)?.value;
  }
  get api(): ProbesFacts['api'] {
    return this.#cluster ? this.#registry.read(apiView.pods)?.value : null;
  }
}

class Io {
  readonly ctx: ActorCtx<ProbesEvent>;
  readonly attempts: Attempts;
  readonly metrics: ProbeMetrics;
  /** The checkpoint as it was last written or read, as text. */
  private saved = '';

  constructor(ctx: ActorCtx<ProbesEvent>, opts: ProbesOptions) {
    this.ctx = ctx;
    this.attempts = new Attempts({ ports: ctx.ports, registry: ctx.registry, runtimeRequestTimeoutMs: opts.runtimeRequestTimeoutMs });
    this.metrics = probeMetrics(ctx.ports.metrics);
  }

  /** What earlier incarnations, of this actor or of this node, knew. */
  async load(signal: AbortSignal): Promise<ProbeLedger> {
    const own = this.ctx.registry.read(probesView);
    if (own !== undefined) return own.value;
    const answer = await this.ctx.registry.ask(
      checkpointAddr,
      (replyTo: ReplyTo<CheckpointFound>) => ({ type: 'checkpoint.get' as const, name: PROBES_CHECKPOINT, replyTo }),
      { timeoutMs: LOAD_TIMEOUT_MS, signal },
    );
    if (answer.kind === 'reply') {
      const ledger = answer.value.found ? fromCheckpoint(answer.value.value) : new Map();
      this.saved = JSON.stringify(toCheckpoint(ledger));
      return ledger;
    }
    this.ctx.log.warn({ why: answer.reason }, 'the last probe results cannot be read; pods are not ready until their probes pass again');
    return new Map();
  }

  /** One try. Never rejects for what the container did; what it throws counts as an error. */
  attempt(target: ProbeTarget, signal: AbortSignal): Promise<ProbeOutcome> {
    return this.attempts.attempt(target, signal);
  }

  attempted(target: ProbeTarget, outcome: ProbeOutcome, durationMs: number): void {
    this.metrics.attempted(target, outcome, durationMs);
    const said = probeEvent(target.type, outcome);
    if (said === null) return;
    this.ctx.registry.send(eventsAddr, {
      type: 'event.record',
      event: {
        type: 'Warning',
        ...said,
        pod: target.pod,
        ...(target.fieldPath === '' ? {} : { fieldPath: target.fieldPath }),
      },
    });
  }

  publish(ledger: ProbeLedger): void {
    this.ctx.publish(probesView, ledger);
    const document = toCheckpoint(ledger);
    const text = JSON.stringify(document);
    if (text === this.saved) return;
    this.saved = text;
    this.ctx.registry.send(checkpointAddr, { type: 'checkpoint.put', name: PROBES_CHECKPOINT, value: document });
  }

  changed(target: ProbeTarget, result: ProbeResult, output: string): void {
    const { uid } = target.pod;
    const what = `${target.type} probe of container ${target.container.name} is now ${result}`;
    this.ctx.log.info(
      { uid, pod: `${target.pod.namespace}/${target.pod.name}`, containerId: target.containerId, result, output: output.slice(0, 200) },
      what,
    );
    this.#dirty(uid, what);
  }

  takenOver(uid: string): void {
    this.#dirty(uid, 'the API server shows what probes had found before this node started');
  }

  #dirty(uid: string, what: string): void {
    const causes = because(undefined, { atMs: this.ctx.ports.clock.wallMs(), by: this.ctx.path, what });
    this.ctx.registry.send(workersAddr, { type: 'pod.dirty', uid, why: what, causes });
  }

  /** A pod that had probes has none any more: their metrics go. Those of a container that waits to start again stay. */
  ended(uid: string): void {
    this.metrics.ended(uid);
  }
}
