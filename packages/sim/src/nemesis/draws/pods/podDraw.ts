/** What a seed adds to a drawn pod: one matter a file, each with chances of its own, so that no other draw moves for it. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { SimPod } from '../../workload/subjects.ts';

/** `full`: a pod that is to have of everything. Changes `manifest` in place and gives what else is to be known of the pod. */
export type PodDraw = (rng: SimRng, x: { pod: SimPod; manifest: DrawnManifest; full: boolean }) => Partial<SimPod>;

export interface DrawnContainer {
  name: string;
  image: string;
  imagePullPolicy?: string;
  restartPolicy?: string;
  restartPolicyRules?: object[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string>; claims?: object[] };
  volumeMounts?: object[];
}
/** A manifest that was drawn: what draws look at and change. */
export interface DrawnManifest {
  metadata: { annotations: Record<string, string> };
  spec: {
    restartPolicy: string;
    hostNetwork?: boolean;
    hostUsers?: boolean;
    priority?: number;
    imagePullSecrets?: { name: string }[];
    resources?: { requests?: Record<string, string> };
    containers: DrawnContainer[];
    initContainers?: DrawnContainer[];
    volumes?: { name: string; [source: string]: unknown }[];
    resourceClaims?: object[];
  };
}

/** The same pod after a draw; one that is not to change keeps its manifest. */
export function withDraw(draw: PodDraw, rng: SimRng, pod: SimPod, full = false): SimPod {
  const manifest = structuredClone(pod.manifest) as DrawnManifest;
  return { ...pod, ...draw(rng, { pod, manifest, full }), manifest };
}
