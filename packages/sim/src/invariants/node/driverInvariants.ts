/** Invariants about volumes of storage drivers: the order of calls, what containers are given, and what is left. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { quantityToInteger } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { driversView } from '@actorlet/kubelet/machines/services/plugins/messages.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { partOf, textOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import type { CsiRequest } from '@actorlet/kubelet/machines/wire/csi.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { DRIVER } from '@actorlet/world/src/plugins/machineDrivers.ts';
import { DRIVER_VOLUME } from '../../nemesis/draws/node/drivers.ts';
import { handleOf } from '../../nemesis/workload/objectBodies.ts';
import { type Checker, targetOf } from '../checker.ts';

const PODS = `${ROOT_DIR}/pods/`;
function uidOf(path: string): string {
  return path.startsWith(PODS) ? (path.slice(PODS.length).split('/')[0] ?? '') : '';
}

/** Staged before it is published, unstaged when nobody has it any more, and never taken from a container that runs. */
export function driversAreHeldToTheirOrder(): Checker {
  return {
    name: 'drivers-are-held-to-their-order',
    beat(s) {
      const [violation] = s.node.drivers.violations;
      return violation === undefined ? undefined : `${s.node.name}: ${violation}`;
    },
    served(s, { method, request }) {
      if (method !== 'NodeUnpublishVolume') return undefined;
      const { targetPath } = request as CsiRequest<'NodeUnpublishVolume'>;
      const uid = uidOf(targetPath);
      const user = s.node.runtime.hollow.dump().containers.find((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
      return user === undefined ? undefined : `${s.node.name}: ${targetPath} is unpublished while container ${user.id} (${user.name}) runs`;
    },
  };
}

interface Created {
  config?: { metadata?: { name?: string }; mounts?: readonly { containerPath?: string; hostPath?: string }[] };
}

/** A container that mounts a volume of a driver is made when that very volume is published for its pod. */
export function publishedFirst(): Checker {
  return {
    name: 'published-first',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || s.node.tuning.driver === null) return undefined;
      const { uid } = targetOf(call, s.node.runtime.hollow.dump());
      const pod = s.node.daemon?.tree.registry.read(podsView)?.value.records.get(uid)?.pod;
      const { config } = call.req as Created;
      const name = config?.metadata?.name ?? '';
      const container = pod?.spec.containers.find((c) => c.name === name);
      const mount = container?.volumeMounts?.find((m) => m.name === DRIVER_VOLUME);
      if (mount === undefined) return undefined;
      const source = pod?.spec.volumes?.find((v) => v.name === DRIVER_VOLUME)?.persistentVolumeClaim;
      const given = config?.mounts?.find((m) => m.containerPath === mount.mountPath)?.hostPath ?? '';
      const handle = [...s.node.drivers.sockets.values()].map((d) => d.published.get(given)).find((h) => h !== undefined) ?? '';
      const right = isRecord(source) ? handle === handleOf(String(source.claimName)) : handle.startsWith('csi-');
      return right && uidOf(given) === uid
        ? undefined
        : `${s.node.name}: ${name} of pod ${uid} is made with ${given}, where volume ${handle || '-'} is published`;
    },
  };
}

/**
 * A node has a volume of the cluster only while the cluster has it attached to that node. What is attached to one node at a time
 * has then the writers of one node at most, however late a node hears of it.
 */
export function oneNodeWrites(): Checker {
  return {
    name: 'one-node-writes',
    served(s, { method, request }) {
      if (method !== 'NodeStageVolume' && method !== 'NodePublishVolume') return undefined;
      const { volumeId } = request as CsiRequest<'NodePublishVolume'>;
      if (!volumeId.startsWith(handleOf('')) || s.environment.isAttached(s.node.name, volumeId) !== false) return undefined;
      return `${s.node.name}: ${method} of ${volumeId}, which is not attached to it`;
    },
    beat({ node, environment }) {
      for (const { published, staged } of node.drivers.sockets.values()) {
        for (const [path, handle] of [...staged, ...published]) {
          if (handle.startsWith(handleOf('')) && environment.isAttached(node.name, handle) === false)
            return `${node.name}: ${handle} was detached under ${path}`;
        }
      }
      return undefined;
    },
  };
}

/** The status of a claim never says more than what its volume was grown to. */
export function grownFirst(): Checker {
  return {
    name: 'grown-first',
    request(s, { verb, path, body }) {
      const [, name] = /persistentvolumeclaims\/([^/]+)\/status$/.exec(path) ?? [];
      if (verb !== 'PATCH' || name === undefined) return undefined;
      const size = textOf(partOf(partOf(body, 'status'), 'capacity').storage);
      const grown = Math.max(0, ...[...s.node.drivers.sockets.values()].map((d) => d.grown.get(handleOf(name)) ?? 0));
      return quantityToInteger(size) <= grown ? undefined : `${s.node.name}: claim ${name} has ${size}, and its volume ${grown} bytes`;
    },
  };
}

/** In fair weather the driver is registered, the cluster knows, and nothing is published or staged for nobody. */
export function driversUnsettled(
  node: SimNode,
  o: { tree: SupervisionTree; kube: SimKube | undefined; uids: ReadonlySet<string> },
): string[] {
  if (node.tuning.driver === null) return [];
  const found: string[] = [];
  if (o.tree.registry.read(driversView)?.value.has(DRIVER) !== true) found.push('its storage driver is not registered');
  if (o.kube !== undefined && !isRegistered(o.kube, node.name)) found.push('the cluster does not know its storage driver');
  for (const { published, staged } of node.drivers.sockets.values()) {
    const held = new Set(published.values());
    for (const path of published.keys()) if (!o.uids.has(uidOf(path))) found.push(`${path} is still published`);
    for (const [path, handle] of staged) if (!held.has(handle)) found.push(`${path} is still staged, and nobody has volume ${handle}`);
  }
  for (const claim of o.kube?.store.list('persistentvolumeclaims') ?? []) {
    const step = textOf(partOf(partOf(claim, 'status'), 'allocatedResourceStatuses').storage);
    const published = [...node.drivers.sockets.values()].some((d) => [...d.published.values()].includes(handleOf(claim.metadata.name)));
    if (published && GROWING.includes(step)) found.push(`claim ${claim.metadata.name} is ${step}`);
  }
  return found;
}
/** The node has to do something about it. */
const GROWING: readonly string[] = ['NodeResizePending', 'NodeResizeInProgress'];

function isRegistered(kube: SimKube, node: string): boolean {
  const spec = kube.store.list('csinodes').find((o) => o.metadata.name === node)?.spec;
  const drivers = isRecord(spec) && Array.isArray(spec.drivers) ? spec.drivers : [];
  return drivers.some((d) => isRecord(d) && d.name === DRIVER && d.nodeID === node);
}
