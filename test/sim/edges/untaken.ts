/** Edges that no seed takes, by machine, each with the reason. Held against real runs by `run.ts`. */

const THROWS = 'the act answers with an outcome, also when its call is lost; only a fault in the code throws';
const STANDALONE = 'no simulated node belongs to a cluster yet';
const UNASKED = 'no drawn fault makes a mailbox overflow, and nobody asks for it otherwise';
const DIR_STAYS = 'the directory of manifests is never removed or replaced';
const CLOSES = 'the listeners of the simulation close without fail';
const STORE = 'reads and writes of checkpoints at this moment do not fail in any drawn world';
const NO_VOLUMES = 'no drawn pod has a volume that cannot be mounted or takes its time';
const NOT_REMOVED = 'nobody else removes a running container';
const RARE = 'two things that seldom meet; no drawn fault aims at it yet';

export const UNTAKEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  checkpoint: {
    'flushing -> ended on error(flush)': STORE,
  },
  container: {
    'exited -> running on container.observed #1': RARE,
    'pulling -> failed on error(ensureImage)': THROWS,
    'running -> deciding on container.start': RARE,
    'running -> waiting on container.observed #3': NOT_REMOVED,
    'starting -> failed on error(startContainer)': THROWS,
  },
  fileSource: {
    'files.listing -> files.missing on done(list) #1': DIR_STAYS,
    'files.missing -> files.listing on after untilListing': DIR_STAYS,
    'files.missing -> files.listing on always': DIR_STAYS,
    'files.missing -> files.listing on file.hint': DIR_STAYS,
    'files.starting -> files.listing on watch.ended': RARE,
    'files.unreadable -> files.listing on always': RARE,
    'watch.trying -> watch.trying on always': DIR_STAYS,
  },
  pleg: {
    'relist -> relist.listing on pleg.resync': UNASKED,
    'relist.now -> relist.listing on after 50': RARE,
    'relist.now -> relist.listing on pleg.relist': UNASKED,
    'relist.soon -> relist.listing on pleg.relist': UNASKED,
    'relist.soon -> relist.now on relist.want': RARE,
    'relist.waiting -> relist.listing on pleg.relist': UNASKED,
    'relist.waiting -> relist.now on relist.want #1': RARE,
  },
  podWorker: {
    'cleaningAgain -> terminated on after wait': RARE,
    'fencing -> fencingAgain on error(fence)': RARE,
    'fencingAgain -> fencing on after wait': RARE,
    'fencingAgain -> fencing on pod.dirty': RARE,
    'syncing.actFailed -> terminating on pod.update #1': RARE,
    'syncing.awaitingEnd -> syncing.inspecting on pod.update #2': RARE,
    'syncing.awaitingEnd -> terminating on pod.update #1': RARE,
    'syncing.calming -> syncing.inspecting on pod.update #2': RARE,
    'syncing.calming -> terminating on pod.update #1': RARE,
    'syncing.creatingSandbox -> syncing.actFailed on error(runSandbox)': THROWS,
    'syncing.killing.fencing -> syncing.inspecting on error(fence)': RARE,
    'syncing.killing.inspecting -> syncing.inspecting on error(inspect)': RARE,
    'syncing.killing.stopping -> syncing.actFailed on error(stopPod)': THROWS,
    'syncing.killingContainers -> syncing.actFailed on done(killContainers) #1': RARE,
    'syncing.killingContainers -> syncing.actFailed on error(killContainers)': THROWS,
    'syncing.mountingVolumes -> syncing.actFailed on done(mountVolumes) #1': NO_VOLUMES,
    'syncing.mountingVolumes -> syncing.actFailed on error(mountVolumes)': THROWS,
    'syncing.mountingVolumes -> syncing.inspecting on pod.update #2': NO_VOLUMES,
    'syncing.mountingVolumes -> terminating on pod.update #1': NO_VOLUMES,
    'syncing.networkAway -> syncing.inspecting on pod.update #2': RARE,
    'syncing.networkAway -> terminating on pod.update #1': RARE,
    'terminated -> cleaningAgain on error(cleanup)': RARE,
    'terminating -> terminating.fencing on pod.kill #1': RARE,
    'terminating.fencing -> terminating.again on error(fence)': RARE,
    'terminating.stopping -> terminating.again on error(stopPod)': THROWS,
  },
  probes: {
    'loading -> serving on error(load)': STORE,
  },
  server: {
    'closing -> closed on error(close)': CLOSES,
  },
  status: {
    'choosing -> member on always #1': STANDALONE,
  },
};
