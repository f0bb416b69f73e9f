/** What the services of pods are made of, from the configuration. */
import type { NodeConfig } from '../../machines/config/config.ts';
import type { NodeFacts } from '../../machines/nodeFacts.ts';
import { objectSource } from './objects/source.ts';
import type { PluginsOptions } from './plugins/plugins.ts';
import type { ProbesOptions } from './probes/probes.ts';
import type { VolumesOptions } from './volumes/volumes.ts';

export interface ServicesOptions {
  probes: ProbesOptions;
  /** False where the node keeps no chains in the packet filter of its host. */
  iptables: boolean;
  /** Null in standalone mode, and where plugins beside this node cannot be spoken to. */
  plugins: PluginsOptions | null;
  volumes: VolumesOptions;
}

export function servicesOptions(
  { config: c, flags }: NodeConfig,
  o: { facts(): NodeFacts; plugins: boolean; iptables: boolean; cluster: boolean },
): ServicesOptions {
  return {
    probes: { runtimeRequestTimeoutMs: c.runtimeRequestTimeout, podsMax: c.maxPods },
    iptables: o.iptables && c.makeIPTablesUtilChains,
    plugins: o.plugins && o.cluster ? { rootDir: flags.rootDir } : null,
    volumes: { facts: o.facts, podsMax: c.maxPods, syncFrequencyMs: c.syncFrequency, objects: o.cluster ? objectSource : null },
  };
}
