/** Nodes with a storage driver, and pods of the API with its volumes: made for the pod alone, or of a claim that pods share. */
import { DRIVER, type DriverTuning } from '@actorlet/world/src/plugins/machineDrivers.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { DRIVER_CLAIM } from '../../workload/objects.ts';
import type { PodDraw } from '../pods/podDraw.ts';

/** How often a node of a cluster has one, which makes one node in six. One that stands alone asks no driver. */
const DRIVERS = 0.42;
const STAGES = 0.7;
const LATENCIES_MS = [0, 5, 200] as const;
/** Share of the pods of such a node. */
const VOLUMES = 0.85;
const CLAIMING = 0.5;
export const DRIVER_VOLUME = 'disk';

export function drawDriver(rng: SimRng, api: boolean): DriverTuning | null {
  if (!api || !rng.chance(DRIVERS)) return null;
  return { stages: rng.chance(STAGES), latencyMs: rng.pick(LATENCIES_MS) ?? 0 };
}

/** `node`: name of the node whose claim it names. */
export function drawDriverVolume(node: string): PodDraw {
  return (rng, { pod, manifest: { spec } }) => {
    const [first] = spec.containers;
    if (!rng.chance(VOLUMES) || first === undefined) return {};
    const name = `${DRIVER_CLAIM}-${node}`;
    const claiming = rng.chance(CLAIMING);
    const source = claiming ? { persistentVolumeClaim: { claimName: name } } : { csi: { driver: DRIVER, volumeAttributes: { size: '1' } } };
    spec.volumes = [...(spec.volumes ?? []), { name: DRIVER_VOLUME, ...source }];
    first.volumeMounts = [...(first.volumeMounts ?? []), { name: DRIVER_VOLUME, mountPath: `/${DRIVER_VOLUME}` }];
    return claiming ? { objects: [...(pod.objects ?? []), { kind: 'claim', name }] } : {};
  };
}
