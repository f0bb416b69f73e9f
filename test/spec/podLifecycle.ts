/**
 * The traps of the pod lifecycle and the tests that hold them. Where this node does otherwise on purpose (docs/differences.md),
 * `says` has what it does, and the tests hold that.
 */
import type { Held, Trap, Traps } from './table.ts';

/** Traps in that part of the specification. */
export const POD_LIFECYCLE_TRAPS = 60;

const held = (says: string, ...tests: Held[]): Trap => ({ says, tests });

const actions = 'machines/pods/podActions.test.ts';
const backoff = 'machines/pods/crashBackoff.test.ts';
const cluster = 'integration/cluster.test.ts';
const dead = 'machines/pods/dead.test.ts';
const environment = 'machines/objects/environment.test.ts';
const file = 'pods/sources/file.test.ts';
const hooks = 'integration/containers/hooks.test.ts';
const life = 'integration/life/lifeRestarts.test.ts';
const merge = 'machines/sources/merge.test.ts';
const podManager = 'pods/podManager.test.ts';
const probes = 'integration/containers/probes.test.ts';
const status = 'machines/pods/status.test.ts';
const stops = 'integration/life/lifeStops.test.ts';
const inCluster = 'spec/podLifecycleCluster.test.ts';
const onNode = 'spec/podLifecycleNode.test.ts';

