/** `spec.simulation`: what the simulated world holds. */
import { isMap } from 'yaml';
import { SIMULATION, WORKLOAD, WORKLOAD_KINDS, WORKLOAD_WHEN, type WorkloadKind } from '../table.ts';
import type { ScenarioSimulation, WorkloadStep } from '../types.ts';
import type { MapReader } from './reader.ts';

export function decodeSimulation(r: MapReader, lineOf: (r: MapReader) => number): ScenarioSimulation {
  const pods = r.read('pods', SIMULATION.pods);
  const nodes = r.read('nodes', SIMULATION.nodes);
  const workload = r.maps('workload').flatMap((entry) => workloadStep(entry, lineOf(entry)) ?? []);
  if (workload.length > 0 && pods !== undefined) r.wrong('pods', 'has no effect beside workload: pods are drawn, or given');
  r.finish();
  return { workload, ...(pods === undefined ? {} : { pods }), ...(nodes === undefined ? {} : { nodes }) };
}

function workloadStep(r: MapReader, line: number): WorkloadStep | undefined {
  if (!r.has('kind')) r.wrong('kind', `is missing; it must be one of ${WORKLOAD_KINDS.join(', ')}`);
  const kind = r.word('kind', WORKLOAD_KINDS);
  const when = { atMs: r.read('at', WORKLOAD_WHEN.at) ?? 0, nodes: r.read('nodes', WORKLOAD_WHEN.nodes) ?? [], line };
  if (kind === undefined) return undefined;
  const step = stepOf(r, kind, when);
  r.finish();
  return step;
}

function stepOf(
  r: MapReader,
  kind: WorkloadKind,
  when: { atMs: number; nodes: readonly string[]; line: number },
): WorkloadStep | undefined {
  if (kind === 'pod.mend') return { ...when, kind };
  if (kind !== 'pod.put') {
    if (!r.has('name')) r.wrong('name', 'is missing: which pod');
    const name = r.read('name', WORKLOAD[kind].name);
    return name === undefined ? undefined : { ...when, kind, name };
  }
  const source = r.read('source', WORKLOAD[kind].source) ?? 'file';
  const fate = r.read('fate', WORKLOAD[kind].fate) ?? 'steady';
  if (!r.has('manifest')) {
    r.get('manifest');
    r.wrong('manifest', 'is missing: a Pod, as in a manifest file');
    return undefined;
  }
  const map = r.map('manifest');
  if (map === undefined) return undefined;
  const name = map.map('metadata')?.text('name');
  if (name === undefined) {
    map.wrong('metadata', 'must hold the name of the pod: metadata.name');
    return undefined;
  }
  if (!checkContainers(map)) return undefined;
  const node = r.get('manifest');
  const manifest: unknown = isMap(node) ? node.toJSON() : undefined;
  return typeof manifest === 'object' && manifest !== null ? { ...when, kind, name, source, fate, manifest } : undefined;
}

/** What the simulation has to know of a pod to tell whether it runs; the node itself judges the rest. */
function checkContainers(pod: MapReader): boolean {
  const spec = pod.map('spec');
  if (spec === undefined) {
    if (!pod.has('spec')) pod.wrong('spec', 'is missing');
    return false;
  }
  const containers = spec.maps('containers');
  if (containers.length === 0 && !spec.has('containers')) spec.wrong('containers', 'is missing');
  const all = [...containers, ...spec.maps('initContainers')].map((c) => {
    for (const field of ['name', 'image']) if (!c.has(field)) c.wrong(field, 'is missing');
    return c.text('name') !== undefined && c.text('image') !== undefined;
  });
  return containers.length > 0 && all.every(Boolean);
}
