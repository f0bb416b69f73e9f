/** What a checker is: a named invariant of the node that is looked at whenever something happens that could break it. */

import type { ActorState, SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { PREEMPTING } from '@actorlet/kubelet/machines/pods/admission/preemption.ts';
import { evictionOf, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { type StatusView, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { EVICTED } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import { NOT_ADMITTED, TERMINATED } from '@actorlet/kubelet/machines/reclaim/nodeShutdown/messages.ts';
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimCertificate } from '@actorlet/world/src/identity/certificates.ts';
import type { StoreEvent } from '@actorlet/world/src/kube/kubeStore.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimDraCall } from '@actorlet/world/src/plugins/dra.ts';
import type { DriverCall } from '@actorlet/world/src/plugins/drivers.ts';
import { DEVICE_DOMAIN } from '@actorlet/world/src/plugins/machineDevices.ts';
import type { CallSeen } from '@actorlet/world/src/runtime/types.ts';
import type { Environment } from '../environment.ts';
import type { Asked } from '../nemesis/caller.ts';
import type { Nemesis } from '../nemesis/nemesis.ts';
import type { Operator } from '../nemesis/workload/operator.ts';

/** Everything a checker may look at. */
export interface Scene {
  node: SimNode;
  operator: Operator;
  nemesis: Nemesis;
  monoMs: number;
  /** Undefined for a node that belongs to no cluster. */
  kube: SimKube | undefined;
  environment: Environment;
}

/** An invariant is broken when a method gives a text: what was seen, with names and numbers. */
export interface Checker {
  readonly name: string;
  /** A call that changes something reached the runtime, before its effect. */
  arrived?(s: Scene, call: CallSeen): string | undefined;
  /** An image is about to be pulled. */
  pulls?(s: Scene, call: CallSeen): string | undefined;
  /** An image is about to be removed. */
  removesImage?(s: Scene, call: CallSeen): string | undefined;
  settled?(s: Scene, call: CallSeen, outcome: 'done' | 'failed' | 'unknown'): void;
  /** At the end of a step in which the runtime changed. */
  changed?(s: Scene, dump: HollowDump): string | undefined;
  statuses?(s: Scene, statuses: StatusView): string | undefined;
  supervision?(s: Scene, e: SupervisionEvent): string | undefined;
  /** The daemon is about to remove this path. */
  removing?(s: Scene, path: string): string | undefined;
  /** Once a virtual second while a daemon is up. */
  beat?(s: Scene, state: ActorState): string | undefined;
  /** A request of the daemon is about to be carried out by the API server. */
  request?(s: Scene, request: KubeRequest): string | undefined;
  /** An object of a pod in the API changed, by the node or by another client. */
  object?(s: Scene, e: StoreEvent): string | undefined;
  /** A daemon begins; nothing of it has touched the disk yet. */
  booted?(s: Scene): string | undefined;
  /** A daemon has looked at its machine, before its tree. Its start is refused for these reasons; none: it goes on. */
  judged?(s: Scene, problems: readonly string[]): string | undefined;
  /** A call to its storage driver is about to have its effect. */
  served?(s: Scene, call: DriverCall): string | undefined;
  /** A call to a driver of dynamic resources is about to have its effect. */
  prepares?(s: Scene, call: SimDraCall): string | undefined;
  /** A line of its log. */
  logged?(s: Scene, text: string): string | undefined;
  /** The daemon came to the API server with this certificate. */
  shown?(s: Scene, certificate: SimCertificate): string | undefined;
  /** A caller of the node's API was answered, or not. */
  answered?(s: Scene, asked: Asked): string | undefined;
  /** The daemon is about to drop the lock that delays the shutdown of its machine. */
  released?(s: Scene): string | undefined;
  exited?(s: Scene): void;
}

/** What a pod comes to that had to go, or was not let in, for something that is no fault of its own. */
export const TURNED_AWAY: readonly string[] = [
  EVICTED,
  PREEMPTING,
  'OutOfcpu',
  'UnexpectedAdmissionError',
  'SMTAlignmentError',
  'TopologyAffinityError',
];

/** The same words for CPUs and memory. */
const FOR_OTHERS = /not enough cpus available|\[memorymanager\]/;

/** It was not let in for want of devices of plugins, or of a plugin that has such. */
export function isForDevices({ reason = '', message = '' }: { reason?: string; message?: string }): boolean {
  if (reason.startsWith(`OutOf${DEVICE_DOMAIN}`)) return true;
  return (
    (reason === 'UnexpectedAdmissionError' && message.includes('Allocate failed') && !FOR_OTHERS.test(message)) ||
    (reason === 'UnsupportedField' && message.includes(DEVICE_DOMAIN))
  );
}

/** It was ended, or not let in, since the machine was going down. */
export function isByShutdown(status: { reason?: string } | undefined): boolean {
  return status?.reason === TERMINATED || status?.reason === NOT_ADMITTED;
}

/** By the ledger of pods, or, where a restart took that away, by what was said of it. */
export function isEvicted(node: SimNode, uid: string): boolean {
  const registry = node.daemon?.tree.registry;
  const status = registry?.read(statusesView)?.value.get(uid)?.status;
  const record = registry?.read(podsView)?.value.records.get(uid);
  return (
    (record !== undefined && evictionOf(record) !== null) ||
    TURNED_AWAY.includes(status?.reason ?? '') ||
    isByShutdown(status) ||
    isForDevices(status ?? {})
  );
}

/** As the node's pod manager has it. */
export function podOf({ node }: Scene, uid: string): Pod | undefined {
  return node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
}

/** Pod UID, and container or sandbox id, that a call is about; '' where the runtime knows it no more. */
export function targetOf(call: CallSeen, dump: HollowDump): { uid: string; id: string } {
  // The request's shape is that of its method; only fields that all such requests have are read.
  const req = call.req as {
    containerId?: string;
    podSandboxId?: string;
    config?: { metadata?: { uid?: string } };
    sandboxConfig?: { metadata?: { uid?: string } };
  };
  const own = req.config?.metadata?.uid ?? req.sandboxConfig?.metadata?.uid;
  const id = req.containerId ?? req.podSandboxId ?? '';
  if (own !== undefined) return { uid: own, id };
  if (req.containerId !== undefined) return { uid: dump.containers.find((c) => c.id === req.containerId)?.podUid ?? '', id };
  return { uid: dump.sandboxes.find((s) => s.id === req.podSandboxId)?.uid ?? '', id };
}
