/** What a daemon knows of its node, and where the API server shows something else. Pure. */

import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { versionShown } from '@actorlet/kubelet/machines/api/node/nodeObject.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { manifestOf, manifestsView } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

export interface NodeFactsPage {
  name: string;
  version: string;
  /** The daemon's own kubeconfig; '' for a standalone node. */
  kubeconfig: string;
  startedAtMs: number;
  runtime: { name: string; version: string; ready: boolean; networkReady: boolean; reason: string };
  /** `MemoryPressure` and the like, as the daemon sees them. */
  pressures: string[];
  /** Null: a standalone node. */
  api: { state: string; server: string; reason: string; sinceMs: number } | null;
  registered: { uid: string; registered: boolean; deleting: boolean } | null;
  /** `manifest`: the file of a static pod. Absent: its source is no file, or the file is gone. */
  pods: { uid: string; namespace: string; name: string; source: string; phase: string; manifest?: string }[];
}

/** `kubeconfig`: of the daemon. */
export function nodePage(m: Moment, kubeconfig = ''): NodeFactsPage {
  const cri = m.read(criView);
  const link = m.read(apiView.link);
  const node = m.read(apiView.node);
  const statuses = m.read(statusesView);
  const manifests = m.read(manifestsView);
  return {
    name: m.name,
    version: m.version,
    kubeconfig,
    startedAtMs: m.startedAtMs ?? 0,
    runtime: {
      name: cri?.runtimeName ?? '',
      version: cri?.runtimeVersion ?? '',
      ready: cri?.state === 'ready' && cri.runtimeReady,
      networkReady: cri?.networkReady ?? false,
      reason: cri?.reason || cri?.networkReason || cri?.remark || '',
    },
    pressures: [...(m.read(pressureView)?.pressures ?? [])],
    api: link === undefined ? null : { state: link.state, server: link.server, reason: link.reason, sinceMs: link.sinceMs },
    registered: node === undefined ? null : { uid: node.uid, registered: node.registered, deleting: node.deleting },
    pods: [...(m.read(podsView)?.records ?? [])].map(([uid, record]) => {
      const { namespace, name } = record.pod.metadata;
      const manifest = record.source === 'file' ? manifestOf(manifests, { namespace, name }) : undefined;
      return {
        ...{ uid, namespace, name, source: record.source },
        phase: statuses?.get(uid)?.status.phase ?? record.pod.status?.phase ?? 'Pending',
        ...(manifest === undefined ? {} : { manifest }),
      };
    }),
  };
}

/** The parts of the API's objects that are compared. */
export interface ApiNode {
  uid: string;
  unschedulable: boolean;
  kubeletVersion: string;
  runtimeVersion: string;
  conditions: readonly { type: string; status: string; reason: string; message: string }[];
  taints: readonly string[];
  /** Null: there is no Lease. */
  lease: { renewMs: number; durationS: number } | null;
  pods: readonly { uid: string; namespace: string; name: string; phase: string; mirror: boolean; deleting: boolean }[];
}

export interface Compared {
  what: string;
  api: string;
  daemon: string;
  differs: boolean;
}

const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** One row per fact that both sides have. */
export function compareNode(known: NodeFactsPage, api: ApiNode, nowMs: number): Compared[] {
  const row = (what: string, shown: string, own: string): Compared => ({ what, api: shown, daemon: own, differs: shown !== own });
  const status = (type: string): string => api.conditions.find((c) => c.type === type)?.status ?? 'unset';
  const ready = known.runtime.ready && known.runtime.networkReady;
  const runtime = known.runtime.name === '' ? '' : `${known.runtime.name}://${versionShown(known.runtime.version)}`;
  return [
    row('uid', api.uid, known.registered?.uid || 'none yet'),
    row('version', api.kubeletVersion, known.version),
    ...(runtime === '' ? [] : [row('runtime', api.runtimeVersion, runtime)]),
    row('Ready', status('Ready'), ready ? 'True' : 'False'),
    ...PRESSURES.map((type) => row(type, status(type), known.pressures.includes(type) ? 'True' : 'False')),
    leaseRow(api, nowMs),
    ...podRows(known, api),
  ];
}

function leaseRow({ lease }: ApiNode, nowMs: number): Compared {
  if (lease === null) return { what: 'lease', api: 'none', daemon: 'renews it', differs: true };
  const ageMs = nowMs - lease.renewMs;
  const late = ageMs > lease.durationS * 1000;
  const shown = `renewed ${shortDuration(ageMs)} ago`;
  return { what: 'lease', api: late ? `${shown}, expired` : shown, daemon: `renews it within ${lease.durationS}s`, differs: late };
}

/** Pods that one side has and the other has not, and those whose phases differ. Static pods are mirrored under another UID. */
function podRows(known: NodeFactsPage, api: ApiNode): Compared[] {
  const own = new Map(known.pods.map((p) => [p.source === 'api' ? p.uid : `${p.namespace}/${p.name}`, p]));
  const rows: Compared[] = [];
  for (const pod of api.pods) {
    const key = pod.mirror ? `${pod.namespace}/${pod.name}` : pod.uid;
    const mine = own.get(key);
    own.delete(key);
    const over = pod.phase === 'Succeeded' || pod.phase === 'Failed';
    const shown = `${pod.phase}${pod.deleting ? ', deleting' : ''}`;
    if (mine === undefined && over) continue;
    rows.push({
      what: `pod ${pod.namespace}/${pod.name}`,
      api: shown,
      daemon: mine?.phase ?? 'unknown',
      differs: mine?.phase !== pod.phase,
    });
  }
  for (const mine of own.values()) {
    rows.push({ what: `pod ${mine.namespace}/${mine.name}`, api: 'none', daemon: mine.phase, differs: true });
  }
  return rows.sort((a, b) => Number(a.what.startsWith('pod ')) - Number(b.what.startsWith('pod ')) || (a.what < b.what ? -1 : 1));
}
