/** Edges that no seed takes, by machine, each with the reason. Held against real runs by `run.ts`. */

const THROWS = 'the act answers with an outcome, also when its call is lost; only a fault in the code throws';

const PATIENT = 'a quarter of an hour at least, and whatever waits is answered when all is healed';

/** No complaint when it is taken, and none when it is not. */
export const RARE = 'two things that seldom meet: some hundreds of seeds take it, others do not';

export const UNTAKEN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  certificate: {
    'asking.requesting -> backingOff on error(submit)': THROWS,
    'asking.waiting -> backingOff on after patience': PATIENT,
    'asking.waiting.looking -> asking.waiting.pausing on error(look)': THROWS,
    'asking.waiting.watching -> asking.waiting.pausing on done(follow) #3': RARE,
    'backingOff -> judging on certificate.template #1': RARE,
    'resting -> judging on certificate.template': RARE,
  },
  cgroups: {
    'enforcing -> enforced on done(enforce) #2': RARE,
  },
  checkpoint: {
    'flushing -> ended on error(flush)': THROWS,
  },
  // A disk that fails in the very moment, a pod that goes while its driver hangs. `test/integration/claims` and the kill tests take them.
  claim: {
    'forgetting -> settling on error(save)': RARE,
    'idle -> settling on claim.release': RARE,
    'judged -> recorded on always #2': RARE,
    'parting -> settling on error(save)': RARE,
    'preparing -> settling on claim.release #1': RARE,
    'recorded -> settling on always #1': RARE,
    'recording -> settling on error(save)': RARE,
    'storing -> settling on error(save)': RARE,
  },
  container: {
    'exited -> running on container.observed #1': RARE,
    'pulling -> failed on error(ensureImage)': THROWS,
    'starting -> failed on error(startContainer)': THROWS,
    'stoppingAgain -> exited on container.observed #1': RARE,
  },
  containerStop: {
    'stopping -> ended on error(stopContainer)': THROWS,
  },
  cpus: {
    'serving.sharing.confining -> serving.sharing.resting on error(share)': THROWS,
  },
  eviction: {
    'awaitingEnd -> observing on after 1000 #2': RARE,
    'checkingLimits -> judging on error(checkLimits)': RARE,
    'judging -> freeingImages on always #3': RARE,
    'measuring -> resting on done(measure) #2': RARE,
  },
  fileSource: {
    'files.missing -> files.relisting on file.hint': RARE,
  },
  hook: {
    'asking.running -> ended on error(runHook)': THROWS,
    'sleeping -> ended on after sleep #1': RARE,
  },
  podAllocation: {
    // A manager dies while it is asked.
    'weighing -> answered on error(weigh)': RARE,
  },
  // `test/pods/podLife.test.ts` takes each of them.
  podLife: {
    'idle -> forgotten on life.added #2': RARE,
    'idle.ended -> working.running on life.found #2': RARE,
    'idle.quarantined -> forgotten on life.redefined': RARE,
    'idle.quarantined -> idle.ended on life.finished': RARE,
    'idle.quarantined -> working.failing on life.found': RARE,
    'idle.refused -> working.failing on life.found': RARE,
    'idle.waiting -> working.running on life.added #1': RARE,
    'idle.waiting -> working.running on life.changed': RARE,
    'seen -> idle.quarantined on life.leftAlone': RARE,
    'working -> forgotten on life.quarantined #1': RARE,
    'working -> idle.quarantined on life.quarantined #2': RARE,
    'working -> working.failing on life.refused #3': RARE,
    'working.leaving -> forgotten on life.quarantined': RARE,
  },
  podWorker: {
    // The link is lost as a worker begins, and nothing comes to its pod before it asks again.
    'fencingAgain -> fencing on after wait': RARE,
    'fencingAgain -> fencing on pod.dirty': RARE,
    'syncing.awaitingEnd -> terminating on pod.update #2': RARE,
    'syncing.backingOff -> terminating on pod.update #2': RARE,
    'syncing.creatingSandbox -> syncing.actFailed on error(runSandbox)': THROWS,
    'syncing.killing.fencing -> syncing.inspecting on error(fence)': RARE,
    'syncing.preparingClaims -> syncing.actFailed on error(prepareClaims)': THROWS,
    'syncing.preparingClaims -> syncing.inspecting on pod.update #3': RARE,
    'syncing.preparingClaims -> terminating on pod.update #2': RARE,
    'terminating.releasingClaims -> terminating.claimsHeld on error(releaseClaims)': THROWS,
    'syncing.killing.stopping -> syncing.actFailed on error(stopPod)': THROWS,
    'syncing.killingContainers -> syncing.actFailed on error(killContainers)': THROWS,
    'syncing.resetting.fencing -> syncing.inspecting on error(fence)': RARE,
    'syncing.resetting.removing -> syncing.actFailed on error(resetContainers)': THROWS,
    'terminating.stopping -> terminating.again on error(stopPod)': THROWS,
  },
  prober: {
    'attempting.probing -> resting on error(attempt)': THROWS,
  },
  probes: {
    'loading -> serving on error(load)': THROWS,
  },
  resize: {
    'failed -> choosing on after wait': RARE,
    'failed -> choosing on resize.wanted': RARE,
    'measuring -> choosing on resize.wanted': RARE,
    'measuring -> failed on done(memoryUsage) #1': RARE,
    'measuring -> failed on error(memoryUsage)': RARE,
    'updating -> failed on done(updateResources) #1': RARE,
    'updating -> failed on error(updateResources)': THROWS,
  },
  stop: {
    'sandboxes -> done on error(stopSandboxes)': THROWS,
  },
  token: {
    'held -> gone on after 60000 #1': RARE,
  },
  volume: {
    'refreshing -> unmounting on error(setUp) #1': RARE,
    'unmountFailed -> mounting on volume.want': RARE,
    'unmounting -> mounting on done(tearDown) #1': RARE,
    'unmounting -> mounting on error(tearDown) #1': RARE,
  },
};
