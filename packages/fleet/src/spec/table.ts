/** The table of fleet files: fields, limits and words. Types, the decoder and the JSON Schema for editors come from it. */
import { METADATA as OF_SCENARIOS } from '@actorlet/faults/src/table.ts';
import {
  about,
  bool,
  bytes,
  duration,
  filled,
  integer,
  matching,
  named,
  number,
  oneOrMore,
  quantity,
  required,
  type Shape,
  string,
  type Typed,
  words,
} from '@actorlet/kubelet/machines/shape/shape.ts';

export const FLEET_KIND = 'Fleet';
/** Nodes of one process. */
export const NODES_MAX = 20_000;
export const GROUPS_MAX = 1_000;
export const ADOPT_MAX = 100;
const PODS_MAX = 10_000;
const CPUS_MAX = 1_024;
const DAY_MS = 86_400_000;
const VOLUMES_MAX = 1_000;
export const STORAGE_MAX = 20;
/** Entries of a group: as many drivers. */
export const DRIVERS_MAX = 32;
export const STEPS_MAX = 10_000;
export const EXPECT_MAX = 1_000;
/** Of a ResourceSlice, as the API server has it. */
const DEVICES_MAX = 128;
const COUNT_MAX = NODES_MAX * PODS_MAX;

const TEXTS = oneOrMore(string);
export const VERSION = '^v1\\.[0-9]{1,3}\\.[0-9]{1,4}([-+][0-9A-Za-z.+-]{1,64})?$';
export const time = (): Shape & Typed<number> => duration({ minMs: 0, maxMs: DAY_MS });
const COUNT = integer(0, COUNT_MAX);

export const { name: NAME, description: DESCRIPTION } = OF_SCENARIOS;
export const SEED_MAX = 2 ** 32 - 1;
export const SEED = about('The same seed draws the same delays and shares. Default 1.', filled(integer(0, SEED_MAX), 1));

/** A length of time that is drawn anew each time: one of three forms. */
export const DELAY = {
  uniform: {
    from: about('The shortest.', named('fromMs', filled(time(), 0))),
    to: about('The longest. Default: as `from`.', named('toMs', time())),
  },
  /** Logarithms of the values are normally distributed, as latencies mostly are. */
  logNormal: {
    p50: about('Half of the draws are shorter.', named('p50Ms', required(time()))),
    p99: about('99 of 100 draws are shorter.', named('p99Ms', required(time()))),
  },
} as const;

export const GROUP = {
  name: about('Unique in its file.', required(NAME)),
  count: about('Nodes of the group. In place of `nodes`. 0: it is a shape for nodes that are adopted or added.', integer(0, NODES_MAX)),
  nodeName: about('Names of its nodes, with {index}, which counts from 0. Default: NAME-{index}.', string),
  taints: about('KEY=VALUE:EFFECT.', filled(TEXTS, [])),
  unschedulable: about('Its nodes register cordoned. Default false.', filled(bool, false)),
  providerID: about('Of each node, with {name} or {index}: `aws:///a/{name}`.', filled(string, '')),
  version: about('Version that its nodes report, such as v1.35.2 or v1.34.1-eks-1. Default: of this program.', matching(VERSION)),
  runtimeHandlers: about('Handlers of the container runtime, which a RuntimeClass may name.', filled(TEXTS, [])),
} as const;

/** A node of a group that has them written out. */
export const NAMED_NODE = {
  name: about('Its name.', required(string)),
  providerID: about('Default: of the group.', string),
} as const;

/** What a node says of its machine. */
export const MACHINE = {
  kernel: about('Version of the kernel, as `uname -r` says it.', string),
  osImage: about('Name of the operating system, as in /etc/os-release.', string),
  arch: about('Default amd64.', words('amd64', 'arm64', 'arm', '386', 'ppc64le', 's390x', 'riscv64')),
  os: about('Default linux.', words('linux', 'windows')),
} as const;

export const CAPACITY = {
  cpu: about('Processors. Default 8.', named('cpus', filled(integer(1, CPUS_MAX), 8))),
  memory: about('Default 32Gi.', named('memoryBytes', filled(bytes, 32 * 2 ** 30))),
  pods: about('Pods that a node takes. Default 110.', filled(integer(1, PODS_MAX), 110)),
  'ephemeral-storage': about('Default 1T. 0: the node reports none.', named('storageBytes', bytes)),
} as const;
/** What of its capacity pods may use. */
export const ALLOCATABLE = {
  cpu: about('Such as 7910m. Default: as the capacity.', quantity),
  memory: about('Default: as the capacity, without huge pages.', named('memoryBytes', bytes)),
  'ephemeral-storage': about('Default: as the capacity.', named('storageBytes', bytes)),
} as const;

/** Devices for dynamic resource allocation. */
export const DEVICES = {
  driver: about('Of the devices, and unique in its group. A DeviceClass selects them by it.', required(string)),
  count: about('So many on each node. Default 1.', filled(integer(1, DEVICES_MAX), 1)),
} as const;

