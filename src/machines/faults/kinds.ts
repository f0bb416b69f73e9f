/** The table of fault kinds: what each may select, which fields it has, and where it is possible at all. */
import type { FaultKind, Select } from './types.ts';

export interface KindFacts {
  /** It has a window; else it happens in one instant. */
  lasts: boolean;
  /** `simulation`: no port of a running daemon can do it, or it would harm more than the daemon. */
  where: 'both' | 'simulation';
  /** Why not in a running daemon. */
  whyNot?: string;
  select: readonly (keyof Select)[];
  actions?: readonly string[];
  /** Fields besides the common ones (`name`, `kind`, `action`, `select`, `nodes`, `probability`, `times`, `at`, ...). */
  fields: readonly string[];
  /** For people. */
  what: string;
}

export const CALL_ACTIONS = ['delay', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const;
const POD = ['namespaces', 'pods', 'containers'] as const;

export const FAULT_KINDS: Readonly<Record<FaultKind, KindFacts>> = {
  cri: {
    lasts: true,
    where: 'both',
    select: ['methods', ...POD],
    actions: CALL_ACTIONS,
    fields: ['delay', 'code'],
    what: 'calls to the container runtime',
  },
  hints: {
    lasts: true,
    where: 'both',
    select: ['hints'],
    actions: ['drop', 'duplicate', 'reorder', 'delay'],
    fields: ['delay'],
    what: "the runtime's event stream",
  },
  'hints.cut': { lasts: false, where: 'both', select: [], fields: [], what: 'the event stream breaks once' },
  'runtime.down': { lasts: true, where: 'both', select: [], fields: [], what: 'the runtime restarts: calls are cut, then refused' },
  'network.down': { lasts: true, where: 'both', select: [], fields: [], what: 'the runtime says NetworkReady=false' },
  'api.call': {
    lasts: true,
    where: 'both',
    select: ['verbs', 'resources', 'namespaces', 'pods'],
    actions: CALL_ACTIONS,
    fields: ['delay', 'status'],
    what: 'requests to the API server',
  },
  'api.partition': { lasts: true, where: 'both', select: [], fields: [], what: 'the API server cannot be reached, open watches hang' },
  'api.watch': {
    lasts: true,
    where: 'both',
    select: ['resources'],
    actions: ['silence', 'truncate', 'close'],
    fields: [],
    what: 'watches of the API server',
  },
  'disk.full': { lasts: true, where: 'both', select: ['paths'], fields: [], what: 'writes fail with ENOSPC' },
  'disk.slow': {
    lasts: true,
    where: 'both',
    select: ['ops', 'paths'],
    fields: ['delay'],
    what: 'operations on files take up to `delay` longer',
  },
  'disk.error': { lasts: true, where: 'both', select: ['ops', 'paths'], fields: ['code'], what: 'operations on files fail' },
  'disk.deaf': { lasts: true, where: 'both', select: ['paths'], fields: [], what: 'file events are lost' },
  'watch.break': { lasts: false, where: 'both', select: ['paths'], fields: [], what: 'open file watches end with an error' },
  'http.down': {
    lasts: true,
    where: 'both',
    select: [],
    actions: ['unreachable', 'error', 'garbage'],
    fields: [],
    what: 'the HTTP source of pods',
  },
  'clock.jump': {
    lasts: false,
    where: 'simulation',
    whyNot: "a host's clock is not the daemon's to set",
    select: [],
    fields: ['by'],
    what: 'wall time moves',
  },
  'pressure.memory': { lasts: true, where: 'both', select: [], fields: ['available'], what: 'only so much memory seems available' },
  'pressure.disk': { lasts: true, where: 'both', select: ['paths'], fields: ['available'], what: 'only so much disk seems available' },
  mailbox: {
    lasts: true,
    where: 'both',
    select: ['actors', 'lanes', 'events'],
    actions: ['drop', 'delay', 'reorder'],
    fields: ['delay'],
    what: 'messages between actors',
  },
  'actor.kill': { lasts: false, where: 'both', select: ['actors', ...POD.slice(0, 2)], fields: ['pick'], what: 'an actor crashes' },
  'node.kill': {
    lasts: false,
    where: 'simulation',
    whyNot: 'a daemon cannot boot itself again; end its process and let the init system start it',
    select: [],
    actions: ['process', 'power'],
    fields: ['down'],
    what: 'the daemon dies at once, with `power` the unsynced part of the disk and all that runs, too',
  },
  'node.stop': {
    lasts: false,
    where: 'simulation',
    whyNot: 'a daemon cannot boot itself again; stop its service and start it',
    select: [],
    fields: ['down'],
    what: 'the daemon stops in order',
  },
  'container.exit': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; end a process of the container itself, for example with actorctl exec',
    select: ['namespaces', 'pods', 'containers'],
    fields: ['exitCode', 'reason'],
    what: 'a running container ends by itself',
  },
  'container.remove': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; remove it with the tool of the runtime, for example crictl rm -f',
    select: ['namespaces', 'pods', 'containers'],
    fields: [],
    what: 'somebody else removes a running container',
  },
  'sandbox.stop': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; stop it with the tool of the runtime, for example crictl stopp',
    select: ['namespaces', 'pods'],
    fields: [],
    what: "somebody else stops a pod's sandbox",
  },
};

export const FAULT_KIND_NAMES = Object.keys(FAULT_KINDS) as readonly FaultKind[];

/** gRPC status codes by the names a scenario uses. */
export const GRPC_CODES = {
  Cancelled: 1,
  Unknown: 2,
  InvalidArgument: 3,
  DeadlineExceeded: 4,
  NotFound: 5,
  AlreadyExists: 6,
  PermissionDenied: 7,
  ResourceExhausted: 8,
  FailedPrecondition: 9,
  Aborted: 10,
  OutOfRange: 11,
  Unimplemented: 12,
  Internal: 13,
  Unavailable: 14,
  DataLoss: 15,
  Unauthenticated: 16,
} as const satisfies Record<string, number>;
