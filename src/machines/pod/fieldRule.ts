/** What a node does about one field of a pod. The table of all fields (`pods/admission/fieldTable.ts`) is made of these. Pure. */

/**
 * `[*]` is any element of a list, a trailing `.*` any key of a mapping, `hugepages-*` any such key, `*` + `/*` any key with a domain.
 * A rule covers all below its path.
 */
export interface FieldRule {
  readonly path: string;
  /** Only these values can be honoured; another is refused or left alone. */
  readonly only?: readonly unknown[];
  /** Only of a pod that came from an API server, on a node that has one. */
  readonly api?: true;
  /** The same, and of another pod it is left alone: why. */
  readonly apiElse?: string;
  /** It has no effect on this node, and needs none: why. */
  readonly ignored?: string;
  /** It cannot be honoured, and a pod without it keeps its promises: why. */
  readonly leftAlone?: string;
  /** It cannot be honoured, and a pod without it would break a promise: why. */
  readonly refused?: string;
}

export const honoured = (...paths: readonly string[]): FieldRule[] => paths.map((path) => ({ path }));
export const honouredOfApi = (...paths: readonly string[]): FieldRule[] => paths.map((path) => ({ path, api: true }));
export const refused = (why: string, ...paths: readonly string[]): FieldRule[] => paths.map((path) => ({ path, refused: why }));
