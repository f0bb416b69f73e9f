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

/** As under `expect` of a fleet file: exactly one of `nodesReady`, `podsReady`, `objects`, `events`, `requests`, `leftBehind`, `seconds`, `calls`. */
export interface FleetExpectation {
  name?: string;
  nodesReady?: number;
  podsReady?: number;
  objects?: ObjectsOf;
  /** Of objects: those count whose condition is True; `Ready=Unknown` for another status. */
  condition?: string;
  /** Of objects: those count for which this is true, in CEL: `object.spec.replicas == object.status.readyReplicas`. */
  where?: string;
  /** Events by what they say, and what they are about. */
  events?: { reason?: string; type?: string; kind?: string; name?: string; namespace?: string };
  /** Requests of clients that came by the proxy. `minute`: the most within any minute. */
  requests?: Pick<ApiFaultOf, 'userAgents' | 'users' | 'verbs' | 'resources' | 'namespaces' | 'names'> & { per?: 'run' | 'minute' };
  /** At most so many objects that wait for a finalizer, or whose owners are gone. */
  leftBehind?: number;
  /** Of objects: the sum of the numbers at this path, such as status.availableReplicas. */
  field?: string;
  seconds?: 'nodeReady' | 'podReady' | 'podStart';
  /** Of seconds. Default 99. */
  percentile?: number;
  /** `VERB RESOURCE` of the nodes: `PATCH pods/status`. */
  calls?: string;
  atLeast?: number;
  atMost?: number;
  /** Default 60s. Seconds, calls and requests are decided at once by default. */
  within?: string;
  /** `once` (default), or `throughout`: at every look. */
  holds?: 'once' | 'throughout';
}

/** As under `clock` of a group: how far clocks of nodes are from that of the machine, such as `5m`, or drawn for each node. One of both. */
export interface ClockOf {
  ahead?: string | { from: string; to: string };
  behind?: string | { from: string; to: string };
}

/** As under `volumes` of a step `inject` of a fleet file, without `for`. */
export interface VolumeFaultOf {
  fault: 'attach-fails' | 'attach-hangs';
  storageClasses?: readonly string[];
  volumes?: readonly string[];
  /** NAMESPACE/NAME. */
  claims?: readonly string[];
  message?: string;
}

/** As under `api` of a step `inject` of a fleet file. */
export interface ApiFaultOf {
  fault: 'stale-reads' | 'watch-lag' | 'watch-close' | 'watch-expired' | 'conflict' | 'throttle' | 'unavailable' | 'slow' | 'lost-answer';
  /** Clients: `website` is a program of that name in any version. Default: all that came by the proxy. */
  userAgents?: readonly string[];
  /** `system:serviceaccount:NAMESPACE:NAME`, or the name in a client certificate. */
  users?: readonly string[];
  verbs?: readonly ('get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete')[];
  /** In plural: `pods`, `pods/status`, `deployments.apps`. */
  resources?: readonly string[];
  namespaces?: readonly string[];
  names?: readonly string[];
  /** Default 10s; 0s for watch-close, 1s for watch-expired. */
  for?: string;
  /** Requests that it hits at most. */
  times?: number;
  /** From 0 to 1. Default 1. */
  probability?: number;
  /** Of stale-reads: how far back. Default 5s. */
  age?: string;
  /** Of slow and watch-lag. Default 2s. */
  delay?: string;
  /** Of watch-expired. */
  as?: 'answer' | 'event' | 'either';
  /** Of throttle, in seconds. Default 1. */
  retryAfter?: number;
}
