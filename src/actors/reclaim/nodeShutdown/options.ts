import type { NodeConfig } from '../../../machines/config/config.ts';
import { type ShutdownGroup, shutdownGroups } from '../../../machines/reclaim/nodeShutdown/groups.ts';
import type { NodeShutdownOptions } from './nodeShutdown.ts';

/** The groups of a graceful shutdown. Empty: this node does not delay a shutdown of its machine. */
export function configuredShutdownGroups({ config, gates }: Pick<NodeConfig, 'config' | 'gates'>): ShutdownGroup[] {
  return shutdownGroups(config, {
    graceful: gates.enabled('GracefulNodeShutdown'),
    byPriority: gates.enabled('GracefulNodeShutdownBasedOnPodPriority'),
  });
}

export function nodeShutdownOptions(config: NodeConfig, cluster: boolean): NodeShutdownOptions | null {
  const groups = configuredShutdownGroups(config);
  if (groups.length === 0) return null;
  const recorded = config.gates.enabled('GracefulNodeShutdownBasedOnPodPriority');
  return { groups, rootDir: config.flags.rootDir, recorded, cluster };
}
