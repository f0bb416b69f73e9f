/** The words of the library: types alone, which the package publishes. */

/** YAML or JSON, of one object or many; or objects. */
export type Manifest = string | object | readonly object[];

export interface ObjectsOf {
  /** Default v1. */
  apiVersion?: string;
  kind: string;
  /** Default: `default` with a name, else all. */
  namespace?: string;
  name?: string;
  /** kubectl's label selector. */
  selector?: string;
}

/** As under `expect` of a fleet file: exactly one of `nodesReady`, `podsReady`, `objects`, `seconds`, `calls`. */
export interface FleetExpectation {
  name?: string;
  nodesReady?: number;
  podsReady?: number;
  objects?: ObjectsOf;
  /** Of objects: those count whose condition is True; `Ready=Unknown` for another status. */
  condition?: string;
  /** Of objects: the sum of the numbers at this path, such as status.availableReplicas. */
  field?: string;
  seconds?: 'nodeReady' | 'podReady' | 'podStart';
  /** Of seconds. Default 99. */
  percentile?: number;
  /** `VERB RESOURCE` of the nodes: `PATCH pods/status`. */
  calls?: string;
  atLeast?: number;
  atMost?: number;
  /** Default 60s. Seconds and calls are decided at once by default. */
  within?: string;
  /** `once` (default), or `throughout`: at every look. */
  holds?: 'once' | 'throughout';
}
