/** What the services of pods are made of, from the configuration. */
import type { NodeConfig } from '../../machines/config/config.ts';
import type { ObjectSource } from '../../machines/kube/objects.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import type { VolumesEvent } from '../../machines/services/volumes/messages.ts';
import type { ActorCtx } from '../supervision/types.ts';
import { certificateSource, type ProjectionGates } from './certificates/source.ts';
import { objectSource } from './objects/source.ts';
import type { PluginsOptions } from './plugins/plugins.ts';
import type { ProbesOptions } from './probes/probes.ts';
import type { VolumesOptions } from './volumes/volumes.ts';

export interface ServicesOptions {
  projections: ProjectionGates;
  probes: ProbesOptions;
  /** No probe runs: another program is the kubelet. */
  observes: boolean;
  /** False where the node keeps no chains in the packet filter of its host. */
  iptables: boolean;
  /** Null in standalone mode, and where plugins beside this node cannot be spoken to. */
  plugins: PluginsOptions | null;
  volumes: VolumesOptions;
}

export function servicesOptions(
  { config: c, flags, gates }: NodeConfig,
  o: { facts(): NodeFacts; plugins: boolean; iptables: boolean; observes: boolean; cluster: boolean },
): ServicesOptions {
  const projections = {
    trustBundles: o.cluster && gates.enabled('ClusterTrustBundleProjection'),
    podCertificates: o.cluster && gates.enabled('PodCertificateRequest'),
  };
  return {
    projections,
    probes: { runtimeRequestTimeoutMs: c.runtimeRequestTimeout, podsMax: c.maxPods, cluster: o.cluster },
    observes: o.observes,
    iptables: o.iptables && c.makeIPTablesUtilChains,
    plugins: o.plugins && o.cluster ? { rootDir: flags.rootDir } : null,
    volumes: {
      facts: o.facts,
      podsMax: c.maxPods,
      syncFrequencyMs: c.syncFrequency,
      controllerAttaches: c.enableControllerAttachDetach,
      objects: o.cluster ? (ctx) => sources(ctx, projections) : null,
    },
  };
}

/** The source of all that an API server has, for volumes. */
function sources(ctx: Pick<ActorCtx<VolumesEvent>, 'registry'>, projections: ProjectionGates): ObjectSource {
  const [objects, certificates] = [objectSource(ctx), certificateSource(ctx, projections)];
  return {
    ...objects,
    ...certificates,
    forget(uid) {
      objects.forget(uid);
      certificates.forget(uid);
    },
  };
}
