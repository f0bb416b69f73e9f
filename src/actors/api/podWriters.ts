/**
 * One writer per pod: its status, its mirror pod, its final deletion in the API.
 *
 * State held: per pod what was written last, and what the API server answered.
 * Lost on restart: both; a status that stands there already is not written again.
 * Rebuilt from: the views of statuses, of pods and of the API server's pods.
 */

import { fromPromise } from 'xstate';
import { apiView, type PodWriterEvent } from '../../machines/api/messages.ts';
import type { WriterPlan } from '../../machines/api/podWriterDecide.ts';
import {
  type ActInput,
  type KeptWriter,
  keptOfWriter,
  type PodWriterFacts,
  type PodWriterFailure,
  type PodWriterInput,
  podWriterMachine,
  type WriteOutcome,
} from '../../machines/api/podWriterMachine.ts';
import { failureText, type KubeFailure, type KubeRequest, kubePath } from '../../machines/kube/request.ts';
import type { Pod } from '../../machines/kube/types.ts';
import { PODS_NAMED_MAX } from '../../machines/pod/bounds.ts';
import { ANNOTATION_MIRROR } from '../../machines/pod/names.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { toApiPod } from '../../machines/pods/sources/apiPod.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { probesView } from '../../machines/services/probes/messages.ts';
import { LazyMoment } from '../../machines/xstate/facts.ts';
import { type Own, providedForMany } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec, DynamicSpec, Registry } from '../supervision/types.ts';
import { type KubeClient, kubeClient } from './client.ts';

/**
 * Beside a writer for each pod that may live and one for its mirror: at the client's 50 requests a second more would only wait,
 * each with a machine of its own (8 KiB and more).
 */
const MORE_WRITERS = 256;
const STATUS_SYNC_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];

export interface PodWritersOptions {
  podsMax: number;
}

export function podWritersSpec(o: PodWritersOptions): DynamicSpec<PodWriterEvent> {
  return {
    type: 'dynamic',
    id: 'podWriters',
    shutdownMs: 1_000,
    backoff: { jitter: 0.1 },
    mailbox: {
      // A pod and its mirror each have one waiting item at most, also pods that were refused.
      capacity: 4 * o.podsMax + PODS_NAMED_MAX,
      key: (e) => e.uid,
      coalesce: (prev, next) => (prev.urgent === true ? { ...next, urgent: true } : next),
    },
    route: (e) => e.uid,
    starts: () => true,
    childrenMax: 2 * o.podsMax + MORE_WRITERS,
    child: (uid) => writerSpec(uid),
    // Whatever it choked on, a later word about the pod is another.
    release: () => true,
    onQuarantine: (uid, error, ctx) =>
      ctx.log.error({ uid, err: error.message }, 'the API writer of this pod kept failing and was set aside'),
  };
}

/** Of all writers. One with nothing to say sleeps after so long. */
const OF_WRITERS = {
  restart: 'transient',
  intensity: { max: 5, periodMs: 300_000 },
  backoff: { minMs: 1_000, maxMs: 60_000 },
  passivate: { afterMs: 5_000 },
} as const;

interface WriterIo {
  /** One request. Rejects never: what went wrong is an outcome. */
  act(plan: WriterPlan, signal: AbortSignal): Promise<WriteOutcome>;
  complain(failure: PodWriterFailure): void;
}
/** One machine for the writers of all pods. */
const writer = providedForMany(podWriterMachine, (io: Own<WriterIo>) => ({
  actors: { act: fromPromise<WriteOutcome, ActInput>((of) => io(of).act(of.input.plan, of.signal)) },
  actions: { complain: (of, failure) => io(of).complain(failure) },
}));

function writerSpec(uid: string): ActorSpec<PodWriterEvent> {
  return {
    type: 'actor',
    id: uid,
    ...OF_WRITERS,
    start: (ctx, woken) => {
      const client = kubeClient(ctx);
      const { ports } = ctx;
      let complained = '';
      const synced = ports.metrics.histogram(
        'kubelet_pod_status_sync_duration_seconds',
        'Seconds from the first change of a status that the API did not have until the API has it',
        STATUS_SYNC_SECONDS,
      );
      let patchingSinceMs: number | null = null;
      const act = async (plan: WriterPlan, signal: AbortSignal): Promise<WriteOutcome> => {
        if (plan.kind === 'patch') patchingSinceMs ??= ports.clock.monoMs();
        const outcome = await carryOut(client, plan, signal);
        if (plan.kind === 'patch' && outcome.ok && patchingSinceMs !== null) {
          synced.observe((ports.clock.monoMs() - patchingSinceMs) / 1000);
          patchingSinceMs = null;
        }
        return outcome;
      };
      const complain = ({ plan, failure, failures }: PodWriterFailure): void => {
        const request = requestOf(plan);
        if (failure === null || request === null) return;
        const text = failureText(request, failure);
        // The first conflict is business as usual: somebody else wrote to the object.
        const quiet = complained === text || failure.code === 0 || (failure.code === 409 && failures === 1);
        const level = quiet ? 'debug' : 'warn';
        complained = text;
        ctx.log[level]({ uid, attempt: failures }, `${text}; it is tried again`);
      };
      const input: PodWriterInput = { uid, ...(woken === undefined ? {} : { kept: woken.kept as KeptWriter }) };
      const seen = () => new PodWriterMoment(ctx, uid);
      return { logic: writer({ act, complain }, seen), input, keep: (snapshot) => keptOfWriter(snapshot, seen()) };
    },
  };
}

