/**
 * The schedule of a run: faults in the language of `machines/faults`, each at its moment, and the workload. Plain data: it
 * can be printed, run again, and cut in half to find what matters.
 */
import { describeFault as describeSpec } from '@actorlet/faults/src/describe.ts';
import type { FaultSpec } from '@actorlet/faults/src/types.ts';
import { type SimObject, type SimPod, versionText } from './workload/subjects.ts';

interface When {
  /** Position in the schedule as drawn: names the fault in reports and its own chance. */
  id: number;
  node: number;
  /** Virtual milliseconds after the faults begin. */
  atMs: number;
  /** Steps of the world after that moment: the same instant has many. */
  afterSteps: number;
  /** How long it lasts; 0 for what happens in one instant. */
  forMs: number;
  /** Its name in the scenario it comes from; drawn faults have none. */
  name?: string;
}

/** `api`: created in the API server and bound to the node. */
export type PodSource = 'file' | 'http' | 'api';
/** What somebody else writes to a pod's object: a condition of their own, a Ready that is not so, a label. */
export type Meddling = 'condition' | 'ready' | 'label' | Resizing;
/** Or ask for other resources of a container. */
export type Resizing = 'resize.less' | 'resize.more' | 'resize.most' | 'resize.never';

export type WorkloadAct =
  | { kind: 'pod.put'; pod: SimPod; source: PodSource }
  | { kind: 'pod.remove'; name: string }
  /** The file of a pod is cut short. */
  | { kind: 'pod.break'; name: string }
  | { kind: 'pod.mend' }
  /** In the API, by a user: a pod of the API, or the mirror of a static one. Null: the pod's own grace; 0: by force. */
  | { kind: 'pod.delete'; name: string; graceSeconds: number | null }
  | { kind: 'pod.meddle'; name: string; what: Meddling }
  /** A person asks for its restart, or for that of one container: `container` is its place in the pod, -1 for all. */
  | { kind: 'pod.restart'; name: string; container: number }
  /** A user makes a config map or secret, or gives it another content. */
  | { kind: 'object.put'; object: SimObject }
  | { kind: 'object.remove'; object: Pick<SimObject, 'kind' | 'name'> }
  /** The API server forgets its history: watches from before are answered with 410. */
  | { kind: 'history.compact' }
  /** For a while its lists are older than what was seen. */
  | { kind: 'history.behind' }
  /** The directory of manifests is not there for a while. */
  | { kind: 'manifests.away' }
  /** Another directory with the same manifests takes its place. */
  | { kind: 'manifests.swap' }
  /** For a while the probes that go over the network find nothing healthy. */
  | { kind: 'probes.fail' }
  /** For a while the runtime answers questions about a container's memory without figures. */
  | { kind: 'figures.away' }
  /** Another writer puts another address of the node into its object. */
  | { kind: 'node.moved' }
  /** Messages that the protocol has and no actor sends yet: a listing that is asked for, more hints than a mailbox holds, an eviction that hurries a stop. */
  | { kind: 'ask.listing' }
  | { kind: 'ask.flood' }
  | { kind: 'ask.unknown' }
  | { kind: 'ask.hurry' }
  /** Whether the API server is there, and that the node's status be reported. */
  | { kind: 'ask.api' }
  /** The certificates it serves with are looked at, twice at once: two were renewed. */
  | { kind: 'ask.certificates' };

/** One entry without its moment. */
export type FaultAct = FaultSpec | WorkloadAct;
export type Fault = FaultEntry | WorkloadEntry;
export type FaultEntry = When & FaultSpec;
export type WorkloadEntry = Omit<When, 'name'> & WorkloadAct;
export type FaultKind = FaultAct['kind'];

const WORKLOAD: ReadonlySet<FaultKind> = new Set<WorkloadAct['kind']>([
  'pod.put',
  'pod.remove',
  'pod.break',
  'pod.mend',
  'pod.delete',
  'pod.meddle',
  'pod.restart',
  'object.put',
  'object.remove',
  'history.compact',
  'history.behind',
  'manifests.away',
  'manifests.swap',
  'probes.fail',
  'figures.away',
  'node.moved',
  'ask.listing',
  'ask.flood',
  'ask.unknown',
  'ask.hurry',
  'ask.api',
  'ask.certificates',
]);

export function isWorkload(f: Fault): f is WorkloadEntry {
  return WORKLOAD.has(f.kind);
}

function describeWorkload(f: WorkloadEntry): string {
  if (f.kind === 'object.put') return `${f.kind} ${f.object.kind} ${versionText(f.object)}`;
  if (f.kind === 'object.remove') return `${f.kind} ${f.object.kind} ${f.object.name}`;
  if (!('name' in f) && f.kind !== 'pod.put') return f.kind;
  if (f.kind === 'pod.delete') return `${f.kind} ${f.name} grace ${f.graceSeconds ?? 'of its own'}`;
  if (f.kind === 'pod.restart') return `${f.kind} ${f.name}${f.container < 0 ? '' : ` container ${f.container}`}`;
  if (f.kind === 'pod.meddle') return `${f.kind} ${f.name} ${f.what}`;
  if (f.kind !== 'pod.put') return `${f.kind} ${f.name}`;
  const { name, rev, fate, restartPolicy, containers, uid } = f.pod;
  return `${f.kind} ${name}#${rev}(${fate},${restartPolicy},${containers.join('+')}${uid === undefined ? '' : ',own-uid'}) by ${f.source}`;
}

/** One line for people. */
export function describeFault(f: Fault): string {
  const steps = f.afterSteps === 0 ? '' : `/${f.afterSteps}`;
  const lasts = f.forMs === 0 ? '' : ` for ${(f.forMs / 1000).toFixed(3)}s`;
  const name = isWorkload(f) || f.name === undefined ? '' : ` (${f.name})`;
  return `#${f.id} +${(f.atMs / 1000).toFixed(3)}s${steps}${lasts} n${f.node + 1} ${isWorkload(f) ? describeWorkload(f) : describeSpec(f)}${name}`;
}
