/** Vocabulary of probes (pod lifecycle 8): what is probed, what an attempt came to, what is known of a container. */

import type { Container, Probe } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';

/** In the order in which a container's probes are added. */
export const PROBE_TYPES = ['startup', 'readiness', 'liveness'] as const;
export type ProbeType = (typeof PROBE_TYPES)[number];

/** As events and metric labels spell them. */
export const PROBE_NAMES: Readonly<Record<ProbeType, string>> = { startup: 'Startup', readiness: 'Readiness', liveness: 'Liveness' };

/** Which field of a container defines each type. */
export const PROBE_FIELDS = { startup: 'startupProbe', readiness: 'readinessProbe', liveness: 'livenessProbe' } as const;

export function hasProbes({ spec }: Pod): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some((c) => PROBE_TYPES.some((type) => c[PROBE_FIELDS[type]] !== undefined));
}

/**
 * What one try came to. `warning` counts as success; `error` says that nothing was learned (the runtime or the definition
 * is at fault, not the container) and counts as nothing.
 */
export interface ProbeOutcome {
  kind: 'success' | 'warning' | 'failure' | 'error';
  /** What people are told; '' where there is nothing to say. */
  output: string;
}

/** Last results of one container instance; a type that it has no probe for is absent. */
export interface ContainerProbes {
  uid: string;
  /** Container name. */
  container: string;
  startup?: ProbeResult;
  readiness?: ProbeResult;
  liveness?: ProbeResult;
  /** The API server was not heard before these results began: what it shows of the instance is still to be taken over. */
  unheard?: true;
}
/** By container id, without the runtime's name before it. */
export type ProbeLedger = ReadonlyMap<string, ContainerProbes>;

/** One probe of one running container instance: all that its schedule and its attempts need. */
export interface ProbeTarget {
  /** `UID/CONTAINER/TYPE`. */
  key: string;
  pod: { uid: string; name: string; namespace: string };
  container: Container;
  /** `spec.containers{name}` or its sibling for init containers. */
  fieldPath: string;
  type: ProbeType;
  probe: Probe;
  /** Without the runtime's name before it. */
  containerId: string;
  /** `status.podIP`; '' while there is none. */
  podIP: string;
  /** Wall ms, cut to whole seconds as the API keeps it. */
  startedAtMs: number;
  /** Its startup probe has succeeded, or it has none. */
  started: boolean;
}

export type ProbeResult = 'success' | 'failure' | 'unknown';

/** Last result per container id; a container id that is not in it has had no result yet. */
export type ProbeResults = ReadonlyMap<string, ProbeResult>;
