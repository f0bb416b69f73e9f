/** Facts for the pod manager's steps: a node with room for all, where nothing has to be asked. */
import type { Pod } from '../../src/machines/kube/types.ts';
import { ANNOTATION_SOURCE } from '../../src/machines/pod/names.ts';
import type { Facts } from '../../src/machines/pods/manager/records.ts';

export function managerFacts(o: Partial<Facts> = {}): Facts {
  return {
    wallMs: 1_000,
    monoMs: 1_000,
    random: 0.5,
    by: 'test',
    offer: {
      podsMax: 1_000_000,
      allocatable: { cpu: '1000', memory: '1000Gi' },
      ability: { sysctls: [] },
      cluster: false,
      allocates: () => false,
      fixed: [],
    },
    listing: { atMonoMs: 0, via: 'poll', pods: new Map() },
    statuses: undefined,
    placement: { name: 'n1', labels: {}, taints: [] },
    placementAtMonoMs: 0,
    strictGroups: null,
    pressures: [],
    shutsDown: false,
    inName: (_, fn) => fn(),
    ...o,
  };
}

/** The same pod, with a volume that no manifest can have: admission refuses it, also while it runs. */
export function refusable(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'v', quobyte: { registry: 's', volume: 'x' } }] } };
}

/** Only pods of the API wait or fail for want of room: a pod of a manifest is critical. */
export function ofApi(pod: Pod): Pod {
  const annotations = { ...pod.metadata.annotations, [ANNOTATION_SOURCE]: 'api' };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}
