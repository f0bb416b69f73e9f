/** What a draw of faults goes by. */
import type { CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';

export interface DrawOptions {
  minutes: number;
  /** About how many faults a node gets, workload not counted. Absent: as the kinds that are on have it. */
  faults?: number;
  pods: number;
  nodes: number;
  /** Per node: pods may also come over HTTP. */
  http: readonly boolean[];
  /** Per node: it belongs to a cluster, and pods may come from the API. */
  api: readonly boolean[];
  /** Per node: it has eviction thresholds. */
  evicts?: readonly boolean[];
  /** Per node: its images lie on a disk of their own. */
  splitDisks?: readonly boolean[];
  /** Per node: it gets certificates from its cluster, what it serves with among them, and its API is served. */
  identity?: readonly { certificates: boolean; edge: boolean; serving?: boolean }[];
  /** Per node: its static pod path is one file. */
  oneManifest?: readonly boolean[];
  /** Per node: a storage driver is beside it. */
  drivers?: readonly boolean[];
  /** Per node: resources of its device plugins. */
  devices?: readonly (readonly string[])[];
  /** Per node: it keeps chains in the packet filter. */
  packetFilters?: readonly boolean[];
  /** Per node: it relies on kernel settings. */
  kernels?: readonly boolean[];
  /** Per node: its pods have volumes of NFS servers. */
  network?: readonly boolean[];
  /** Per node: drivers of dynamic resources are beside it. */
  claims?: readonly boolean[];
  /** Per node: its pods have certificates and trust anchors. */
  podIdentities?: readonly boolean[];
  /** Per node: what CPUs it allocates; null: none. */
  cpus?: readonly (CpuTuning | null)[];
}
