/** Invariants about the CPUs that a node allocates (resources and volumes 2.2). */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import {
  type CpuSet,
  cpuSet,
  formatCpuSet,
  parseCpuSet,
  sameSet,
  shared,
  union,
  without,
} from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import { CPU_STATE_FILE, decodeCpuState } from '@actorlet/kubelet/machines/allocation/cpus/file.ts';
import { type CpuEntries, cpusOf } from '@actorlet/kubelet/machines/allocation/cpus/ledger.ts';
import { quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { hasPodLevel } from '@actorlet/kubelet/machines/pod/resources/podLevel.ts';
import { qosClass } from '@actorlet/kubelet/machines/pod/resources/qos.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { CriRequest } from '@actorlet/kubelet/machines/wire/criCalls.ts';

import type { HollowContainerDump, HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { type Checker, type Scene, targetOf } from '../checker.ts';

const FILE = `${ROOT_DIR}/${CPU_STATE_FILE}`;

/** Whole CPUs of a Guaranteed pod's container; 0: it shares. */
function asked(pod: Pod, name: string): number {
  const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((c) => c.name === name);
  const milli = quantityToMilli(container?.resources?.requests?.cpu);
  return qosClass(pod) === 'Guaranteed' && !hasPodLevel(pod) && milli % 1_000 === 0 ? milli / 1_000 : 0;
}

function recordOf(node: SimNode, uid: string) {
  return node.daemon?.tree.registry.read(podsView)?.value.records.get(uid);
}
function online({ count }: CpuTuning): CpuSet {
  return Array.from({ length: count }, (_, id) => id);
}
/** Null: there is no file, or it does not say. */
function written(node: SimNode): { shared: CpuSet; entries: CpuEntries } | null {
  const read = decodeCpuState(node.disk.textOf(FILE) ?? '');
  return read.ok ? read.ledger : null;
}
/** What the runtime was last told of it. */
function configuredCpus(c: HollowContainerDump): CpuSet {
  return parseCpuSet(c.resources.cpusetCpus ?? '') ?? [];
}

/** A container that the runtime is about to be told a set of CPUs for. */
interface Told {
  uid: string;
  name: string;
  /** By which it is found again. */
  key: string;
  cpus: string | undefined;
}
const keyOf = (c: { sandboxId: string; name: string; attempt: number }): string => `${c.sandboxId} ${c.name} ${c.attempt}`;

function told(call: Parameters<NonNullable<Checker['arrived']>>[1], dump: HollowDump): Told | null {
  if (call.method === 'CreateContainer') {
    const { config, podSandboxId: sandboxId } = call.req as CriRequest<'CreateContainer'>;
    const { name = '', attempt = 0 } = config.metadata ?? {};
    return { uid: targetOf(call, dump).uid, name, key: keyOf({ sandboxId, name, attempt }), cpus: config.linux?.resources?.cpusetCpus };
  }
  if (call.method !== 'UpdateContainerResources') return null;
  const { containerId, linux } = call.req as CriRequest<'UpdateContainerResources'>;
  const c = dump.containers.find((one) => one.id === containerId);
  // A container that has ended since it was listed has none any more; other changes of a container leave its CPUs alone.
  return c?.state !== 'CONTAINER_RUNNING' || !linux?.cpusetCpus
    ? null
    : { uid: c.podUid, name: c.name, key: keyOf(c), cpus: linux.cpusetCpus };
}

/**
 * A container that is to have CPUs alone is given as many as it asked for, none of the system's, none that another has that
 * runs, the same when it starts again, and none that is not on disk as its own by then. One that shares is given what is
 * shared: under a strict reservation nothing of the system's.
 */
export function cpusAreGivenOnce(): Checker {
  /** Containers by node and key that were made to have theirs alone. */
  const alone = new Set<string>();
  const wrong = (s: Scene, { uid, name, key, cpus: text }: Told, dump: HollowDump, created: boolean): string | undefined => {
    const { node } = s;
    const { cpus: tuning } = node.tuning;
    if (tuning === null) return text ? `has CPUs ${text}, and none are allocated` : undefined;
    const record = recordOf(node, uid);
    const set = parseCpuSet(text ?? '') ?? [];
    if (set.length === 0) return 'is on no CPUs of its own, nor on those that are shared';
    if (without(set, online(tuning)).length > 0) return `is on CPUs ${text}, and there are ${tuning.count}`;
    const n = record === undefined ? 0 : asked(record.pod, name);
    const system = shared(set, tuning.reserved);
    if (system.length > 0 && (n > 0 || tuning.options.includes('strict-cpu-reservation')))
      return `is on CPUs ${text}, and ${formatCpuSet(system)} are the system's`;
    if (n === 0) return undefined;
    if (set.length !== n) return `asked for ${n} CPUs alone, and is on ${text}`;
    const kept = written(node)?.entries.get(uid)?.get(name);
    if (kept === undefined || !sameSet(kept, set)) return `is on CPUs ${text} alone, and ${FILE} has ${formatCpuSet(kept ?? [])} for it`;
    for (const other of dump.containers) {
      const its = configuredCpus(other);
      if (created && keyOf(other).startsWith(`${key.slice(0, key.lastIndexOf(' '))} `) && its.length === n && !sameSet(its, set))
        return `is on CPUs ${text} alone when it starts again, and was on ${formatCpuSet(its)}`;
      if (other.state !== 'CONTAINER_RUNNING' || keyOf(other) === key || !alone.has(`${node.name} ${keyOf(other)}`)) continue;
      // What comes late of a pod that has ended is stopped when it is seen.
      const phase = recordOf(node, other.podUid)?.worker?.phase;
      if (phase === 'terminated' || phase === 'finished' || shared(its, set).length === 0) continue;
      return `is on CPUs ${text} alone, and ${other.name} of pod ${other.podUid} runs on ${formatCpuSet(its)} alone`;
    }
    if (created) alone.add(`${node.name} ${key}`);
    return undefined;
  };
  return {
    name: 'cpus-are-given-once',
    arrived(s, call) {
      if (call.boot !== s.node.boots) return undefined;
      const dump = s.node.runtime.hollow.dump();
      const what = told(call, dump);
      const found = what === null ? undefined : wrong(s, what, dump, call.method === 'CreateContainer');
      return found === undefined ? undefined : `${s.node.name}: container ${what?.name} of pod ${what?.uid} ${found}`;
    },
  };
}

/**
 * In fair weather the state file, the runtime and what pods asked for agree: a container that is to have CPUs alone has them, all
 * others have the rest, and nothing is held by a pod that is over.
 */
export function cpusUnsettled(node: SimNode, o: { tree: SupervisionTree; dump: HollowDump }): string[] {
  const { cpus: tuning } = node.tuning;
  if (tuning === null) return [];
  const ledger = written(node);
  if (ledger === null) return [`${FILE} does not say which CPUs are allocated`];
  const found: string[] = [];
  const records = o.tree.registry.read(podsView)?.value.records;
  let handedOut: CpuSet = [];
  for (const [uid, containers] of ledger.entries) {
    const phase = records?.get(uid)?.worker?.phase;
    const own = union(...containers.values());
    if (phase === undefined || phase === 'terminated' || phase === 'finished')
      found.push(`CPUs ${formatCpuSet(own)} are still held for pod ${uid}, whose worker is ${phase ?? 'gone'}`);
    const twice = shared(own, union(handedOut, tuning.reserved));
    if (twice.length > 0) found.push(`CPUs ${formatCpuSet(twice)} of pod ${uid} are those of another, or the system's`);
    handedOut = union(handedOut, own);
  }
  const strict = tuning.options.includes('strict-cpu-reservation');
  const left = without(online(tuning), union(handedOut, strict ? tuning.reserved : []));
  if (!sameSet(left, cpuSet(ledger.shared)))
    found.push(`CPUs ${formatCpuSet(ledger.shared)} are shared, and ${formatCpuSet(left)} are not allocated`);
  for (const c of o.dump.containers) {
    const pod = records?.get(c.podUid)?.pod;
    if (c.state !== 'CONTAINER_RUNNING' || pod === undefined) continue;
    const n = asked(pod, c.name);
    const { cpus, exclusive } = cpusOf(ledger, c.podUid, c.name);
    const who = `${c.name} of pod ${pod.metadata.name} (${c.podUid})`;
    if (exclusive !== n > 0 || (exclusive && cpus.length !== n))
      found.push(`${who} asked for ${n} CPUs alone, and ${exclusive ? formatCpuSet(cpus) : 'none'} are its own`);
    if (!sameSet(configuredCpus(c), cpus))
      found.push(`${who} runs on CPUs ${formatCpuSet(configuredCpus(c))}, and is to run on ${formatCpuSet(cpus)}`);
  }
  return found;
}