class PodWriterMoment extends LazyMoment implements PodWriterFacts {
  readonly #registry: Registry;
  readonly #uid: string;

  constructor({ ports, registry }: ActorCtx<PodWriterEvent>, uid: string) {
    super(ports);
    this.#registry = registry;
    this.#uid = uid;
  }
  get pods(): PodWriterFacts['pods'] {
    return this.#registry.read(podsView)?.value;
  }
  get entry(): PodWriterFacts['entry'] {
    return this.#registry.read(statusesView)?.value.get(this.#uid);
  }
  get api(): PodWriterFacts['api'] {
    return this.#registry.read(apiView.pods)?.value;
  }
  get node(): PodWriterFacts['node'] {
    return this.#registry.read(apiView.node)?.value;
  }
  get probes(): PodWriterFacts['probes'] {
    return this.#registry.read(probesView)?.value;
  }
}

function requestOf(plan: WriterPlan): KubeRequest | null {
  switch (plan.kind) {
    case 'patch': {
      const { namespace, name } = plan.target.metadata;
      return { verb: 'PATCH', path: kubePath.podStatus(namespace, name), body: plan.body, patchType: 'strategic' };
    }
    case 'delete':
    case 'deleteMirror': {
      const { namespace, name, uid } = plan.target.metadata;
      // The name may belong to another pod by the time this arrives.
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } };
      return { verb: 'DELETE', path: kubePath.pod(namespace, name), body };
    }
    case 'createMirror':
      return { verb: 'POST', path: kubePath.podsIn(plan.namespace), body: plan.body };
    default:
      return null;
  }
}

async function carryOut(client: KubeClient, plan: WriterPlan, signal: AbortSignal): Promise<WriteOutcome> {
  const request = requestOf(plan);
  if (request === null) throw new Error(`pod writer: nothing to request for ${plan.kind}`);
  const result = await client.request(request, { signal });
  if (result.ok) {
    const object = toApiPod(result.body);
    if (object === null && request.verb !== 'DELETE') {
      const message = `${request.verb} ${request.path} gave no pod`;
      return { ok: false, failure: { code: 0, reason: 'MalformedAnswer', message, outcome: 'unknown' }, gone: false };
    }
    return { ok: true, object: request.verb === 'DELETE' ? null : object };
  }
  if (plan.kind === 'createMirror' && result.failure.reason === 'AlreadyExists') return adoptMirror(client, plan, signal);
  if (!('target' in plan)) return { ok: false, failure: result.failure, gone: false };
  return result.failure.code === 404 || result.failure.code === 409
    ? asItIs(client, { plan, failure: result.failure, signal })
    : { ok: false, failure: result.failure, gone: false };
}

/**
 * The name may belong to another UID by now, or somebody else wrote at the same time: the object itself tells. That it is gone, too:
 * an API server that has just started says so of each pod that a node deletes, until its admission has seen the pods.
 */
async function asItIs(
  client: KubeClient,
  o: { plan: Extract<WriterPlan, { target: Pod }>; failure: KubeFailure; signal: AbortSignal },
): Promise<WriteOutcome> {
  const { namespace, name, uid } = o.plan.target.metadata;
  const result = await client.request({ verb: 'GET', path: kubePath.pod(namespace, name) }, { signal: o.signal });
  if (!result.ok) return { ok: false, failure: o.failure, gone: result.failure.code === 404 };
  const object = toApiPod(result.body);
  if (object !== null && object.metadata.uid !== uid) return { ok: false, failure: o.failure, gone: true };
  return { ok: false, failure: o.failure, gone: false, ...(object === null ? {} : { object }) };
}

/** Perhaps an earlier answer was lost, or the watch is behind: a mirror of the same definition is the one that was wanted. */
async function adoptMirror(
  client: KubeClient,
  plan: Extract<WriterPlan, { kind: 'createMirror' }>,
  signal: AbortSignal,
): Promise<WriteOutcome> {
  const { name, annotations } = plan.body.metadata as Pod['metadata'];
  const path = kubePath.pod(plan.namespace, name);
  const result = await client.request({ verb: 'GET', path }, { signal });
  if (!result.ok) return { ok: false, failure: result.failure, gone: false };
  const object = toApiPod(result.body);
  const isOurs = object?.metadata.annotations?.[ANNOTATION_MIRROR] === annotations?.[ANNOTATION_MIRROR];
  // It waits for the watch, which shows ours soon: one taken here that the next look does not count would be made again without end.
  const message = isOurs
    ? `the mirror ${plan.namespace}/${name} is in the API already, and its watch has not shown it yet`
    : `another pod named ${plan.namespace}/${name} is in the API; the mirror of the static pod waits until it is gone`;
  return { ok: false, failure: { code: 409, reason: 'AlreadyExists', message, outcome: 'failed' }, gone: false };
}
