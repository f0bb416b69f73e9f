/**
 * State held: which pods want their volumes, which volumes there are and in which state, who waits for them.
 * Lost on restart: all of it; those who wait are told, and ask again. An operation in progress ends at its next step, and
 * what comes after waits for that (`operations.ts`, which only the daemon's end forgets).
 * Rebuilt from: the directories of pods, the mount table, the pod manager's view, and the workers' next questions.
 */

import { apiAddr, apiView } from '../../../machines/api/messages.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { ObjectSource } from '../../../machines/kube/objects.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { NodeFacts } from '../../../machines/nodeFacts.ts';
import { peerViews, unanswered, whyUnregistered } from '../../../machines/pod/peers/peers.ts';
import { volumeKey } from '../../../machines/pod/volumes/volumePaths.ts';
import { pluginShown } from '../../../machines/pod/volumes/volumes.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { type Built, refused } from '../../../machines/result.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { driversView, pluginsAddr } from '../../../machines/services/plugins/messages.ts';
import { type VolumesEvent, volumesAddr, volumesInUseView, volumesView } from '../../../machines/services/volumes/messages.ts';
import { type ActualState, summaries } from '../../../machines/services/volumes/reconcile.ts';
import { mountFailure, setUpSuccess } from '../../../machines/services/volumes/said.ts';
import type { GrowthOutcome, SetUpDone } from '../../../machines/services/volumes/volumeMachine.ts';
import type { VolumesFacts } from '../../../machines/services/volumes/volumesMachine.ts';
import { LazyMoment, momentOf } from '../../../machines/xstate/facts.ts';
import { peerCalls } from '../../foundation/client.ts';
import { joinSignals } from '../../supervision/signals.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';
import { claimSource } from './claims.ts';
import { csiApi } from './csi/api.ts';
import type { Drivers } from './csi/calls.ts';
import { CsiLedger } from './csi/state.ts';
import { severDead } from './disk/sever.ts';
import { growthApi } from './growth/api.ts';
import type { VolumeTools } from './kind.ts';
import { type VolumesIo, volumesLogic } from './logic.ts';
import { storageMetrics } from './measured.ts';
import { fsUntil, VolumeOperations } from './operations.ts';
import { Plugins } from './plugins.ts';

export interface VolumesOptions {
  facts(): NodeFacts;
  podsMax: number;
  /** Files of volumes are compared with their sources this often, lengthened by up to half. */
  syncFrequencyMs: number;
  /** `enableControllerAttachDetach`. */
  controllerAttaches: boolean;
  /** The source of secrets, config maps and tokens; null on a node without an API. */
  objects: ((ctx: ActorCtx<VolumesEvent>) => ObjectSource) | null;
}

export function volumesSpec(opts: VolumesOptions): ActorSpec<VolumesEvent> {
  const held: Held = { operations: new VolumeOperations(), ledger: new CsiLedger(), swap: { said: false } };
  return {
    type: 'actor',
    id: 'volumes',
    // Nothing is lost when an operation is cut: each of them looks at what there is first.
    backoff: { minMs: 100, maxMs: 5_000 },
    // One lane: the release of a pod's volumes must not overtake its request for them.
    mailbox: { capacity: 4 * opts.podsMax + 64, overflow: 'reject' },
    start: (ctx) => ({
      logic: volumesLogic(volumesIo(ctx, opts, held), {
        clock: ctx.ports.clock,
        moment: momentOf(ctx.ports),
        facts: (isOpen) => new VolumesMoment(ctx, isOpen),
      }),
      input: { rootDir: opts.facts().rootDir, refreshMs: opts.syncFrequencyMs },
    }),
  };
}

class VolumesMoment extends LazyMoment implements VolumesFacts {
  readonly #registry: Registry;
  readonly isOpen: VolumesFacts['isOpen'];

  constructor({ ports, registry }: ActorCtx<VolumesEvent>, isOpen: VolumesFacts['isOpen']) {
    super(ports);
    this.#registry = registry;
    this.isOpen = isOpen;
  }
  get pods(): VolumesFacts['pods'] {
    return this.#registry.read(podsView)?.value;
  }
  get listed(): VolumesFacts['listed'] {
    return this.#registry.read(runtimePodsView)?.value;
  }
  unanswered(uid: string): readonly string[] {
    return unanswered(this.#registry.read(peerViews.csi)?.value, { uid, nowMs: this.wallMs });
  }
}

/** About the node. */
const SWAPPABLE = 'PossibleMemoryBackedVolumesOnDisk';
const SWAPPABLE_MESSAGE =
  'files of volumes in memory, secrets among them, can be swapped to disk: no tmpfs without swap can be mounted here';

/** What lasts as long as the daemon. */
interface Held {
  operations: VolumeOperations;
  ledger: CsiLedger;
  /** Whether it was told that volumes in memory can be swapped. */
  swap: { said: boolean };
}

/** Once, and only where the machine has swap. */
function saySwappable({ registry }: ActorCtx<VolumesEvent>, { facts }: VolumesOptions, swap: Held['swap']): () => void {
  return () => {
    if (swap.said || (facts().memoryControl?.swapBytes ?? 0) === 0) return;
    swap.said = true;
    registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason: SWAPPABLE, message: SWAPPABLE_MESSAGE } });
  };
}