/** Where the clock of a node stands. One of both. */
export const CLOCK = {
  ahead: 'So far ahead of the clock of the fleet, drawn for each node.',
  behind: 'So far behind it.',
} as const;
export const CLOCK_FOR = about('Of inject: how long. Then the clocks are as before. Default: to the end.', named('forMs', time()));

/** What the runtime of a group takes time for. */
export const DELAYED = {
  sandbox: 'To make the sandbox of a pod.',
  pull: 'To pull an image, whatever its size.',
  start: 'To start a container.',
} as const;
export const BANDWIDTH = about('Bytes a second at which images are pulled, besides `pull`. Default: at once.', bytes);

export const IMAGE = {
  name: about('Image names: `*` is any text without a slash, `**` any text.', required(TEXTS)),
  size: about('Size of each.', named('sizeBytes', required(bytes))),
} as const;

/** Which containers a rule is about. Every list that is there must match. */
export const RULE_SELECT = {
  images: about('Names of images, with `*` and `**`.', TEXTS),
  namespaces: about('Namespaces of the pod, with `*`.', TEXTS),
  containers: about('Names of containers, with `*`.', TEXTS),
  groups: about('Groups of nodes.', TEXTS),
  which: about('Init containers alone, or all others. Default: both.', words('init', 'main')),
} as const;
/** What the containers of a rule do. */
export const RULE_LIFE = {
  weight: about('Of several rules that match, one is drawn in proportion to its weight. Default 1.', filled(number(0, 1_000_000), 1)),
  hollow: about('A life, as in the annotation actorlet.dev/hollow.', string),
  usage: about('What it uses, as in the annotation actorlet.dev/usage.', string),
} as const;
export const STAGES = about('Files of KWOK Stages, relative to this file.', TEXTS);
export const EXIT = about('Its exit code when it ends by itself. Default 0.', integer(0, 255));
export const RULE_DELAYS = { start: 'To start.', run: 'Until it ends by itself.', stop: 'From the signal to stop until its end.' } as const;

/** A CSI driver that the fleet plays, with a StorageClass. */
export const STORAGE = {
  name: about('Of its StorageClass. Unique in its file.', required(string)),
  driver: about('Name of the driver. Default: NAME.csi.actorlet.dev.', string),
  binding: about(
    'When volumes are made: volumeBindingMode of the StorageClass. Default Immediate.',
    filled(words('Immediate', 'WaitForFirstConsumer'), 'Immediate'),
  ),
  volumesMax: about('Volumes of it that a node takes. Default 0: no limit.', filled(integer(0, VOLUMES_MAX), 0)),
} as const;
export const STORAGE_DELAYS = {
  provision: 'To make a volume for a claim. Default 0s.',
  attach: 'To attach a volume to a node. Default 0s.',
} as const;
export const VOLUME_FAULT = {
  fault: about(
    'attach-fails: each try to attach ends with an error. attach-hangs: it does not end.',
    required(words('attach-fails', 'attach-hangs')),
  ),
  storageClasses: about('Volumes of these StorageClasses; `*` is any text.', TEXTS),
  volumes: about('PersistentVolumes of these names; `*` is any text.', TEXTS),
  claims: about('Volumes of these claims, as NAMESPACE/NAME; `*` is any text.', TEXTS),
  message: about('Of attach-fails: what the driver says.', string),
} as const;
export const VOLUME_FAULT_FOR = about('How long. Default: to the end.', named('forMs', time()));

/** Nodes that an autoscaler makes. */
export const ADOPT = {
  name: about('For people, for `groups` of steps and rules, and unique in its file.', required(NAME)),
  group: about(
    'Group whose shape a node has that no group has the instance type of. Default: what its status says, else a default node.',
    string,
  ),
} as const;
/** Which nodes: every list that is there must match. */
export const ADOPT_NODES = {
  selector: about("kubectl's label selector: karpenter.sh/nodepool,arch!=arm64.", string),
  names: about('Names of nodes, with `*`.', TEXTS),
  providerIDs: about('Ids at the provider, with `*` and `**`: `kwok://**`.', TEXTS),
} as const;
export const REGISTRATION = 'From the creation of the node until its kubelet begins. Default 0s.';
export const REFUSE = {
  as: about(
    'noCapacity: the node is deleted, with an event. dead: its kubelet never comes. late: it comes later.',
    required(words('noCapacity', 'dead', 'late')),
  ),
  share: about('That part of the nodes, drawn by the seed.', number(0, 1)),
  order: about('The first node that is adopted is 1, the next one 2. In place of `share`.', oneOrMore(integer(1, NODES_MAX))),
} as const;
export const REFUSE_BY = 'Of late: so much later.';

