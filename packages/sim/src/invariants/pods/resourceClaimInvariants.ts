/** Invariants about ResourceClaims: recorded before a driver hears of them, for pods they are reserved for, kept while they are used, given back after. */
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { CLAIMS_FILE, decodeClaims } from '@actorlet/kubelet/machines/allocation/claims/checkpoint.ts';
import { draDriversView } from '@actorlet/kubelet/machines/allocation/claims/messages.ts';
import type { ClaimRecord } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { cdiOf } from '@actorlet/world/src/plugins/machineDra.ts';
import { type Checker, podOf, type Scene, targetOf } from '../checker.ts';

const FILE = `${ROOT_DIR}/${CLAIMS_FILE}`;

export function claimCheckers(): Checker[] {
  return [claimsAreReadable(), claimsAreKept(), claimsComeWithContainers()];
}

/** Throws where the file cannot be read as one. */
function recorded(node: SimNode): ReadonlyMap<string, ClaimRecord> {
  const text = node.disk.textOf(FILE);
  return text === undefined ? new Map() : decodeClaims(text);
}

/** Whatever becomes of the node, its record of claims can be read. */
function claimsAreReadable(): Checker {
  const seen = new Map<string, string | undefined>();
  const look = ({ node }: Scene): string | undefined => {
    if (node.tuning.claims === null) return undefined;
    const text = node.disk.textOf(FILE);
    if (text === seen.get(node.name)) return undefined;
    seen.set(node.name, text);
    try {
      recorded(node);
      return undefined;
    } catch (error) {
      return `${node.name}: ${FILE} cannot be read: ${messageOf(error)}`;
    }
  };
  return { name: 'claims-are-readable', beat: look, booted: look };
}

/** A driver prepares what is on disk already, for pods that it is reserved for; it unprepares what no container runs with. */
function claimsAreKept(): Checker {
  /** CDI devices, by node, pod, container and attempt. */
  const held = new Map<string, readonly string[]>();
  const users = (s: Scene, uid: string, dump: HollowDump) =>
    dump.containers.filter(
      (c) =>
        c.state === 'CONTAINER_RUNNING' &&
        held.get(`${s.node.name} ${c.podUid} ${c.name} ${c.attempt}`)?.some((name) => cdiOf(name)?.uid === uid) === true,
    );
  return {
    name: 'claims-are-kept',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || s.node.tuning.claims === null) return undefined;
      const { uid, name, attempt, cdi } = created(s, call);
      held.set(`${s.node.name} ${uid} ${name} ${attempt}`, cdi);
      return undefined;
    },
    prepares(s, { driver, method, uid }) {
      const who = `${s.node.name}: ${method} of claim ${uid} by ${driver}`;
      if (method === 'NodeUnprepareResources') {
        const [user] = users(s, uid, s.node.runtime.hollow.dump());
        return user === undefined ? undefined : `${who} while container ${user.id} (${user.name} of ${user.podUid}) runs with it`;
      }
      const record = [...recorded(s.node).values()].find((r) => r.uid === uid);
      if (record === undefined || record.pods.size === 0) return `${who}, which is not on disk`;
      const stranger = [...record.pods].find((pod) => s.environment.wasReserved(uid, pod) !== true);
      return stranger === undefined ? undefined : `${who} for pod ${stranger}, which it was never reserved for`;
    },
  };
}

/** A container is made with devices of each claim that it names, prepared and reserved for its pod, and of no other. */
function claimsComeWithContainers(): Checker {
  return {
    name: 'claims-come-with-containers',
    arrived(s, call) {
      if (call.method !== 'CreateContainer' || call.boot !== s.node.boots || s.node.tuning.claims === null) return undefined;
      const { uid, name, cdi } = created(s, call);
      const pod = podOf(s, uid);
      const container = pod?.spec.containers.find((c) => c.name === name);
      if (pod === undefined || container === undefined) return undefined;
      const who = `${s.node.name}: ${name} of pod ${pod.metadata.name} (${uid})`;
      const claims = new Set<string>();
      for (const id of cdi) {
        const of = cdiOf(id);
        if (of === null) continue;
        claims.add(of.uid);
        if (!s.environment.wasReserved(of.uid, uid)) return `${who} is made with ${id}, a claim that was never reserved for its pod`;
        const ready = [...s.node.dra.sockets.values()].some((d) => d.name === of.driver && d.prepared.has(of.uid));
        if (!ready) return `${who} is made with ${id}, which is not prepared`;
      }
      const asked = container.resources?.claims?.length ?? 0;
      return claims.size === asked ? undefined : `${who} names ${asked} claims, and is made with [${[...claims].join(' ')}]`;
    },
  };
}

function created(s: Scene, call: Parameters<NonNullable<Checker['arrived']>>[1]) {
  const { config } = call.req as {
    config?: { metadata?: { name?: string; attempt?: number }; CDIDevices?: readonly { name?: string }[] };
  };
  const { name = '', attempt = 0 } = config?.metadata ?? {};
  const { uid } = targetOf(call, s.node.runtime.hollow.dump());
  return { uid, name, attempt, cdi: (config?.CDIDevices ?? []).map((d) => d.name ?? '') };
}

/** In fair weather every driver is known, and what is prepared or on disk is of a pod that is there. */
export function claimsUnsettled(node: SimNode, o: { tree: SupervisionTree; uids: ReadonlySet<string> }): string[] {
  const { claims } = node.tuning;
  if (claims === null) return [];
  const known = [...(o.tree.registry.read(draDriversView)?.value.values() ?? [])].map((d) => d.driver);
  const found = claims.drivers.filter((driver) => !known.includes(driver)).map((driver) => `DRA driver ${driver} is not registered`);
  const records = [...recorded(node).values()];
  const statuses = o.tree.registry.read(statusesView)?.value;
  const hasEnded = (pod: string): boolean => ['Succeeded', 'Failed'].includes(statuses?.get(pod)?.status.phase ?? '');
  for (const { name, pods } of records)
    for (const pod of pods) if (!o.uids.has(pod) || hasEnded(pod)) found.push(`claim ${name} is on disk for pod ${pod}, which has ended`);
  for (const { name, prepared } of node.dra.sockets.values())
    for (const uid of prepared) if (!records.some((r) => r.uid === uid)) found.push(`claim ${uid} is still prepared by ${name}`);
  return found;
}
