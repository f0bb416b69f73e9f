/** The faults and the workload of a run, as plain data: a schedule can be printed, given back, and cut in half to find what matters. */
import type { CriMethod } from '../../machines/cri.ts';
import type { SimPod } from './pods.ts';

interface When {
  /** Position in the schedule as drawn: names the fault in reports and its own chance. */
  id: number;
  node: number;
  /** Virtual milliseconds after the faults begin. */
  atMs: number;
  /** Steps of the world after that moment: the same instant has many. */
  afterSteps: number;
}

export type FaultAct =
  /** Calls of one method, or of all, while it lasts. */
  | {
      kind: 'cri';
      method: CriMethod | '*';
      action: 'delay' | 'error' | 'lost-without-effect' | 'lost-with-effect' | 'late-effect';
      probability: number;
      forMs: number;
      delayMs: number;
      code: number;
    }
  | { kind: 'hints'; action: 'drop' | 'duplicate' | 'reorder' | 'delay'; probability: number; forMs: number; delayMs: number }
  | { kind: 'hints.cut' }
  | { kind: 'runtime.down'; forMs: number }
  | { kind: 'network.down'; forMs: number }
  | { kind: 'disk.full'; forMs: number }
  | { kind: 'disk.slow'; forMs: number; delayMs: number }
  | { kind: 'disk.error'; forMs: number; probability: number; code: string }
  | { kind: 'disk.deaf'; forMs: number }
  | { kind: 'watch.break' }
  | { kind: 'http.down'; forMs: number; how: 'unreachable' | 'error' | 'garbage' }
  | { kind: 'clock.jump'; byMs: number }
  /** `pick` chooses among the actors alive at that moment, in [0, 1); `path` names one instead. */
  | { kind: 'actor.kill'; pick: number; among: 'any' | 'workers'; path?: string }
  | { kind: 'node.kill'; how: 'process' | 'power'; downMs: number }
  | { kind: 'node.stop'; downMs: number }
  | { kind: 'container.exit'; pick: number; exitCode: number; reason: string }
  | { kind: 'sandbox.stop'; pick: number }
  | { kind: 'pod.put'; pod: SimPod; source: 'file' | 'http' }
  | { kind: 'pod.remove'; name: string }
  | { kind: 'pod.break'; name: string }
  | { kind: 'pod.mend' };

export type Fault = When & FaultAct;
export type FaultKind = FaultAct['kind'];

/** One line for people. */
export function describeFault(f: Fault): string {
  const { id, node, atMs, afterSteps, kind, ...rest } = f;
  const details = Object.entries(rest).map(([k, v]) => {
    if (k === 'pod') {
      const pod = v as SimPod;
      return `pod=${pod.name}#${pod.rev}(${pod.fate},${pod.restartPolicy},${pod.containers.join('+')}${pod.uid === undefined ? '' : ',own-uid'})`;
    }
    return `${k}=${typeof v === 'number' && !Number.isInteger(v) ? v.toFixed(3) : String(v)}`;
  });
  return `#${id} +${(atMs / 1000).toFixed(3)}s${afterSteps === 0 ? '' : `/${afterSteps}`} n${node + 1} ${kind} ${details.join(' ')}`.trimEnd();
}
