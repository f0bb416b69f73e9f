/**
 * The table of scenario files, but for the kinds of faults (`kinds.ts`): what a fault selects, the fields that all faults
 * have, and `spec.simulation`. Types (`types.ts`), the decoder and the JSON Schema for editors come from it.
 */

import {
  about,
  any,
  duration,
  filled,
  integer,
  matching,
  named,
  number,
  oneOrMore,
  required,
  type Shape,
  string,
  type Typed,
  words,
} from '@actorlet/kubelet/machines/shape/shape.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import { CRI_METHODS } from '@actorlet/kubelet/machines/wire/criMethods.ts';

export const SCENARIO_API_VERSION = 'actorlet.dev/v1alpha1';
export const SCENARIO_KIND = 'FaultScenario';
export const NAME_PATTERN = '^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$';

/** A year: more is a slip of the unit. */
export const DURATION_MAX_MS = 8_760 * 3_600_000;
const COUNT_MAX = 10_000;
const STEPS_MAX = 100_000;
const PODS_MAX = 100;
const NODES_MAX = 8;

const TEXTS = oneOrMore(string);
const METHODS = Object.keys(CRI_METHODS) as readonly CriMethod[];

/** A moment, or a length of time, that is not negative. */
export function time(minMs = 0): Shape & Typed<number> {
  return duration({ minMs, maxMs: DURATION_MAX_MS });
}

/**
 * What a fault is about. A list that is absent or empty selects everything; within a list one match is enough, and every
 * list must match. `*` in a pattern stands for any text within one segment, `**` also across slashes.
 */
export const SELECT = {
  methods: about('CRI calls by name.', oneOrMore(words(...METHODS))),
  hints: about("Hints of the runtime's event stream.", oneOrMore(words('created', 'started', 'stopped', 'deleted', 'oom', 'other'))),
  namespaces: about('Namespaces of the pods that the call or actor is about.', TEXTS),
  pods: about('Names of the pods that the call or actor is about.', TEXTS),
  containers: about('Names of containers.', TEXTS),
  actors: about('Actor paths below `node`, e.g. `pods/workers/*`.', TEXTS),
  lanes: about('Lanes of mailboxes.', oneOrMore(words('control', 'data'))),
  events: about('Types of messages, e.g. `pod.dirty` or `pleg.*`.', TEXTS),
  paths: about('Absolute file paths.', TEXTS),
  ops: about('Operations of the file system.', oneOrMore(words('read', 'write', 'rename', 'sync', 'mkdir', 'symlink', 'chmod', 'remove'))),
  verbs: about('API requests.', oneOrMore(words('get', 'list', 'watch', 'create', 'update', 'patch', 'delete'))),
  resources: about('API resources in plural, e.g. `pods`, `leases`, `pods/status`.', TEXTS),
} as const;
export type Selector = keyof typeof SELECT;

/** When and how often. In the order in which a decoder reads them. */
export const WHEN = {
  name: about('Unique in its scenario. Reports use it, and `after`. Default: fault-1, fault-2, ...', filled(string)),
  probability: about('Of each hit for a fault that lasts, of happening at all for one that does not. Default 1.', filled(number(0, 1), 1)),
  times: about('Hits after which a window does nothing more. Default: no limit.', integer(1, COUNT_MAX)),
  nodes: about('Node names. Default: every node.', filled(TEXTS, [])),
  at: about(
    'From the beginning of the scenario, or from the end of the first window of the fault named by `after`. Default 0s.',
    named('atMs', filled(time(), 0)),
  ),
  after: about('Name of the fault that must have ended.', string),
  for: about('Length of a window. Default: until the scenario ends.', named('forMs', time(1))),
  every: about('From one beginning to the next.', named('everyMs', time(1))),
  count: about('Windows at most. Default 1 without `every`.', integer(1, COUNT_MAX)),
  steps: about(
    'Simulation only: steps of the world after its moment, which lets a fault hit any step of one instant.',
    filled(integer(0, STEPS_MAX), 0),
  ),
} as const;
/** Fields of faults that have a window. */
export const LASTING: readonly string[] = ['times', 'for'];
/** Fields that a running daemon refuses. */
export const SIMULATED: readonly string[] = ['steps'];

export const METADATA = {
  name: about('Lower-case letters, digits, "-" and ".", at most 63 characters.', required(matching(NAME_PATTERN))),
  description: about('For people.', filled(string, '')),
} as const;
/** Everything injected is healed then at the latest. */
export const DURATION = about('Everything is healed then. Default: 2m in the simulation, 10m in a running daemon.', time(1));

/** What `actorctl sim` makes of a scenario besides its faults; a running daemon ignores it. */
export const SIMULATION = {
  pods: about("Pods drawn per node. Default: the command line's.", integer(0, PODS_MAX)),
  nodes: about("Nodes in the world. Default: the command line's.", integer(1, NODES_MAX)),
} as const;

const POD = about('Name of the pod.', required(string));
/** One thing that the person at the node does, by kind. */
export const WORKLOAD = {
  'pod.put': {
    source: about('Where it is put. Default file.', filled(words('file', 'http'), 'file')),
    fate: about('What is expected of the pod. Default steady.', filled(words('steady', 'ends', 'loops'), 'steady')),
    manifest: about('A Pod, as in a manifest file.', required(any)),
  },
  'pod.remove': { name: POD },
  'pod.break': { name: POD },
  'pod.mend': {},
} as const;
export type WorkloadKind = keyof typeof WORKLOAD;
export const WORKLOAD_KINDS = Object.keys(WORKLOAD) as readonly WorkloadKind[];
/** Fields of every entry of the workload. */
export const WORKLOAD_WHEN = {
  at: about('From the beginning of the scenario. Default 0s.', named('atMs', filled(time(), 0))),
  nodes: about('Node names. Default: every node.', filled(TEXTS, [])),
} as const;
