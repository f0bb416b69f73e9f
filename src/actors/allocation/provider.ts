/**
 * A provider of allocation: a manager of something that containers have alone, such as CPUs or devices. Its actor answers
 * `allocation.admit`. This says what the rest of the node needs to know of it. `providers.ts` lists them all.
 */

import type { AllocationEvent, ContainerShare, Held, NodeResources } from '../../machines/allocation/messages.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import type { Container } from '../../machines/kube/podTable.ts';
import type { Pod, ResourceStatus } from '../../machines/kube/types.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import type { Built } from '../../machines/result.ts';
import type { Address } from '../../machines/supervision/address.ts';
import type { Host, Ports } from '../../ports/ports.ts';
import type { AnySpec, Registry } from '../supervision/types.ts';

/** What a provider is made of, beside the configuration. */
export interface ProviderPlace {
  facts(): NodeFacts;
  host: Pick<Host, 'cpus' | 'numaNodes'>;
  devicePlugins: boolean;
  /** The node can speak to drivers of dynamic resources. */
  dra: boolean;
  /** There is an API server, whose node shows what there is. */
  cluster: boolean;
}
export type ProviderCtx = { registry: Registry; ports: Pick<Ports, 'devicePlugins' | 'dra' | 'kube' | 'observer'> };
export interface ContainerOfPod {
  pod: Pod;
  container: Container;
}

export interface Provider {
  readonly address: Address<AllocationEvent>;
  /** For one answer; after that the pod is asked about again. */
  readonly timeoutMs: number;
  /**
   * Its actor, which is ready when it has read what it allocated before; null: this node does without it.
   * @throws with the field and what is wrong where this machine cannot have what is configured.
   */
  spec(config: NodeConfig, place: ProviderPlace): AnySpec | null;
  /** Whether the pod is to have something of it. */
  wants(pod: Pod): boolean;
  /** A resource that is not changed in place, since a Guaranteed pod has it alone. */
  readonly fixed?: string;
  /** It allocates extended resources, of any name. */
  readonly extendedResources?: true;
  /** Its actor answers `allocation.hints`: the topology manager asks it from which NUMA nodes containers could have what they need. */
  readonly hints?: true;
  /** Its actor answers a `draft` before its record is on disk, so that many pods share one write. */
  readonly drafts?: true;
  /** What a container gets that is about to be created. */
  share(
    ctx: ProviderCtx,
    of: ContainerOfPod,
    signal: AbortSignal,
  ): Promise<Built<Partial<ContainerShare>>> | Built<Partial<ContainerShare>>;
  /** Absent: the node's status says nothing of it. Undefined: it has not read yet what it allocated before. */
  node?(ctx: ProviderCtx): NodeResources | undefined;
  /** For the pod resources API; undefined: nothing is known of it. */
  held(registry: Registry): Held | undefined;
  /** The file that the start of the daemon looks at. */
  readonly state?: ProviderState;
  /** Reads what is known now; gives the health of what a container has of it, for its status. Undefined: nothing is known. */
  health?(ctx: ProviderCtx & { ports: Pick<Ports, 'clock'> }): ((of: ContainerOfPod) => readonly ResourceStatus[]) | undefined;
  /** Makes its metrics, which are 0 on a node without it. */
  metrics?(metrics: Ports['metrics']): void;
}

/** The state file of a provider, which ends the start where it belongs to another policy or another machine. */
export interface ProviderState {
  /** Below the root directory. */
  readonly file: string;
  readonly bytesMax: number;
  /** In messages: `the CPU manager`. */
  readonly owner: string;
  /** The field of the configuration that it depends on, with its flag. */
  readonly field: string;
  /**
   * `text` null: there is no file. `first`: what is to be written on a node that does without this provider, null for nothing.
   * @throws as `spec`.
   */
  open(text: string | null, o: { config: NodeConfig; host: ProviderPlace['host']; file: string }): ProviderStateOpened;
}
export type ProviderStateOpened = { ok: true; first: string | null } | { ok: false; message: string };
