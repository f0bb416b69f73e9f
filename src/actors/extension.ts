/** What stands beside the kubelet and lives in the tree of a node, such as fault injection. `createNode` is given the list. */
import type { NodeConfig } from '../machines/config/config.ts';
import type { Ports } from '../ports/ports.ts';
import type { AdminRoute } from './edge/admin.ts';
import type { SupervisionTree } from './supervision/tree.ts';
import type { AnySpec } from './supervision/types.ts';

export interface Extension {
  /** Its actors, the last ones of their layer. */
  readonly actors?: Readonly<Partial<Record<ExtendedLayer, readonly AnySpec[]>>>;
  /** The ports as actors get them. */
  ports?(ports: Ports): Ports;
  /** What the admin socket answers at a path, and one level below it. */
  readonly routes?: Readonly<Record<string, AdminRoute>>;
  /** How many faults are at work. Absent: none may be injected. */
  readonly faults?: { readonly size: number };
}

type ExtendedLayer = 'foundation';

export interface ExtensionHost {
  readonly config: NodeConfig;
  readonly nodeName: string;
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