export const INTERRUPTION_TAINT = 'actorlet.dev/interruption:NoSchedule';
const FLAPS_MAX = 100;
const STEPS = {
  restart: 'Daemons of these nodes restart, all at once. Their pods run on.',
  stop: 'These nodes are switched off.',
  start: 'Nodes that were switched off start again.',
  add: 'Nodes are added to a group, as by an autoscaler: their numbers go on.',
  remove: 'Machines of these nodes end, and their nodes are deleted.',
  interrupt: 'As a spot interruption: these nodes get a taint and the condition Interruption, and are removed after `notice`.',
  flap: 'The daemons of these nodes end and start again, several times. Their pods run on.',
  inject:
    'A fault scenario is injected into these nodes; with `clock`, their clocks are set; with `volumes`, volumes are not attached to them; with `api`, it is a fault that clients of the API server meet.',
  apply: 'Objects are created, or changed to what the manifest says.',
  delete: 'Objects of the manifest are deleted.',
  evict: 'The pods of these nodes are evicted, as kubectl drain does. Disruption budgets are kept.',
  backup: 'The data of etcd is copied, while the control plane is away for a moment. With --api local.',
  restore: 'The data of etcd becomes what it was at the last backup: objects are old, and versions go back. With --api local.',
} as const;
export type StepName = keyof typeof STEPS;
const STEP_NAMES = Object.keys(STEPS) as readonly StepName[];
export const STEP = {
  at: about('From the beginning of the run.', named('atMs', required(time()))),
  do: about('What is done.', required(words(...STEP_NAMES))),
  scenario: about('File of a fault scenario, relative to this file. For inject.', string),
  manifests: about('Files with objects of Kubernetes, relative to this file. For apply and delete.', TEXTS),
  group: about('Group to which nodes are added. For add.', string),
  count: about('So many nodes. For add. Default 1.', integer(1, NODES_MAX)),
  notice: about('From the notice to the end of the machine. For interrupt. Default 2m.', named('noticeMs', time())),
  taint: about(`KEY=VALUE:EFFECT. For interrupt. Default ${INTERRUPTION_TAINT}.`, string),
  down: about('How long daemons are away. For flap. Default 60s.', named('downMs', time())),
  up: about('How long they are back. For flap. Default 60s.', named('upMs', time())),
  times: about('How often they are away. For flap. Default 3.', integer(1, FLAPS_MAX)),
} as const;
export const SELECTION = {
  share: about('That part of them, drawn by the seed. Default 1.', filled(number(0, 1), 1)),
  groups: about('Groups of nodes. Default: all.', TEXTS),
} as const;

/** What is counted or measured: exactly one in an expectation. */
export const MEASURES = {
  nodesReady: about(
    'Nodes of this process that are Ready and whose daemon runs and knows it: at least so many. For what the cluster sees while daemons restart: objects of the kind Node, with the condition Ready.',
    COUNT,
  ),
  podsReady: about('Pods that are Ready and that running daemons of this process know: at least so many.', COUNT),
  seconds: about(
    'A percentile of seconds. nodeReady: from the start of a daemon until the node was seen Ready. podReady: from the creation of a pod, which the API server tells in whole seconds, until it was Ready. podStart: from the moment when its node saw it.',
    words('nodeReady', 'podReady', 'podStart'),
  ),
  calls: about(
    'Requests of the nodes to the API server, as VERB RESOURCE: `PATCH pods/status`, `* leases`. Verbs: GET (lists, too), POST, PUT, PATCH, DELETE, WATCH, *.',
    string,
  ),
  leftBehind: about(
    'Objects that are left behind, at most so many: those that were asked to go and wait for a finalizer, and those whose owners are gone.',
    COUNT,
  ),
} as const;
/** Of `events`. */
export const EVENTS = {
  reason: about('Such as FailedScheduling.', string),
  type: about('Normal or Warning.', string),
  kind: about('Kind of the object that the event is about.', string),
  name: about('Name of that object.', string),
  namespace: about('Default: all.', string),
} as const;
/** Of `requests`, besides which. */
export const REQUESTS = {
  per: about('run: all of them. minute: the most within any minute. Default run.', filled(words('run', 'minute'), 'run')),
} as const;
export const EXPECT = {
  name: about('For the report. Default: what is expected.', string),
  atLeast: about('Lower bound.', number(0, COUNT_MAX)),
  atMost: about('Upper bound.', number(0, COUNT_MAX)),
  percentile: about('Of seconds: from 0 to 100. Default 99.', number(0, 100)),
  condition: about('Of objects: those count whose condition is True; `Ready=Unknown` for another status.', string),
  field: about('Of objects: the sum of the numbers at this path, such as status.availableReplicas.', string),
  where: about('Of objects: those count for which this is true, in CEL: object.spec.replicas == object.status.readyReplicas', string),
  afterFaults: about(
    'Instead of after and within: it is looked at from the last step and the end of the last fault on, for so long.',
    named('afterFaultsMs', time()),
  ),
  after: about('It is not looked at before. Default 0s.', named('afterMs', filled(time(), 0))),
  within: about(
    'It is decided then. Seconds and calls have the end of the run as default: all steps are done, and all else is decided.',
    named('withinMs', time()),
  ),
  holds: about(
    'once: it must be seen at one moment. throughout: at every look. Default once.',
    filled(words('once', 'throughout'), 'once'),
  ),
} as const;
export const OBJECTS = {
  apiVersion: about('Default v1.', filled(string, 'v1')),
  kind: about('Kind of the objects.', required(string)),
  namespace: about('Default: `default` with a name, else all.', string),
  name: about('That object alone.', string),
  selector: about("kubectl's label selector: app=web,tier!=db.", string),
} as const;