export const podLifecycle: Traps = {
  1: held(
    'one manifest in two files is two pods with two UIDs',
    ['machines/sources/decode.test.ts', 'hashes the place after the content: one manifest in two files is two pods'],
    [file, 'gives one manifest in two files two pods with two UIDs, and says which file loses the name'],
  ),
  2: held(
    'an edited static pod is another pod, which starts when the old one has ended',
    [merge, 'replaces an edited static pod: REMOVE of the old UID, then ADD of the new'],
    [stops, 'stops the old pod wholly before the new one starts'],
    ['e2e/pods/manifests.test.ts', 'replaces the pod: the old one is asked to end, and the new one starts only when it is gone'],
  ),
  3: held(
    'a manifest that became unusable keeps its pod until the next listing',
    [file, 'keeps the pod of a manifest that became unusable until the next listing, then removes it'],
    [
      'e2e/pods/manifests.test.ts',
      'keeps its pod until the next listing, then loses it, said by an event and by why; corrected, it is back',
    ],
  ),
  4: held('files of any name are manifests, except those that begin with a dot', [
    file,
    'takes files of any name but dot files, and does not enter directories',
  ]),
  5: held(
    'an empty first set makes its source count as heard',
    [merge, 'emits an empty ADD for an empty first set, and only for the first'],
    [podManager, 'trap 5: an empty first SET makes the source ready'],
    ['integration/life/lifeSupervision.test.ts', 'is stopped when every source has delivered, not before'],
  ),
  6: held(
    'nothing is stopped before every source was heard',
    [podManager, 'trap 6: notes a removal but stops nothing before every source has delivered'],
    ['integration/life/lifeSupervision.test.ts', 'is stopped when every source has delivered, not before'],
    [cluster, 'away at boot: nothing that runs is stopped for want of a list'],
  ),
  7: held(
    'a change of the status alone is RECONCILE; annotations of the node itself do not count',
    [merge, 'reconciles only when nothing but the status differs'],
    [merge, 'annotations of this node'],
  ),
  8: held(
    'a pod first seen while it is deleted is an ADD: ended, never started',
    [merge, 'takes a pod first seen while deleting as ADD'],
    [inCluster, 'trap 8: before the daemon began is an ADD to it: ended, and never started'],
  ),
  9: held(
    'of two pods of one name in one source the first stays; in two sources there are both',
    [merge, 'keeps the first of two pods with one name in one source, and both across sources'],
    ['pods/sources/config.test.ts', 'rejects a second pod of one name with FailedValidation, said once'],
  ),
  10: held(
    'while the runtime is away nothing starts; what came meanwhile starts when it is back (manifests are read all the time, on purpose)',
    ['integration/life/lifeFaults.test.ts', 'for a while: nothing is touched, what ended meanwhile is restarted, what was removed goes'],
    ['e2e/runtime/runtimeLoss.test.ts', 'keeps every container over ten seconds without containerd, and then does what came up meanwhile'],
  ),
  11: held(
    'a listing that hangs for three minutes makes the node NotReady (pods are looked after all the same, on purpose)',
    [inCluster, 'trap 11: for three minutes makes the node NotReady, and Ready again when it is answered'],
    ['runtime/pleg.test.ts', 'say which call is not answered and for how long, and unhealthy after three minutes'],
  ),
  12: held('a container in back-off is started when its wait is over (not up to 15 s later, on purpose), never only at the next resync', [
    life,
    'waits 0, 10, 20, 40, 80, 160, 300, 300 s and shows CrashLoopBackOff meanwhile',
  ]),
  13: held(
    'the first restart comes at once, the second after 10 s, then the wait doubles',
    [backoff, 'trap 13: restarts at once after the first exit, then waits 10, 20, 40, 80, 160, 300, 300 s'],
    [life, 'waits 0, 10, 20, 40, 80, 160, 300, 300 s and shows CrashLoopBackOff meanwhile'],
    ['e2e/pods/pods.test.ts', 'waits 0, 10 and 20 s between its lives, says so, and starts afresh when its image changes'],
  ),
  14: held('an exit 0 counts too where a container is to run always', [
    life,
    'trap 14: counts an exit 0 too where the pod is to run always',
  ]),
  15: held(
    'the series of waits begins anew after a run of more than ten minutes, not after less',
    [backoff, 'trap 15: a run of 9 minutes continues the series, one of more than 10 minutes begins it anew'],
    [life, 'begins anew after a run of more than ten minutes'],
  ),
  16: held(
    'another image begins a series of its own',
    [backoff, 'trap 16: a changed image starts afresh even when the entry is missing'],
    [onNode, 'trap 16: whose image is changed starts at once, from the beginning of the series'],
  ),
  17: held(
    'a container that its liveness probe ended is started again without a wait',
    [actions, 'trap 17: a failed liveness probe stops and restarts in one decision'],
    [probes, 'has the container killed and started again without back-off (trap 17)'],
  ),
  18: held('another definition restarts the container of a Never pod too', [
    actions,
    'trap 18: a changed image restarts the container under policy Never',
  ]),
  19: held(
    'the order in which the runtime lists does not matter',
    [status, 'trap 19: restart count and last state do not depend on the order in which the runtime lists'],
    ['machines/pods/runtimeStatus.test.ts', 'trap 19: is newest first whatever order the runtime lists in, to the nanosecond'],
  ),
  20: held(
    'restart counts outlive the daemon, and in the names of logs also what the runtime held',
    [dead, 'trap 20: the restart count goes on from the log files when the runtime has forgotten'],
    [onNode, 'trap 20: restart counts go on when the runtime has forgotten every container, for the logs are still there'],
    [
      'regression/containers/restartCount.test.ts',
      'it does not fall when the daemon restarts, though the instances and logs before were taken away',
    ],
  ),
  21: held('an end is shown until a start was refused, then as the last state of a container that waits', [
    status,
    'trap 21: an exit is shown until a start was refused; then the container waits and the exit is its last state',
  ]),
  22: held(
    'after a restart a container in back-off is shown as ended or as waiting, with its end (the back-off goes on, on purpose)',
    [onNode, 'trap 22: never shows less after a restart of the daemon than how it ended, though what was said of its starts is lost'],
    [life, 'does not begin anew when the daemon is killed: the wait goes on where it stood'],
  ),
  23: held('statuses of containers are sorted by name', [status, 'trap 23: containers are sorted by name, init containers are not']),
  24: held('one container that never started keeps its pod Pending', [
    status,
    'trap 24: one container that never started keeps the pod Pending; one in back-off does not',
  ]),
  25: held(
    'a container that ran and is gone ended with 137, unseen',
    [status, 'trap 25: a running container that is gone ended with 137, counts as a restart once, and the pod stays Running'],
    [
      inCluster,
      'trap 25: was removed while the daemon was away: it ended with 137, which is a restart, and its pod was Running all the time',
    ],
  ),
  26: held(
    'a pod that has ended stays so whatever runs, and what runs of it is stopped',
    [status, 'trap 26: a terminal phase of the API or of this node stays, whatever runs'],
    ['integration/node/eviction.test.ts', 'ends what it runs when the API server tells late that an earlier daemon had evicted it'],
  ),
  27: held(
    'the end of a pod is told when nothing of it runs any more',
    [status, 'trap 27: a terminal phase waits until nothing can run, then Ready and ContainersReady are False'],
    [inCluster, 'trap 27: is shown only when nothing runs any more'],
  ),
  28: held(
    'first the end is told, then the object deleted, by its UID',
    [inCluster, 'trap 28: is shown as ended before it is deleted for good, by its UID, and one of its name that came after is left alone'],
    [cluster, 'recreated under the same name is another pod: no status and no deletion reaches the wrong UID'],
  ),
  29: held('the object does not wait for containers and sandboxes to be removed', [
    inCluster,
    'trap 29: goes from the API although the runtime removes nothing of it',
  ]),
  30: held(
    'the grace of a stop under way shrinks, and never grows',
    [inCluster, 'trap 30: with less grace than before goes sooner; with more, no later'],
    [stops, 'that shrinks interrupts a stop under way; one that grows changes nothing'],
  ),
  31: held(
    'a deletion by force leaves 2 s and runs no preStop hook',
    [hooks, 'of a pod deleted by force is skipped, and TERM still has 2 s (trap 31)'],
    ['machines/golden/workers/hooks.test.ts', 'stop: deletion by force'],
  ),
  32: held(
    'whole seconds of the preStop hook are taken from the grace, of which 2 s are left',
    ['machines/pods/killOrder.test.ts', 'traps 31, 32: time spent is deducted in whole seconds, and 2 s always remain'],
    [hooks, 'that takes longer than the grace leaves 2 s for the stop (trap 32), and that is said'],
  ),
  33: held(
    'a container that its pod no longer names is stopped (the reference leaves it running)',
    ['regression/containers/removedContainer.test.ts', 'is stopped, and the others are not touched'],
    [
      'machines/pods/killOrder.test.ts',
      'trap 31: no preStop hook without grace; trap 33: a container that the definition lost is stopped all the same',
    ],
  ),
  34: held('sandboxes are stopped although containers do not stop, and those that are not ready again', [
    onNode,
    'trap 34: stops every sandbox of its pod, also when containers do not stop, and again those that are not ready',
  ]),
  35: held(
    'a lost address is told as a change of the sandbox, a move to the network of the host is not',
    [actions, 'trap 35: host network toggled gives no old sandbox, a lost address does'],
    ['regression/containers/sandboxChanged.test.ts', 'stopped with a container still up: stopped once, announced once'],
    ['regression/containers/sandboxChanged.test.ts', 'given up because the pod moved to the host network: not announced'],
  ),
  36: held(
    'a new sandbox begins with the first init container; a Never pod that ran gets none',
    [
      actions,
      'traps 36 and 59: a Never pod that ran and lost its sandbox is only stopped; others begin again with the first init container',
    ],
    [stops, 'that dies is made again with the next attempt, and the pod is initialised anew'],
    [
      'regression/containers/deadSandbox.test.ts',
      'fails a Never pod whose sandbox ended before every container had run: nothing of it can ever start',
    ],
  ),
  37: held(
    'an init container that was collected does not run again beside its pod',
    [actions, 'trap 37: collected init containers do not rerun beside a running container'],
    [onNode, 'trap 37: an init container that was removed does not run again beside its pod'],
  ),
  38: held(
    'an ephemeral container starts before the pod is initialised, and once',
    [actions, 'trap 38: an ephemeral container starts before initialisation is complete, and never again'],
    [
      'integration/containers/debugContainers.test.ts',
      'that ends is not started again, also not after a restart of the daemon, and its pod stays Ready',
    ],
  ),
  39: held(
    'what follows a sidecar waits until it has started; sidecars end last, in reverse order, and keep no pod alive',
    [actions, 'trap 39: what follows a sidecar starts when its startup probe succeeded, whatever its readiness'],
    [actions, 'trap 39: sidecars do not keep a finished pod alive, a crashed one restarts beside the others'],
    ['machines/pods/killOrder.test.ts', 'trap 39: sidecars stop after the regular containers, in reverse order; everything else at once'],
    [hooks, 'of one container does not hold up the stop of another; a sidecar waits, its hook does not (trap 39)'],
    [probes, 'of a sidecar holds back what comes after it (trap 39)'],
  ),
  40: held('readiness is asked while a pod is stopped, liveness and startup are not', [
    probes,
    'goes on while the pod is being stopped; liveness does not (trap 40)',
  ]),
  41: held('an error is tried three times and then counts as nothing', [
    probes,
    'says nothing when the runtime does not answer: errors are tried three times and count as nothing (trap 41)',
  ]),
  42: held(
    'the initial delay counts from the start of the container (and is over to the moment, on purpose)',
    [probes, 'counts the initial delay from the start of the container'],
    ['probes/decisions.test.ts', 'counts the initial delay from the start of the container, as exactly as that is known'],
  ),
  43: held(
    'a redirect to another host is success with a warning, one to the same host is followed',
    ['probes/attempt.test.ts', 'follows a redirect to the same host, stops at one to another host with a warning, and gives up on a loop'],
    ['probes/requests.test.ts', 'to another host is not'],
  ),
  44: held('Accept that is given and empty is not sent', [
    'probes/requests.test.ts',
    'leaves out Accept when it is given and empty (trap 44)',
  ]),
  45: held('a postStart hook is content with any HTTP answer', [
    hooks,
    'over HTTP is content with any answer (trap 45), and fails where there is none',
  ]),
  46: held('a postStart hook holds up the containers after it', [
    hooks,
    'holds up later containers and the status of its own until it has ended (trap 46)',
  ]),
  47: held('an optional key that is missing leaves what was there', [
    environment,
    'optional and missing leaves what envFrom and services gave (trap 47)',
  ]),
  48: held('a variable may refer to the service variable that it replaces', [
    environment,
    'may refer to the service variable that it replaces (trap 48)',
  ]),
  49: held('a pod waits for the first list of services, a static one does not', [
    'integration/cluster/clusterEnvironment.test.ts',
    'waits for the first list of services, which static pods do not (trap 49)',
  ]),
  50: held('resource references round up and fall back to what the node can give', [
    'machines/pods/config/config.test.ts',
    'trap 50: resource references round up and fall back to what the node can give',
  ]),
  51: held(
    'the tail of the termination file counts; the log stands in for a failure without a message only',
    [dead, 'trap 51: the last 4096 bytes of the file count'],
    [dead, 'trap 51: the log stands in only for a failure without a message, under that policy'],
  ),
  52: held('a mirror pod that a user deletes comes back as another object, and no container notices', [
    cluster,
    'that a user deletes comes back, and no container notices',
  ]),
  53: held('the status of a static pod is written to its mirror, by the UID of that, and to nothing where there is none', [
    inCluster,
    'trap 53: has no status written while nothing mirrors it, and then to the UID of the mirror',
  ]),
  54: held('after a restart with less room new pods are refused (what runs stays, on purpose)', [
    'integration/resources/placement.test.ts',
    'trap 54: keeps what runs over a restart, and refuses what is new',
  ]),
  55: held('a refused pod has no worker, sandbox or probe, and can be deleted', [
    inCluster,
    'trap 55: has no worker, no sandbox and no probe, and goes when it is deleted',
  ]),
  56: held(
    'the start time is set once, and deadlines count from it over restarts',
    [status, 'trap 56: the start time is set once'],
    [life, 'fails the pod when it is over, to the second, across a restart of the daemon'],
  ),
  57: held(
    'conditions of others stay, and times alone are nothing new',
    [status, "trap 57: other writers' conditions are passed on, and a condition keeps its time while its status stays"],
    [status, 'trap 57: drops what says nothing new, ignoring times and other conditions, unless forced'],
    [cluster, 'keeps conditions that are not ours, and ours are put right'],
  ),
  58: held(
    'a pinned UID that goes and comes back while it is stopped starts anew afterwards',
    [podManager, 'trap 58: a pinned UID that is removed and added again while stopping starts anew when it has finished'],
    [stops, 'with a pinned UID that goes and comes back while it is being stopped begins a new life'],
  ),
  59: held(
    'one dead instance per container is kept, so that no Never pod runs it again',
    [dead, 'trap 59: keeps the newest dead instance per container, removes the others oldest first'],
    [onNode, 'trap 59: one dead instance stays through every sweep, so that a Never pod does not run it again'],
  ),
  60: held(
    'of many updates during long work the newest counts, once, and a stop is never lost',
    [onNode, 'trap 60: is answered once, for the newest of them'],
    [onNode, 'trap 60: never covers a stop'],
    ['supervision/mailbox/mailbox.test.ts', 'coalesces by key in the place of the oldest and joins the causes'],
  ),
};
