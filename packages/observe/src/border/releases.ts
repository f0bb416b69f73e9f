/** Fields of statuses that a kubelet writes from a release on, or by a gate. One that does not write a field is not asked for it. Pure. */
import type { ExpectedKind } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';

interface Field {
  kind: ExpectedKind;
  /** How a difference begins that tells of its absence, up to ` is absent`. */
  path: RegExp;
  what: string;
  gate: string;
  /** The Y of the first 1.Y whose kubelet writes it by default. */
  minor: number;
}

const CONTAINER = String.raw`^status\.\w*ontainerStatuses\[[^\]]*\]\.`;
const ofContainer = (names: string): Pick<Field, 'kind' | 'path'> => ({
  kind: 'PodStatus',
  path: new RegExp(`${CONTAINER}(?:${names})\\b`),
});
const FIELDS: readonly Field[] = [
  { ...ofContainer('volumeMounts'), what: 'mounts of containers', gate: 'RecursiveReadOnlyMounts', minor: 31 },
  { ...ofContainer('user'), what: 'users of containers', gate: 'SupplementalGroupsPolicy', minor: 33 },
  {
    ...{ ...ofContainer('resources|allocatedResources'), what: 'resources of containers' },
    ...{ gate: 'InPlacePodVerticalScaling', minor: 33 },
  },
  { ...ofContainer('allocatedResourcesStatus'), what: 'health of devices', gate: 'ResourceHealthStatus', minor: 36 },
  {
    ...{ kind: 'PodStatus', path: /^status\.(?:resources|allocatedResources)\b/, what: 'resources of pods' },
    ...{ gate: 'InPlacePodLevelResourcesVerticalScaling', minor: 36 },
  },
  {
    ...{ kind: 'NodeStatus', path: /^status\.runtimeHandlers\b/, what: 'handlers of the runtime' },
    ...{ gate: 'RecursiveReadOnlyMounts', minor: 31 },
  },
  {
    ...{ kind: 'NodeStatus', path: /^status\.features\b/, what: 'features of the node' },
    ...{ gate: 'SupplementalGroupsPolicy', minor: 33 },
  },
  {
    ...{ kind: 'NodeStatus', path: /^status\.declaredFeatures\b/, what: 'declared features of the node' },
    ...{ gate: 'NodeDeclaredFeatures', minor: 36 },
  },
];

export interface Release {
  /** `v1.30.4`; null: not known. */
  version: string | null;
  /** As its configuration sets them. */
  gates: Readonly<Record<string, boolean>>;
}

function unsaidBy({ version, gates }: Release): Field[] {
  const minor = Number(/^v1\.(\d+)/.exec(version ?? '')?.[1] ?? Number.POSITIVE_INFINITY);
  return FIELDS.filter((field) => !(gates[field.gate] ?? minor >= field.minor));
}

/** In words, for the start. */
export function unsaidWords(release: Release): string[] {
  return unsaidBy(release).map(({ what }) => what);
}

/** A difference that tells of the absence of what that kubelet does not write. */
export function isUnsaid({ kind, difference }: { kind: ExpectedKind; difference: string }, release: Release): boolean {
  const [path = '', rest] = difference.split(' is absent');
  return rest !== undefined && unsaidBy(release).some((field) => field.kind === kind && field.path.test(path));
}
