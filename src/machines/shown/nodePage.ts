/** What a daemon knows of its node, and where the API server shows something else. Pure. */
import { shortDuration } from '../text/duration.ts';

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
  pods: { uid: string; namespace: string; name: string; source: string; phase: string }[];
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
  const runtime = known.runtime.name === '' ? '' : `${known.runtime.name}://${known.runtime.version}`;
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
