/** A scenario as the schedule of one run: its windows on each node they are for, and its pods, or drawn ones. */

import type { FaultSpec, Scenario, WorkloadStep } from '@actorlet/faults/src/types.ts';
import { windowsOf } from '@actorlet/faults/src/windows.ts';
import { DEFAULT_EVICTION_HARD } from '@actorlet/kubelet/machines/config/defaults.ts';
import { createMatcher } from '@actorlet/shown/src/match.ts';
import { NOTHING_BESIDE } from '@actorlet/world/src/beside/beside.ts';
import type { NodeTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { DrawOptions } from './drawOptions.ts';
import { type Drawn, inOrder } from './entries.ts';
import type { Fault, WorkloadAct } from './faults.ts';
import type { SimPod } from './workload/subjects.ts';
import { drawWorkload } from './workload/workload.ts';

/** `nodes` are the names of the world's nodes, in order. */
export function scenarioSchedule(scenario: Scenario, o: DrawOptions & { rng: SimRng; names: readonly string[] }): Fault[] {
  const match = createMatcher();
  const on = (nodes: readonly string[]): number[] => o.names.flatMap((name, i) => (match.any(nodes, name) ? [i] : []));
  const faults = windowsOf(scenario, o.minutes * 60_000).flatMap(({ fault, atMs, endMs }): Drawn[] => {
    const { name, line: _line, nodes, atMs: _at, after: _after, forMs: _for, everyMs: _every, count: _count, steps, ...spec } = fault;
    return on(nodes).map((node) => ({ atMs, node, afterSteps: steps, forMs: endMs - atMs, name, act: spec as FaultSpec }));
  });
  const { workload } = scenario.simulation;
  return inOrder([...(workload.length === 0 ? drawWorkload(o.rng, o) : steps(workload, on)), ...faults]);
}

function steps(workload: readonly WorkloadStep[], on: (nodes: readonly string[]) => number[]): Drawn[] {
  // An edit is known by its revision: settled means that the node runs the newest.
  const revs = new Map<string, number>();
  return [...workload]
    .sort((a, b) => a.atMs - b.atMs)
    .flatMap((step) =>
      on(step.nodes).map((node) => {
        let act: WorkloadAct;
        if (step.kind === 'pod.put') {
          const key = `${node} ${step.name}`;
          const rev = revs.get(key) ?? 0;
          revs.set(key, rev + 1);
          act = { kind: step.kind, source: step.source, pod: podOf(step, rev) };
        } else act = step.kind === 'pod.mend' ? { kind: step.kind } : { kind: step.kind, name: step.name };
        return { atMs: step.atMs, node, afterSteps: 0, forMs: 0, act };
      }),
    );
}

/** The decoder has seen to it that containers are there, named and with an image. */
interface PodShape {
  metadata: { name: string; uid?: string; labels?: Record<string, string> };
  spec: {
    restartPolicy?: SimPod['restartPolicy'];
    containers: { name: string; image: string }[];
    initContainers?: { name: string; image: string; restartPolicy?: string }[];
  };
}

function podOf(step: Extract<WorkloadStep, { kind: 'pod.put' }>, rev: number): SimPod {
  const manifest = structuredClone(step.manifest) as PodShape;
  manifest.metadata.labels = { ...manifest.metadata.labels, rev: String(rev) };
  const { containers, initContainers = [], restartPolicy = 'Always' } = manifest.spec;
  return {
    name: step.name,
    rev,
    uid: manifest.metadata.uid,
    fate: step.fate,
    restartPolicy,
    containers: [...containers, ...initContainers.filter((c) => c.restartPolicy === 'Always')].map((c) => c.name),
    images: Object.fromEntries([...containers, ...initContainers].map((c) => [c.name, c.image])),
    manifest,
  };
}

/** The defaults of the configuration, but for the time that a pressure is said after it ended. */
const EVICTION: NonNullable<NodeTuning['eviction']> = {
  evictionHard: DEFAULT_EVICTION_HARD,
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  evictionMaxPodGracePeriod: 0,
  evictionPressureTransitionPeriod: 30_000,
};

/** A node that has what the scenario breaks: an event stream, an HTTP source. */
export function scenarioTuning(scenario: Scenario, drawn: NodeTuning): NodeTuning {
  const hits = (prefix: string): boolean => scenario.faults.some((f) => f.kind.startsWith(prefix));
  const memory = hits('pressure.memory');
  const http = hits('http.') || scenario.simulation.workload.some((s) => s.kind === 'pod.put' && s.source === 'http');
  return {
    ...drawn,
    hints: drawn.hints || hits('hints'),
    http: drawn.http || http,
    api: hits('api.') || memory,
    eviction: hits('pressure.') ? EVICTION : null,
    // Nothing beside what the file says.
    certificates: null,
    edge: null,
    kernelLog: false,
    throttles: false,
    driver: null,
    beside: NOTHING_BESIDE,
    cgroups: null,
    devices: null,
    claims: null,
    cpus: null,
    shutdown: null,
    packetFilter: hits('iptables'),
    kernel: hits('sysctl') ? { protect: false } : null,
  };
}
