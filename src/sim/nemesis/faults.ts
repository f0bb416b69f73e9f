/**
 * The schedule of a run: faults in the language of `machines/faults`, each at its moment, and the workload. Plain data: it
 * can be printed, given back, and cut in half to find what matters.
 */
import { describeFault as describeSpec } from '../../machines/faults/describe.ts';
import type { FaultSpec } from '../../machines/faults/types.ts';
import type { SimPod } from './pods.ts';

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

export type WorkloadAct =
  | { kind: 'pod.put'; pod: SimPod; source: 'file' | 'http' }
  | { kind: 'pod.remove'; name: string }
  /** The file of a pod is cut short. */
  | { kind: 'pod.break'; name: string }
  | { kind: 'pod.mend' };

/** One entry without its moment. */
export type FaultAct = FaultSpec | WorkloadAct;
export type Fault = FaultEntry | WorkloadEntry;
export type FaultEntry = When & FaultSpec;
export type WorkloadEntry = Omit<When, 'name'> & WorkloadAct;
export type FaultKind = FaultAct['kind'];

export function isWorkload(f: Fault): f is WorkloadEntry {
  return f.kind === 'pod.put' || f.kind === 'pod.remove' || f.kind === 'pod.break' || f.kind === 'pod.mend';
}

function describeWorkload(f: WorkloadEntry): string {
  if (f.kind === 'pod.mend') return f.kind;
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
