/** What the node has decided about pods, images, CPUs and devices, as far as its actors publish it. */

import { claimStepsView, claimsView } from '../../machines/allocation/claims/messages.ts';
import { type TopologyDecisions, topologyView } from '../../machines/allocation/coordinator/messages.ts';
import { formatCpuSet } from '../../machines/allocation/cpuSet.ts';
import { cpusView } from '../../machines/allocation/cpus/messages.ts';
import { devicesView } from '../../machines/allocation/devices/messages.ts';
import { NODE_PRESSURES } from '../../machines/nodeFacts.ts';
import { evictionOf, isRefused, type PodRecord, podManagerAddr, podsView, refusalOf } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { pressureView } from '../../machines/reclaim/eviction/messages.ts';
import { imageLedger } from '../../machines/reclaim/imageGc/imageGc.ts';
import type { RecorderEntry } from '../../machines/shown/recorderEntry.ts';
import { claimWords } from '../../machines/shown/why/whyClaims.ts';
import type { Inspected } from '../../recorder/source.ts';
import type { DecisionsFrame } from './frames.ts';

const EVICTION = 'node/reclaim/eviction';
const LIST_MAX = 120;
const NOTES_MAX = 60;

export function decisionsFrame(node: Inspected): DecisionsFrame {
  const { registry } = node.tree;
  const monoMs = node.clock.monoMs();
  const wallOffset = node.clock.wallMs() - monoMs;
  const records = [...(registry.read(podsView)?.value.records ?? [])];
  const statuses = registry.read(statusesView)?.value;
  const pressure = registry.read(pressureView)?.value;
  const cpus = registry.read(cpusView)?.value.ledger;
  const devices = registry.read(devicesView)?.value;
  const topology = registry.read(topologyView)?.value;
  const images = [...(registry.read(imageLedger)?.value.records ?? [])];
  const podName = (uid: string): string => {
    const pod = registry.read(podsView)?.value.records.get(uid)?.pod.metadata;
    return pod === undefined ? uid : `${pod.namespace}/${pod.name}`;
  };
  const judged = (pick: (r: PodRecord) => boolean) =>
    records.flatMap(([uid, record]) => {
      if (!pick(record)) return [];
      const said = evictionOf(record) ?? refusalOf(record) ?? statuses?.get(uid)?.status;
      return [{ uid, name: podName(uid), reason: said?.reason ?? '', message: said?.message ?? '' }];
    });
  const since = (ms: number): number => Math.max(0, Math.round(monoMs - ms));
  return {
    t: 'decisions',
    pressures: pressure === undefined ? [] : NODE_PRESSURES.map((name) => ({ name, present: pressure.pressures.includes(name) })),
    thresholds: [...(pressure?.ledger.sinceMs ?? [])].map(([key, ms]) => ({
      key,
      met: pressure?.ledger.met.has(key) === true,
      sinceMs: Math.round(ms + wallOffset),
    })),
    refused: judged((r) => isRefused(r) || refusalOf(r) !== null).slice(0, LIST_MAX),
    evicted: judged((r) => evictionOf(r) !== null).slice(0, LIST_MAX),
    cpus:
      cpus === undefined
        ? null
        : {
            shared: formatCpuSet(cpus.shared),
            alone: [...cpus.entries].flatMap(([uid, containers]) =>
              [...containers].map(([container, set]) => ({ pod: podName(uid), container, cpus: formatCpuSet(set) })),
            ),
          },
    ...claimsOf(node, podName),
    ...(topology === undefined ? {} : { numa: numaOf(topology) }),
    devices: Object.keys(devices?.capacity ?? {}).map((resource) => ({
      resource,
      capacity: devices?.capacity[resource] ?? '',
      allocatable: devices?.allocatable[resource] ?? '',
    })),
    images: images
      .sort(([, a], [, b]) => finite(a.lastUsedMs) - finite(b.lastUsedMs))
      .slice(0, LIST_MAX)
      .map(([id, r]) => ({
        id,
        sizeBytes: r.sizeBytes,
        unusedMs: Number.isFinite(r.lastUsedMs) ? since(r.lastUsedMs) : -1,
        foundMs: Number.isFinite(r.firstDetectedMs) ? since(r.firstDetectedMs) : -1,
        pinned: r.pinned,
      })),
    notes: node.recorder.last(NOTES_MAX, isDecision),
  };
}

/** Those about which something is under way first. */
function claimsOf({ tree: { registry }, clock }: Inspected, podName: (uid: string) => string): Pick<DecisionsFrame, 'claims'> {
  const [records, steps] = [registry.read(claimsView)?.value, registry.read(claimStepsView)?.value];
  if (records === undefined) return {};
  const keys = new Set([...(steps?.keys() ?? []), ...records.keys()]);
  const claims = [...keys].slice(0, LIST_MAX).map((claim) => ({
    claim,
    pods: [...(records.get(claim)?.pods ?? [])].slice(0, LIST_MAX).map(podName),
    words: claimWords(claim, { records, steps }, clock.wallMs()),
  }));
  return { claims };
}

/** The newest first. */
function numaOf(topology: TopologyDecisions): NonNullable<DecisionsFrame['numa']> {
  return [...topology.values()]
    .reverse()
    .flatMap(({ pod, decisions }) => decisions.map(({ container, affinity: _, ...d }) => ({ pod, container: container ?? '', ...d })))
    .slice(0, LIST_MAX);
}

/** What workers report to the pod manager is no decision. Passes that find nothing to do come and go all the time: their states say nothing. */
function isDecision(e: RecorderEntry): boolean {
  if (e.path === EVICTION) return true;
  if (e.path === podManagerAddr.path) return e.kind !== 'message' || e.what === 'pods.op';
  return e.path.startsWith('node/reclaim/') && e.kind !== 'transition';
}

function finite(ms: number): number {
  return Number.isFinite(ms) ? ms : -1;
}
