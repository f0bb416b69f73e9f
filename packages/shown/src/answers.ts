/** What `actorctl why`, `healthz`, `recorder`, `deaths` and `disagreements` print as data: the tables of their fields, from which the schemas are written. */
import { about, any, bool, integer, list, type ObjectOf, object, required, string } from '@actorlet/kubelet/machines/shape/shape.ts';

const text = required(string);
const flag = required(bool);
const count = required(integer());
const time = about('Milliseconds since 1970.', integer());
const moment = required(time);

const CAUSE = { atMs: moment, by: about('Path of an actor.', text), what: text };
const EVENT = { atMs: moment, count, type: text, reason: text, message: text };
const MANIFEST = {
  where: about('A file, an address, or an object of the API.', text),
  message: text,
  usable: about('True: only a remark.', flag),
};
const CONTAINER = {
  name: text,
  init: flag,
  state: about('waiting, running or terminated.', text),
  reason: text,
  message: text,
  restarts: count,
  nextStartAtMs: about('While it backs off.', time),
  lastExit: object({
    exitCode: count,
    signal: about('0: none.', count),
    reason: text,
    atMs: about('Absent where the runtime does not tell.', time),
    message: about('Its last words, or why it could not be started.', string),
  }),
};
const POD = {
  uid: text,
  namespace: text,
  name: text,
  source: about('file, http, api or runtime.', text),
  phase: text,
  ready: flag,
  reason: about('Of the status, else of a container that waits, else of the worker.', text),
  message: text,
  worker: about("The state of its worker's statechart; '' where there is none.", text),
  containers: required(list(object(CONTAINER))),
  runtime: about('What is wrong with the runtime.', required(list(string))),
  manifests: required(list(object(MANIFEST))),
  leftAlone: about('Fields without an effect on this node.', required(list(string))),
  causes: required(list(object(CAUSE))),
  events: required(list(object(EVENT))),
};
const ACTOR = {
  path: text,
  name: about('The path, with names of pods in place of their UIDs.', text),
  ok: flag,
  reason: text,
  down: about('A part that must be there is not.', flag),
};
const NODE = {
  name: text,
  ready: flag,
  problems: about('Why it is not ready, what it has lost, which sources it cannot read.', required(list(string))),
  pressures: required(list(string)),
  pods: about('namespace/name of those that are not ready, or keep failing.', required(list(string))),
  unwell: required(list(object(ACTOR))),
};

/** `why`. */
export const WHY = {
  found: about('The words name something that this node knows.', flag),
  lines: about('The same for people.', required(list(string))),
  pod: about('A pod of this node.', object(POD)),
  node: about('The node itself.', object(NODE)),
};
/** `healthz`. */
export const HEALTH = {
  healthy: flag,
  actors: required(list(object(ACTOR))),
  faultsAtWork: about('How many; null where faults may not be injected.', required(any)),
};
/** An entry of `recorder`. */
export const ENTRY = {
  n: about('Counts up from 0 over the life of the daemon.', count),
  atMs: moment,
  kind: text,
  path: text,
  what: text,
  detail: text,
  from: text,
  causes: required(list(object(CAUSE))),
};

/** An entry of `deaths`, and the head of `death`. */
export const DEATH_HEAD = {
  id: about('Sorts by time.', text),
  kind: about('oom, probe, exit, signal, start, image, evicted, refused or stuck.', text),
  pod: required(object({ uid: text, namespace: text, name: text })),
  owner: about("KIND/NAME of its controller; '' where it has none.", text),
  container: about("'' for a pod as a whole.", text),
  atMs: moment,
  key: about('The same death has it once.', text),
  title: about('In one line.', text),
  nth: about('Which one of its loop it is, from 1.', count),
};
/** `disagreements`. */
export const LEDGER = {
  sinceMs: moment,
  expected: about('What is waited for now.', required(list(object({ kind: text, pod: text, uid: text, what: text, sinceMs: moment })))),
  disagreements: required(
    list(
      object({
        id: count,
        sort: about('missing, unexpected or differs.', text),
        kind: about('The act, in the words of its interface.', text),
        pod: about("NAMESPACE/NAME; '' of the node.", text),
        uid: text,
        expected: text,
        came: text,
        sinceMs: moment,
        settledMs: about('Milliseconds since 1970; null while it stands.', required(any)),
        rule: about('An entry of docs/spec.', text),
        known: about('An entry of docs/differences.md; null: it is on no list.', required(any)),
      }),
    ),
  ),
  counts: about('Judged acts.', required(list(object({ kind: text, agreed: count, disagreed: count, known: count })))),
  dropped: about('Disagreements that there were too many to keep.', count),
};

export type Explanation = ObjectOf<typeof WHY>;
export type PodExplained = ObjectOf<typeof POD>;
export type NodeExplained = ObjectOf<typeof NODE>;
