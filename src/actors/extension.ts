/** What stands beside the kubelet and lives in the tree of a node, such as fault injection. `createNode` is given the list. */
import type { NodeConfig } from '../machines/config/config.ts';
import type { NodeFacts } from '../machines/nodeFacts.ts';
import type { Ports } from '../ports/ports.ts';
import type { AdminRoutes } from './edge/admin.ts';
import type { OwnPages } from './edge/https/routes.ts';
import type { Inspect } from './edge/server.ts';
import type { SupervisionTree } from './supervision/tree.ts';
import type { AnySpec } from './supervision/types.ts';

export interface Extension {
  /** Its actors, the last ones of their layer. */
  readonly actors?: Readonly<Partial<Record<ExtendedLayer, readonly AnySpec[]>>>;
  /** The ports as actors get them. */
  ports?(ports: Ports): Ports;
  /** What the admin socket answers for it. */
  routes?: AdminRoutes;
  /** Pages for people, of the HTTPS server. */
  readonly pages?: OwnPages;
  /** How many faults are at work. Absent: none may be injected. */
  readonly faults?: { readonly size: number };
  /** It hears of deaths (`deathsAddr`). */
  readonly deaths?: true;
}

type ExtendedLayer = 'foundation' | 'reclaim';

export interface ExtensionHost {
  readonly config: NodeConfig;
  readonly facts: NodeFacts;
  readonly inspect: Inspect;
  /** The ports as the node was given them. */
  readonly outside: Ports;
  /** @throws before it is built. */
  tree(): SupervisionTree;
  /** One line of the flight recorder. */
  record(path: string, what: string): void;
}

/** Asked once, before the tree is built. */
export type Extend = (host: ExtensionHost) => Extension;

export function faultsOf(extensions: readonly Extension[]): { readonly size: number } | null {
  return extensions.find(({ faults }) => faults !== undefined)?.faults ?? null;
}
