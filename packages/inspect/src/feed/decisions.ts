/** What the node has decided about pods, images, CPUs and devices, as far as its actors publish it. */

import { claimStepsView, claimsView } from '@actorlet/kubelet/machines/allocation/claims/messages.ts';
import { type TopologyDecisions, topologyView } from '@actorlet/kubelet/machines/allocation/coordinator/messages.ts';
import { formatCpuSet } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import { cpusView } from '@actorlet/kubelet/machines/allocation/cpus/messages.ts';
import { devicesView } from '@actorlet/kubelet/machines/allocation/devices/messages.ts';
import { NODE_PRESSURES } from '@actorlet/kubelet/machines/nodeFacts.ts';
import {
  evictionOf,
  isRefused,
  type PodRecord,
  podManagerAddr,
  podsView,
  refusalOf,
} from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { imagesOf } from '@actorlet/shown/src/moment/images.ts';
import { claimWords } from '@actorlet/shown/src/why/whyClaims.ts';
import type { DecisionsFrame } from './frames.ts';

const EVICTION = 'node/reclaim/eviction';
const LIST_MAX = 120;
const NOTES_MAX = 60;

export function decisionsFrame(m: Moment): DecisionsFrame {
  const wallOffset = m.nowMs - m.monoMs;
  const pods = m.read(podsView)?.records;
  const records = [...(pods ?? [])];
  const statuses = m.read(statusesView);
  const pressure = m.read(pressureView);
  const cpus = m.read(cpusView)?.ledger;
  const devices = m.read(devicesView);
  const topology = m.read(topologyView);
  const podName = (uid: string): string => {
    const pod = pods?.get(uid)?.pod.metadata;
    return pod === undefined ? uid : `${pod.namespace}/${pod.name}`;
  };
  const judged = (pick: (r: PodRecord) => boolean) =>
    records.flatMap(([uid, record]) => {
      if (!pick(record)) return [];
      const said = evictionOf(record) ?? refusalOf(record) ?? statuses?.get(uid)?.status;
      return [{ uid, name: podName(uid), reason: said?.reason ?? '', message: said?.message ?? '' }];
    });
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
    ...claimsOf(m, podName),
    ...(topology === undefined ? {} : { numa: numaOf(topology) }),
    devices: Object.keys(devices?.capacity ?? {}).map((resource) => ({
      resource,
      capacity: devices?.capacity[resource] ?? '',
      allocatable: devices?.allocatable[resource] ?? '',
    })),
    images: imagesOf(m).slice(0, LIST_MAX),
    notes: m.recorder({}).entries.filter(isDecision).slice(-NOTES_MAX),
  };
}

/** Those about which something is under way first. */
function claimsOf(m: Moment, podName: (uid: string) => string): Pick<DecisionsFrame, 'claims'> {
  const [records, steps] = [m.read(claimsView), m.read(claimStepsView)];
  if (records === undefined) return {};
  const keys = new Set([...(steps?.keys() ?? []), ...records.keys()]);
  const claims = [...keys].slice(0, LIST_MAX).map((claim) => ({
    claim,
    pods: [...(records.get(claim)?.pods ?? [])].slice(0, LIST_MAX).map(podName),
    words: claimWords(claim, { records, steps }, m.nowMs),
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
