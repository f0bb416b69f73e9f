/** The table of fault kinds: what each may select, which fields it has, and where it is possible at all. */
import {
  about,
  bytes,
  duration,
  filled,
  integer,
  named,
  namedNumber,
  type Of,
  required,
  type Shape,
  string,
  type Typed,
  words,
} from '@actorlet/kubelet/machines/shape/shape.ts';
import { DURATION_MAX_MS, type Selector, time } from './table.ts';

export interface KindFacts {
  /** It has a window; else it happens in one instant. */
  lasts: boolean;
  /** `simulation`: no port of a running daemon can do it, or it would harm more than the daemon. */
  where: 'both' | 'simulation';
  /** Why not in a running daemon. */
  whyNot?: string;
  select: readonly Selector[];
  actions?: readonly string[];
  /** Fields besides the common ones (`name`, `kind`, `action`, `select`, `nodes`, `probability`, `times`, `at`, ...). */
  fields: Readonly<Record<string, FaultField>>;
  /** For people. */
  what: string;
}
export type FaultField = Shape & {
  /** Only with these actions. */
  readonly actions?: readonly string[];
  /** Its value with any other action. */
  readonly idle?: unknown;
};

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

/** A fault without `delay` that needs one. */
const DELAY_DEFAULT_MS = 1_000;
const POD = ['namespaces', 'pods', 'containers'] as const;
const CALL_ACTIONS = ['delay', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const;

/** A field that only these actions have. With others it is `idle`. */
function withActions<S extends Shape & Typed<unknown>>(actions: readonly string[], field: S, idle: Of<S>): S {
  return { ...field, actions, idle };
}

const LATE = about('How much later. Default 1s.', named('delayMs', filled(time(1), DELAY_DEFAULT_MS)));
const DELAY = withActions(['delay'], LATE, 0);
const CALL_DELAY = withActions(
  ['delay', 'late-effect'],
  about('Of `delay`: before the effect. Of `late-effect`: from the call to its effect. Default 1s.', LATE),
  0,
);
const AVAILABLE = about('How many bytes seem available.', named('availableBytes', required(bytes)));
const DOWN = about('The node boots again after this time. Default 0s.', named('downMs', filled(time(), 0)));

const KINDS = {
  cri: {
    lasts: true,
    where: 'both',
    select: ['methods', ...POD],
    actions: CALL_ACTIONS,
    fields: {
      delay: CALL_DELAY,
      code: withActions(
        ['error'],
        about('gRPC status, by name or number. Default Unavailable.', filled(namedNumber(GRPC_CODES, 1, 16), GRPC_CODES.Unavailable)),
        GRPC_CODES.Unknown,
      ),
    },
    what: 'calls to the container runtime',
  },
  hints: {
    lasts: true,
    where: 'both',
    select: ['hints'],
    actions: ['drop', 'duplicate', 'reorder', 'delay'],
    fields: { delay: DELAY },
    what: "the runtime's event stream",
  },
  'hints.cut': { lasts: false, where: 'both', select: [], fields: {}, what: 'the event stream breaks once' },
  'runtime.down': { lasts: true, where: 'both', select: [], fields: {}, what: 'the runtime restarts: calls are cut, then refused' },
  'network.down': { lasts: true, where: 'both', select: [], fields: {}, what: 'the runtime says NetworkReady=false' },
  'api.call': {
    lasts: true,
    where: 'both',
    select: ['verbs', 'resources', 'namespaces', 'pods'],
    actions: CALL_ACTIONS,
    fields: {
      delay: CALL_DELAY,
      status: withActions(['error'], about('HTTP status. Default 500.', filled(integer(400, 599), 500)), 500),
    },
    what: 'requests to the API server',
  },
  'api.partition': { lasts: true, where: 'both', select: [], fields: {}, what: 'the API server cannot be reached, open watches hang' },
  'api.watch': {
    lasts: true,
    where: 'both',
    select: ['resources'],
    actions: ['silence', 'truncate', 'close', 'duplicate', 'expire', 'delay'],
    fields: { delay: DELAY },
    what: 'watches of the API server',
  },
  iptables: {
    lasts: true,
    where: 'simulation',
    whyNot: 'interceptors do not sit on the packet filter; hold the lock of its tables with flock /run/xtables.lock',
    select: [],
    actions: ['error', 'hang', 'locked'],
    fields: {},
    what: 'commands to the packet filter of the host',
  },
  'iptables.flush': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors do not sit on the packet filter; remove the chains with iptables -F and -X',
    select: [],
    fields: {},
    what: 'another program removes all chains of one family of addresses',
  },
  sysctl: {
    lasts: true,
    where: 'simulation',
    whyNot: 'a daemon looks at kernel settings when it starts, before faults can be injected; change them with sysctl -w, and restart it',
    select: [],
    actions: ['changed', 'unreadable', 'readonly', 'forbidden'],
    fields: {},
    what: 'kernel settings: another program changes one, or reads or writes of them fail',
  },
  'disk.full': { lasts: true, where: 'both', select: ['paths'], fields: {}, what: 'writes fail with ENOSPC' },
  'disk.slow': {
    lasts: true,
    where: 'both',
    select: ['ops', 'paths'],
    fields: { delay: LATE },
    what: 'operations on files take up to `delay` longer',
  },
  'disk.error': {
    lasts: true,
    where: 'both',
    select: ['ops', 'paths'],
    fields: { code: about('Default EIO.', filled(words('EIO', 'ENOSPC', 'EROFS', 'EACCES', 'EXDEV', 'EMFILE'), 'EIO')) },
    what: 'operations on files fail',
  },
  'disk.deaf': { lasts: true, where: 'both', select: ['paths'], fields: {}, what: 'file events are lost' },
  'watch.break': { lasts: false, where: 'both', select: ['paths'], fields: {}, what: 'open file watches end with an error' },
  'http.down': {
    lasts: true,
    where: 'both',
    select: [],
    actions: ['unreachable', 'error', 'garbage'],
    fields: {},
    what: 'the HTTP source of pods',
  },
  'clock.jump': {
    lasts: false,
    where: 'simulation',
    whyNot: "a host's clock is not the daemon's to set",
    select: [],
    fields: { by: about('Forwards or backwards.', named('byMs', required(duration({ minMs: -DURATION_MAX_MS, maxMs: DURATION_MAX_MS })))) },
    what: 'wall time moves',
  },
  'pressure.memory': {
    lasts: true,
    where: 'both',
    select: [],
    fields: { available: AVAILABLE },
    what: 'only so much memory seems available',
  },
  'pressure.disk': {
    lasts: true,
    where: 'both',
    select: ['paths'],
    fields: { available: AVAILABLE },
    what: 'only so much disk seems available',
  },
  mailbox: {
    lasts: true,
    where: 'both',
    select: ['actors', 'lanes', 'events'],
    actions: ['drop', 'delay', 'reorder'],
    fields: { delay: DELAY },
    what: 'messages between actors',
  },
  'actor.kill': {
    lasts: false,
    where: 'both',
    select: ['actors', 'namespaces', 'pods'],
    fields: { pick: about('Of the selected actors. Default one.', filled(words('one', 'all'), 'one')) },
    what: 'an actor crashes',
  },
  'node.kill': {
    lasts: false,
    where: 'simulation',
    whyNot: 'a daemon cannot boot itself again; end its process and let the init system start it',
    select: [],
    actions: ['process', 'power'],
    fields: { down: DOWN },
    what: 'the daemon dies at once, with `power` the unsynced part of the disk and all that runs, too',
  },
  'node.stop': {
    lasts: false,
    where: 'simulation',
    whyNot: 'a daemon cannot boot itself again; stop its service and start it',
    select: [],
    fields: { down: DOWN },
    what: 'the daemon stops in order',
  },
  'container.exit': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; end a process of the container itself, for example with actorctl exec',
    select: ['namespaces', 'pods', 'containers'],
    fields: {
      exitCode: about('Default 1.', filled(integer(0, 255), 1)),
      reason: about('Reason of the end, as the runtime gives it.', filled(string, '')),
    },
    what: 'a running container ends by itself',
  },
  'container.remove': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; remove it with the tool of the runtime, for example crictl rm -f',
    select: ['namespaces', 'pods', 'containers'],
    fields: {},
    what: 'somebody else removes a running container',
  },
  'sandbox.stop': {
    lasts: false,
    where: 'simulation',
    whyNot: 'interceptors sit on ports only; stop it with the tool of the runtime, for example crictl stopp',
    select: ['namespaces', 'pods'],
    fields: {},
    what: "somebody else stops a pod's sandbox",
  },
} as const satisfies Readonly<Record<string, KindFacts>>;

export type FaultKinds = typeof KINDS;
export type FaultKind = keyof FaultKinds;
export const FAULT_KINDS: Readonly<Record<FaultKind, KindFacts>> = KINDS;
export const FAULT_KIND_NAMES = Object.keys(FAULT_KINDS) as readonly FaultKind[];