/** Drivers of volumes as they are now, and how they are called. */
function knownDrivers(ctx: ActorCtx<VolumesEvent>): Omit<Drivers, 'ports'> {
  const { registry } = ctx;
  return {
    drivers: () => registry.read(driversView)?.value ?? new Map(),
    unregistered: (name) => whyUnregistered(registry.read(peerViews.plugins)?.value, name),
    calls: peerCalls(ctx, peerViews.csi),
  };
}

function volumesIo(ctx: ActorCtx<VolumesEvent>, opts: VolumesOptions, { operations, ledger, swap }: Held): VolumesIo {
  const { ports, registry, log } = ctx;
  const objects = opts.objects?.(ctx) ?? null;
  const claims = ports.kube === undefined ? null : claimSource(ctx, () => opts.facts().nodeName);
  const say: VolumeTools['say'] = (pod, said, about) => {
    const { name, namespace, uid } = pod.metadata;
    const event = { ...said, ...(about === undefined ? {} : { about }), pod: { name, namespace, uid } };
    registry.send(eventsAddr, { type: 'event.record', event });
  };
  const warn = (pod: Pod, reason: string, message: string): void => say(pod, { type: 'Warning', reason, message });
  // The cluster attaches what this node says that it uses, and what is attached shows in the node's status.
  const publishInUse = (): void => {
    ctx.publish(volumesInUseView, ledger.inUse());
    registry.send(apiAddr.nodeStatus, { type: 'node.report', why: 'other volumes are in use' });
  };
  const csi = {
    ...knownDrivers(ctx),
    ledger,
    controllerAttaches: opts.controllerAttaches,
    inUseChanged: publishInUse,
    exhausted: (driver: string) => void registry.send(pluginsAddr, { type: 'plugins.renew', driver }),
    api: ports.kube === undefined ? null : csiApi(ctx, () => opts.facts().nodeName),
    reportedInUse: () => registry.read(apiView.volumes)?.value.inUse ?? [],
  };
  if (ports.kube !== undefined) {
    const watching = registry.watch(apiView.volumes, () => registry.send(volumesAddr, { type: 'volumes.retry' }));
    ctx.signal.addEventListener('abort', () => watching[Symbol.dispose](), { once: true });
  }
  const measure = storageMetrics(ports);
  const growth = ports.kube === undefined ? null : growthApi(ctx);
  const tell = { warn, say, swappable: saySwappable(ctx, opts, swap) };
  const tools = { log, facts: opts.facts, objects, claims, growth, csi, ...tell, measure: measure.operation, serves: measure.serves };
  const plugins = (fs = ports.fs) => new Plugins({ ports: { ...ports, fs }, ...tools });
  let published: ActualState | undefined;
  return {
    async scan() {
      // First these: what ends in between is on the disk for the look at it, or gone.
      const left = operations.underWay();
      const { found, strange } = await plugins().scan();
      measure.found({ known: found.length, strange });
      if (ports.kube !== undefined) publishInUse();
      return [...new Map([...left, ...found].map((ref) => [volumeKey(ref), ref])).values()];
    },
    sever: (uids, signal) => severDead({ ports, log, facts: opts.facts }, uids, signal),
    setUp: async (job, signal) => {
      let done: SetUpDone | null = null;
      await operations.run(job.volume, signal, async () => {
        done = await measure.operation('volume_mount', job.volume, signal)(plugins(fsUntil(ports.fs, signal)).setUp(job, signal));
      });
      const said = job.first ? setUpSuccess(job.volume, done) : null;
      if (said !== null) say(job.pod, said);
      return done;
    },
    tearDown: (ref, signal) =>
      operations.run(ref, signal, () =>
        measure.operation('volume_unmount', ref, signal)(plugins(fsUntil(ports.fs, signal)).tearDown(ref, signal)),
      ),
    grow: async (job, asked) => {
      let outcome: GrowthOutcome = { kind: 'looked', fixed: false };
      // A look is given up when the volume is to be taken down. A driver that is at work is waited for by the taking down.
      await operations.run(job.volume, asked, async () => {
        outcome = await plugins(fsUntil(ports.fs, ctx.signal)).grow(job, { asked, signal: ctx.signal });
      });
      return outcome;
    },
    growthFailed: (pod, message) => warn(pod, 'VolumeResizeFailed', message),
    bindSubPath: async (part, { asked, signal }) => {
      using joined = joinSignals(asked, signal);
      let result: Built<string> = refused('nothing was bound');
      // The caller may go on before it has begun; afterwards the taking down waits for it.
      await operations.run(part.volume, joined.signal, async () => {
        result = await plugins(fsUntil(ports.fs, signal)).bindSubPath(part, signal);
      });
      return result;
    },
    mountFailed(pod, volume, message) {
      const said = mountFailure(volume, message, measure.servedBy(volume).volume);
      if (said === null) log.debug({ uid: pod.metadata.uid, volume: volume.name, err: message }, 'a volume is not attached yet');
      else say(pod, said);
    },
    tearDownFailed(ref, message) {
      log.warn({ uid: ref.uid, plugin: pluginShown(ref), volume: ref.name, err: message }, 'a volume cannot be taken down; tried again');
    },
    publish(actual) {
      if (actual === published) return;
      published = actual;
      ctx.publish(volumesView, summaries(actual, measure.servedBy));
    },
    forget: (uid) => objects?.forget(uid),
  };
}
