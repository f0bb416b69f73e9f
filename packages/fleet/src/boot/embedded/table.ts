/** Tables of nodes, pods and events, with the columns that a cluster's kubectl shows. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { type KubectlPod, kubectlPod } from '@actorlet/shown/src/pods/kubectlPod.ts';

/** As kubectl asks for what it prints; undefined: of this kind there is none. */
export function tableOf(body: unknown, nowMs: number): object | undefined {
  if (!isRecord(body)) return undefined;
  const isList = Array.isArray(body.items);
  const objects = (isList ? body.items : [body]) as KubeObject[];
  const columns = COLUMNS[String(body.kind).replace(/List$/, '')];
  if (columns === undefined) return undefined;
  const columnDefinitions = Object.keys(columns).map((name) => ({ name, type: 'string', format: '', description: '', priority: 0 }));
  const rows = objects.map((object) => {
    const { name, namespace, uid, creationTimestamp, labels, resourceVersion } = object.metadata;
    const metadata = { name, namespace, uid, resourceVersion, creationTimestamp, labels };
    const cells = Object.values(columns).map((cell) => shownBy(cell, object, nowMs));
    return { cells, object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } };
  });
  return { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata: isList ? (body.metadata ?? {}) : {}, columnDefinitions, rows };
}

type Cell = (object: KubeObject, nowMs: number) => string;

/** What a client wrote into a status is not checked: one that is odd is no trouble of the other rows. */
function shownBy(cell: Cell, object: KubeObject, nowMs: number): string {
  try {
    return printable(cell(object, nowMs));
  } catch {
    return '<invalid>';
  }
}

interface PodSpecShown {
  nodeName?: string;
  containers?: unknown[];
  initContainers?: { name: string; restartPolicy?: string }[];
}
interface NodeShown {
  conditions?: { type: string; status: string }[];
  nodeInfo?: { kubeletVersion?: string };
}
interface EventShown {
  type?: string;
  reason?: string;
  message?: string;
  lastTimestamp?: string;
  eventTime?: string;
  involvedObject?: { kind?: string; name?: string };
}
const specOf = <T>(object: KubeObject): T => (object.spec ?? {}) as T;
const statusOf = <T>(object: KubeObject): T => (object.status ?? {}) as T;
const shown = (object: KubeObject): KubectlPod =>
  kubectlPod({
    spec: specOf<PodSpecShown>(object),
    status: statusOf<Partial<PodStatus>>(object),
    deleted: object.metadata.deletionTimestamp !== undefined,
  });

const sinceOf = (time: unknown, nowMs: number): string => {
  const ms = Date.parse(String(time ?? ''));
  return Number.isNaN(ms) ? '<unknown>' : shortDuration(Math.max(0, Math.round((nowMs - ms) / 1_000) * 1_000)).replace(/^0ms$/, '0s');
};
const name: Cell = ({ metadata }) => metadata.name;
const age: Cell = ({ metadata }, nowMs) => sinceOf(metadata.creationTimestamp, nowMs);

const COLUMNS: Readonly<Record<string, Readonly<Record<string, Cell>>>> = {
  Node: {
    Name: name,
    Status: (o) => {
      const ready = statusOf<NodeShown>(o).conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
      return `${ready ? 'Ready' : 'NotReady'}${specOf<{ unschedulable?: boolean }>(o).unschedulable === true ? ',SchedulingDisabled' : ''}`;
    },
    Age: age,
    Version: (o) => statusOf<NodeShown>(o).nodeInfo?.kubeletVersion ?? '',
  },
  Pod: {
    Name: name,
    Ready: (o) => `${shown(o).ready}/${shown(o).containers}`,
    Status: (o) => shown(o).status,
    Restarts: (o) => String(shown(o).restarts),
    Node: (o) => specOf<PodSpecShown>(o).nodeName ?? '<none>',
    Age: age,
  },
  Event: {
    'Last Seen': (o, nowMs) => sinceOf(eventOf(o).lastTimestamp ?? eventOf(o).eventTime ?? o.metadata.creationTimestamp, nowMs),
    Type: (o) => eventOf(o).type ?? '',
    Reason: (o) => eventOf(o).reason ?? '',
    Object: (o) => `${eventOf(o).involvedObject?.kind?.toLowerCase() ?? ''}/${eventOf(o).involvedObject?.name ?? ''}`,
    Message: (o) => eventOf(o).message?.trim() ?? '',
  },
};

function eventOf(object: KubeObject): EventShown {
  return object as EventShown;
}
