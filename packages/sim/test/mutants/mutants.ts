/** The mutants: one-line faults for production code. */
import { ALLOCATION_MUTANTS } from './allocation.ts';
import caughtBefore from './caught.json' with { type: 'json' };
import { SLEEP_MUTANTS } from './sleep.ts';

/** Within so many seeds each is caught. */
export const SEEDS_MAX = 200;
/** The seed that caught a mutant when all of them were last hunted, by id. */
export const CAUGHT_BEFORE: Readonly<Record<string, number | undefined>> = caughtBefore;

/**
 * One-line faults for production code, each of which the simulation must notice. `find` is there exactly once in `file`;
 * when it is not, the code has moved on and the entry wants an update.
 */
export interface Mutant {
  id: string;
  file: string;
  find: string;
  replace: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    id: 'an act does not wait for the one before it',
    file: 'src/machines/runtime/cri/fence.ts',
    find: '    lane.queue.push(job);\n    return { start: [], refuse };',
    replace: '    return { start: [job], refuse };',
  },
  {
    id: 'what waits behind an act is forgotten when it settles',
    file: 'src/machines/runtime/cri/fence.ts',
    find: 'const next = lane.queue.shift();',
    replace: 'const next = undefined as J | undefined;',
  },
  {
    id: 'a pod that left its source is not noticed',
    file: 'src/machines/pods/manager/step.ts',
    find: 'if (rec.source !== source || complete.has(uid) ||',
    replace: 'if (rec.source === source || complete.has(uid) ||',
  },
  {
    id: 'a crashed container is not started again',
    file: 'src/machines/pods/workers/actions/podActions.ts',
    find: '      actions.containersToStart.push(name);\n      // It may be running',
    replace: '      // It may be running',
  },
  {
    id: 'an end that restarts all containers restarts one',
    file: 'src/machines/pods/workers/decide.ts',
    find: "const restartingAll = apiStatus.conditions?.some((c) => c.type === ALL_RESTARTING && c.status === 'True') === true;",
    replace: 'const restartingAll = false;',
  },
  {
    id: 'what restarts all containers is taken away first',
    file: 'src/machines/pod/runtime/restartAll.ts',
    find: '[group(regular, false), group(inits, false), group(regular, true), group(inits, true)]',
    replace: '[group(regular, true), group(inits, true), group(regular, false), group(inits, false)]',
  },
  {
    id: 'the definition of a running container is never compared',
    file: 'src/machines/pods/workers/actions/podActions.ts',
    find: "if (!matchesHash(container, newest.hash)) return because('definition changed', 'definitionChanged', true);",
    replace: '',
  },
  {
    id: 'the definition of a running container always differs',
    file: 'src/machines/pods/workers/actions/podActions.ts',
    find: "if (!matchesHash(container, newest.hash)) return because('definition changed'",
    replace: "if (matchesHash(container, newest.hash)) return because('definition changed'",
  },
  {
    id: 'a hint never makes its pod look',
    file: 'src/machines/pods/manager/step.ts',
    find: "ledger.out.push({ to: 'worker', event: { type: 'pod.dirty'",
    replace: "void ({ to: 'worker', event: { type: 'pod.dirty'",
  },
  {
    id: 'a preStop hook is skipped',
    file: 'src/machines/pods/workers/container/containerStopMachine.ts',
    find: 'hasHook: ({ context }) => context.step.preStop !== undefined,',
    replace: 'hasHook: () => false,',
  },
  {
    id: 'TERM comes before the preStop hook has ended',
    file: 'src/machines/pods/workers/container/containerStopMachine.ts',
    find: 'limitMs: step.graceSeconds * 1000,',
    replace: 'limitMs: 1,',
  },
  {
    id: 'a postStart hook is not run',
    file: 'src/machines/pods/workers/container/containerSetup.ts',
    find: 'if (context.job?.container.lifecycle?.postStart === undefined) return;',
    replace: 'if (context.job !== undefined) return;',
  },
  {
    id: 'a container counts as running while its postStart hook runs',
    file: 'src/machines/pods/status/containers.ts',
    find: 'if (status.state.running === undefined || input.hookAhead?.has(container.name) !== true) return status;',
    replace: 'if (input.hookAhead !== null) return status;',
  },
  {
    id: 'winding down ends before anything was stopped',
    file: 'src/machines/pods/workers/terminating.ts',
    find: "judging: { always: [{ guard: 'somethingUp', target: 'stopping' }, { target: 'done' }] },",
    replace: "judging: { always: [{ target: 'done' }] },",
  },
  {
    id: 'winding down never ends',
    file: 'src/machines/pods/workers/terminating.ts',
    find: "done: { always: [{ guard: 'usesClaims', target: 'releasingClaims' }, { target: '#podWorker.terminated' }] },",
    replace: 'done: {},',
  },
  {
    id: 'a failure while winding down is not tried again',
    file: 'src/machines/pods/workers/terminating.ts',
    find: "after: { wait: { target: 'fencing' } },",
    replace: '',
  },
  {
    id: 'garbage is never old enough',
    file: 'src/machines/reclaim/containerGc.ts',
    find: "if (c.state === 'running' || starting ||",
    replace: "if (c.state !== 'unknown' || starting ||",
  },
  {
    id: 'sandboxes of the dead are kept',
    file: 'src/machines/reclaim/containerGc.ts',
    find: 'if (!sandbox.ready && !used.has(sandbox.id)) plan.push',
    replace: 'if (sandbox.ready && !used.has(sandbox.id)) plan.push',
  },
  {
    id: 'a worker keeps no fence: it acts in the first instant of its life',
    file: 'src/machines/pods/workers/podWorkerMachine.ts',
    find: "onDone: [{ guard: 'terminating', target: 'terminating' }, { target: 'syncing' }],",
    replace: "onDone: [{ target: 'syncing' }],",
  },
  {
    id: 'pods are stopped before their sources have spoken',
    file: 'src/actors/pods/manager/podManager.ts',
    find: 'sourcesReady: ready }',
    replace: 'sourcesReady: true || ready }',
  },
  {
    id: 'the status of a pod goes back in version',
    file: 'src/machines/pods/status/statusMachine.ts',
    find: 'life: event.life, version, stopped, finished',
    replace: 'life: event.life, version: -version, stopped, finished',
  },
  {
    id: 'a child that has ended is kept by its supervisor',
    file: 'src/actors/supervision/nodes/dynamicNode.ts',
    find: 'this.#children.delete(child.id);',
    replace: '',
  },
  {
    id: 'the killed child stays alive beside its successor',
    file: 'src/actors/supervision/nodes/actorCell.ts',
    find: 'this.#actor?.stop();',
    replace: 'void this.#actor;',
  },
  {
    id: 'a new pod does not wait for the one that had its name',
    file: 'src/machines/pods/manager/records.ts',
    find: 'for (const [otherUid, other] of named) {',
    replace: 'for (const [otherUid, other] of [] as [string, Rec][]) {',
  },
  {
    id: 'a removal is acted on before every source has delivered',
    file: 'src/machines/pods/manager/podLifeMachine.ts',
    find: "{ guard: 'heard', target: '#leaving',",
    replace: "{ target: '#leaving',",
  },
  {
    id: 'who waits for a name is forgotten when it is free',
    file: 'src/machines/pods/manager/ledger.ts',
    find: 'for (const [uid, { pod }] of waiting) this.step(',
    replace: 'for (const [uid, { pod }] of waiting.slice(waiting.length)) this.step(',
  },
  {
    id: 'a pod that has ended stays in the ledger',
    file: 'src/machines/pods/manager/podLifeMachine.ts',
    find: "'life.finished': {\n              guard: 'isLast',\n",
    replace: "'life.finished': {\n              guard: 'hasNext',\n",
  },
  {
    id: 'the status of a pod that is gone is kept',
    file: 'src/machines/pods/status/statusMachine.ts',
    find: 'entries.delete(uid);',
    replace: "return { next: {}, taken: { kind: 'unchanged', uid } };",
  },
  {
    id: 'an instance has the number of the one before it',
    file: 'src/machines/pod/runtime/runtimeStatus.ts',
    find: "(c) => (c.state === 'created' ? c.restartCount : c.restartCount + 1)",
    replace: '(c) => c.restartCount',
  },
  {
    id: 'the grace of a pod is forgotten',
    file: 'src/machines/pod/runtime/killOrder.ts',
    find: 'return Math.max(MIN_CONTAINER_GRACE_SECONDS, graceSeconds - Math.floor',
    replace: 'return Math.max(MIN_CONTAINER_GRACE_SECONDS, 0 * graceSeconds - Math.floor',
  },
  {
    id: 'sandboxes of a pod that goes are not stopped',
    file: 'src/actors/pods/workers/sandbox/run.ts',
    find: 'const ids = status.sandboxes.map((s) => s.id);',
    replace: 'const ids = status.sandboxes.filter(() => false).map((s) => s.id);',
  },
  {
    id: 'a crashed container does not wait',
    file: 'src/machines/pods/workers/container/crashBackoff.ts',
    find: 'if (waitMs > 0) return',
    replace: 'if (waitMs > 1e12) return',
  },
  {
    id: 'directories of pods that are gone are kept',
    file: 'src/actors/reclaim/housekeeping.ts',
    find: 'const orphans = o.dirs.filter(orphaned);',
    replace: 'const orphans = o.dirs.filter(o.known);',
  },
  {
    id: 'charts of volumes that are gone are kept',
    file: 'src/machines/services/volumes/volumesMachine.ts',
    find: "'xstate.done.actor.*': { actions: [stopChild(({ event }) => event.actorId)] },",
    replace: '',
  },
  {
    id: 'a supervisor never gives up',
    file: 'src/machines/supervision/restartPolicy.ts',
    find: 'return { crashes, over: crashes.length > intensity.max };',
    replace: 'return { crashes, over: crashes.length > intensity.max + 100 };',
  },
  {
    id: 'a supervisor gives up at the first crash',
    file: 'src/machines/supervision/restartPolicy.ts',
    find: 'return { crashes, over: crashes.length > intensity.max };',
    replace: 'return { crashes, over: crashes.length > 0 };',
  },
  {
    id: 'an incarnation is numbered as the one before it',
    file: 'src/machines/supervision/supervision.ts',
    find: "status: 'starting', incarnation: c.incarnation + 1 };",
    replace: "status: 'starting', incarnation: Math.max(1, c.incarnation) };",
  },
  {
    id: 'a container of a changed sandbox is started in the old one',
    file: 'src/machines/pods/workers/container/containerMachine.ts',
    find: "{\n            guard: 'stale',\n            actions: [cancel('lookAgain'), raise({ type: 'look.again' }, { id: 'lookAgain', delay: OBSERVE_AGAIN_MS })],\n          },",
    replace: '',
  },
  {
    id: 'an instance that was created and never started stays beside its replacement',
    file: 'src/actors/pods/workers/container/create.ts',
    find: 'const calls = removals(unstarted);',
    replace: 'const calls = removals(unstarted.slice(0, 0));',
  },
  {
    id: 'a lost watch is never opened again',
    file: 'src/machines/pods/sources/fileMachine.ts',
    find: "after: { watchRetry: 'trying' },",
    replace: '',
  },
  {
    id: 'the link to the runtime is not dialled again',
    file: 'src/machines/runtime/cri/criLinkMachine.ts',
    find: "after: { backoff: { target: 'connecting',",
    replace: "after: { backoff: { target: 'lost',",
  },
  {
    id: 'a stop does not reach a pod that waits for its runtime',
    file: 'src/machines/pods/workers/syncing.ts',
    find: "'pod.kill': { guard: 'ofThisLife', target: 'terminating', actions: ['takeKill'] },",
    replace: "'pod.kill': { guard: 'ofThisLife', actions: ['takeKill'] },",
  },
  {
    id: 'a container is made before its volumes stand',
    file: 'src/machines/services/volumes/waiters.ts',
    find: 'if (unmountedNames(waiter.pod, actual, volumeKey).length > 0) return undefined;',
    replace: '',
  },
  {
    id: 'what an object was first is kept for ever',
    file: 'src/machines/services/objects/objectMachine.ts',
    find: '      enqueue.assign({ held });\n      if (isNews',
    replace: '      enqueue.assign({ held: context.held ?? held });\n      if (isNews',
  },
  {
    id: 'a changed object tells nobody, and files are never compared with it again',
    file: 'src/machines/services/volumes/volumeMachine.ts',
    find: "'volume.refresh': { guard: 'refreshes', target: 'refreshing', actions: ['take'] },",
    replace: '',
  },
  {
    id: 'a part of a volume is given before it is bound',
    file: 'src/actors/services/volumes/plugins.ts',
    find: 'const result = await mounterOf(this.#o).bindSubPath(request, (foreign ? serverCall : mountCall)(signal));',
    replace:
      "mounterOf(this.#o).bindSubPath(request, (foreign ? serverCall : mountCall)(signal)).catch(() => undefined); const result: SubPathResult = { kind: 'bound' };",
  },
  {
    id: 'parts of a volume stay mounted when it goes',
    file: 'src/actors/services/volumes/plugins.ts',
    find: 'await cleanSubPaths(this.#o, (await acts.placed?.(this.#o, ref)) ?? ref, signal);',
    replace: '',
  },
  {
    id: 'a caller whose rights nobody could look up is let in',
    file: 'src/actors/edge/https/https.ts',
    find: "if (verdict.kind === 'allowed') return undefined;",
    replace: "if (verdict.kind !== 'denied') return undefined;",
  },
  {
    id: 'a caller without rights is let in',
    file: 'src/actors/edge/https/https.ts',
    find: "if (verdict.kind === 'denied') return text(refused, 403);",
    replace: "if (verdict.kind === 'denied') return undefined;",
  },
  {
    id: 'a certificate is kept until it has ended',
    file: 'src/machines/api/certificates/decide.ts',
    find: 'lacks(c.facts, c.template).length > 0 || c.deadlineMs <= wallMs',
    replace: 'lacks(c.facts, c.template).length > 0',
  },
  {
    id: 'a pair is linked before it is on disk',
    file: 'src/actors/api/certificates/store.ts',
    find: '{ mode: SECRET_MODE, fsync: true, exclusive: true }',
    replace: '{ mode: SECRET_MODE, exclusive: true }',
  },
  {
    id: 'a key is told to the log',
    file: 'src/actors/api/certificates/rotation.ts',
    find: "{ use: this.#use, csr: name }, 'asked for",
    replace: "{ use: this.#use, csr: name, key: new TextDecoder().decode(this.#draft?.key) }, 'asked for",
  },
  {
    id: 'a certificate is asked for anew as soon as there is one',
    file: 'src/machines/api/certificates/decide.ts',
    find: 'lacks(c.facts, c.template).length > 0 || c.deadlineMs <= wallMs',
    replace: 'wallMs > 0',
  },
  {
    id: 'a caller whose rights nobody could look up gets no answer',
    file: 'src/actors/edge/https/https.ts',
    find: "return text(refused.replace(/^Forbidden/, 'Authorization error'), 500);",
    replace: 'throw new Error(refused);',
  },
  {
    id: 'all pods with users of their own get the same',
    file: 'src/machines/pods/workers/config/userNamespace.ts',
    find: 'const mapping: IdMapping = { hostId: first, containerId: 0, length };',
    replace: 'const mapping: IdMapping = { hostId: first - first + length, containerId: 0, length };',
  },
  {
    id: 'a container that succeeded is started again in an OnFailure pod',
    file: 'src/machines/pod/runtime/shouldRestart.ts',
    find: "return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);",
    replace: "return policy !== 'Never';",
  },
  {
    id: 'a pod as a whole has what its containers ask for',
    file: 'src/machines/pod/resources/podLevel.ts',
    find: 'return podLevel(pod, kind, resource) ?? containersTotal(pod, kind, resource);',
    replace: 'return containersTotal(pod, kind, resource);',
  },
  {
    id: 'a restart rule that lists no end of this kind is passed over',
    file: 'src/machines/pod/runtime/shouldRestart.ts',
    find: "exitCodes.operator === 'NotIn' && !listed;",
    replace: "exitCodes.operator === 'NotIn' && listed;",
  },
  {
    id: 'a pod is evicted for having a storage limit',
    file: 'src/machines/reclaim/eviction/limits.ts',
    find: 'if (total !== undefined && used > quantityToInteger(total)) {',
    replace: 'if (total !== undefined) {',
  },
  {
    id: 'dead containers are collected for the disk of images alone',
    file: 'src/machines/reclaim/eviction/disks.ts',
    find: 'imagefs: IMAGES, containerfs: NODE_AND_LAYERS',
    replace: 'imagefs: ALL, containerfs: NODE_AND_LAYERS',
  },
  {
    id: 'a claim is mounted before it is bound',
    file: 'src/machines/services/volumes/claims.ts',
    find: "  if (partOf(pvc, 'status').phase !== 'Bound') return refused('PVC is not bound');\n",
    replace: '',
  },
  {
    id: 'a password is taken with the colon before it',
    file: 'src/machines/runtime/imagePuller/keyring.ts',
    find: 'trimEndOf(decoded.slice(colon + 1)',
    replace: 'trimEndOf(decoded.slice(colon)',
  },
  {
    id: 'an image that the runtime keeps is collected',
    file: 'src/machines/reclaim/imageGc/imageGc.ts',
    find: '!r.pinned && ',
    replace: '',
  },
  {
    id: 'an image of a container is collected',
    file: 'src/machines/reclaim/imageGc/imageGc.ts',
    find: 'return [image.id, ...names].some((ref) => o.held.has(ref)) || ',
    replace: 'return ',
  },
  {
    id: 'what the kernel began to say of a kill is forgotten before its end',
    file: 'src/actors/runtime/oomWatcher.ts',
    find: 'this.#ctx.publish(oomView, ledger);',
    replace: 'void ledger;',
  },
  {
    id: 'a machine goes down before its pods have had their time',
    file: 'src/machines/reclaim/nodeShutdown/nodeShutdownMachine.ts',
    find: 'const periodMs = (groups[group]?.periodSeconds ?? 0) * 1000;',
    replace: 'const periodMs = (groups[group]?.periodSeconds ?? 0) * 1;',
  },
  {
    id: 'static pods that a cancelled shutdown ended do not begin again',
    file: 'src/actors/reclaim/nodeShutdown/nodeShutdown.ts',
    find: 'reason === TERMINATED)',
    replace: 'reason === NOT_ADMITTED)',
  },
  {
    id: 'growing claim: it says that it has grown before its driver was asked',
    file: 'src/actors/services/volumes/growth/grow.ts',
    find: "await o.measure('volume_fs_resize', volume, signal)(Promise.resolve(o.behindClaims.of(behind.kind).grow?.(o, job, signal)));",
    replace: 'signal.throwIfAborted();',
  },
  {
    id: 'a volume is published before its driver has staged it',
    file: 'src/actors/services/volumes/csi/setUp.ts',
    find: 'const mustStage = stages && !o.ledger',
    replace: 'const mustStage = stages && o.ledger',
  },
  {
    id: 'a container is given a volume that its driver was never asked to publish',
    file: 'src/actors/services/volumes/csi/setUp.ts',
    find: "() => driver.call('NodePublishVolume', request, signal), {",
    replace: 'async () => void request, {',
  },
  {
    id: 'a volume is published on a node to which the cluster has not attached it',
    file: 'src/actors/services/volumes/csi/setUp.ts',
    find: 'const publishContext = attach ? await attached(o, { ...job, rules }, signal) : {};',
    replace: 'const publishContext = {}; void attached;',
  },
  {
    id: 'a volume that an earlier daemon left may be detached under its pod',
    file: 'src/actors/services/volumes/kinds/csi.ts',
    find: 'if (data?.attached === true)',
    replace: 'if (data?.attached === null)',
  },
  {
    id: 'a device is unstaged while another pod has it',
    file: 'src/actors/services/volumes/csi/takeDown.ts',
    find: 'if (others.length === 0) await unstage',
    replace: 'if (others.length >= 0) await unstage',
  },
  {
    id: 'one log more is kept than may be',
    file: 'src/machines/reclaim/logRotation.ts',
    find: 'o.filesMax - PLAIN_FILES',
    replace: 'o.filesMax',
  },
  {
    id: 'the runtime is not asked to open a log that was rotated',
    file: 'src/actors/reclaim/logRotation.ts',
    find: "await criClient(this.#ctx.registry).read('ReopenContainerLog'",
    replace: "if (id === '') await criClient(this.#ctx.registry).read('ReopenContainerLog'",
  },
  {
    id: 'what a program for credentials answers is told to the log',
    file: 'src/actors/runtime/imagePuller/providers.ts',
    find: 'const cacheMs = answer.cacheMs ?? provider.defaultCacheMs;',
    replace: "const cacheMs = answer.cacheMs ?? provider.defaultCacheMs; this.#log.warn({ provider: name, text }, 'it answered');",
  },
  {
    id: 'a device that somebody has is given to another',
    file: 'src/machines/allocation/devices/allocate.ts',
    find: '!taken.has(id) && !q.reserved.has(id)',
    replace: '!q.reserved.has(id)',
  },
  {
    id: 'devices of pods that are over are not taken back',
    file: 'src/actors/allocation/devices/allocator.ts',
    find: 'if (allocations.length < this.ledger.allocations.length) this.change(',
    replace: 'if (allocations.length > this.ledger.allocations.length) this.change(',
  },
  {
    id: 'devices are not prepared before a start',
    file: 'src/actors/allocation/devices/allocator.ts',
    find: 'const unready = await this.preStart({ pod, container, resource, signal }, deviceIds(held));',
    replace: 'const unready = null;',
  },
  {
    id: 'CPUs of a pod that is on its way out are allocated',
    file: 'src/machines/allocation/holders.ts',
    find: "if (phase === 'terminated' || phase === 'finished') return 'over';",
    replace: "if (phase !== 'syncing' && phase !== undefined) return 'over';",
  },
  {
    id: 'memory that a pod has is given again',
    file: 'src/machines/allocation/memory/machine.ts',
    find: 'reserved: table.reserved + by * here, free: table.free - by * here',
    replace: 'reserved: table.reserved, free: table.free',
  },
  {
    id: 'containers that run stay on CPUs that others have alone',
    file: 'src/actors/allocation/cpus/cpus.ts',
    find: "cpus === '' || this.#has(id, cpus) ?",
    replace: "cpus !== '' || this.#has(id, cpus) ?",
  },
  {
    id: 'a rule of the packet filter is made without a look whether it is there',
    file: 'src/actors/services/iptables/iptables.ts',
    find: '    if (found.code === 0) return;\n    if (found.code !== NOT_THERE) throw',
    replace: '    if (found.code !== 0 && found.code !== NOT_THERE) throw',
  },
  {
    id: 'half a stream of initial events is taken for the whole',
    file: 'src/machines/api/listWatchMachine.ts',
    find: 'events.find((e) => e.initialEventsEnd === true)?.object',
    replace: 'events.at(-1)?.object',
  },
  {
    id: 'a kernel setting that cannot be changed does not end the start',
    file: 'src/actors/kernelSettings.ts',
    find: 'await port.write(setting.path, setting.value);',
    replace: 'await port.write(setting.path, setting.value).catch(() => {});',
  },
  {
    id: 'a ResourceClaim is prepared before it is recorded',
    file: 'src/machines/allocation/claims/claimMachine.ts',
    find: "{ guard: 'onDisk', target: 'recorded' }, { target: 'recording' }",
    replace: "{ target: 'recorded', actions: ['take'] }",
  },
  {
    id: 'a ResourceClaim that no pod uses stays prepared',
    file: 'src/machines/allocation/claims/claimMachine.ts',
    find: "{ guard: 'othersStay', target: 'parting' },\n        { target: 'unpreparing' },",
    replace: "{ guard: 'othersStay', target: 'parting' },\n        { target: 'forgetting' },",
  },
  {
    id: 'a ResourceClaim is unprepared while another pod uses it',
    file: 'src/machines/allocation/claims/claimMachine.ts',
    find: 'wanted: record === null || left.size === 0 ? null : { ...record, pods: left },',
    replace: 'wanted: null,',
  },
  {
    id: 'a ResourceClaim that was made again is taken for the old one',
    file: 'src/machines/allocation/claims/claimMachine.ts',
    find: 'wanted !== null && wanted.uid !== found.value.uid',
    replace: "wanted !== null && wanted.uid === ''",
  },
  {
    id: 'a pod gets a ResourceClaim that is not reserved for it',
    file: 'src/machines/allocation/claims/claimRules.ts',
    find: 'if (!records(status.reservedFor).some((r) => r.uid === user.uid))',
    replace: "if (user.uid === '')",
  },
  {
    id: 'ResourceClaims of pods that went while no daemon ran stay prepared',
    file: 'src/machines/allocation/claims/claimsMachine.ts',
    find: 'if (claims.has(key) && isUnused(pods.records.get(uid), listing.pods.get(uid)))',
    replace: "if (uid === '' && claims.has(key))",
  },
  {
    id: 'ResourceClaims that were prepared before a restart of the machine count as prepared',
    file: 'src/machines/allocation/claims/checkpoint.ts',
    find: 'prepared: false,',
    replace: 'prepared: true,',
  },
  {
    id: 'a container starts without the devices of its ResourceClaims',
    file: 'src/machines/allocation/claims/share.ts',
    find: 'if (isOf(device, request)) for (const id of device.cdiIds) ids.add(id);',
    replace: 'void [ids, device, request, isOf];',
  },
  {
    id: 'the record of ResourceClaims gets its name before it is on disk',
    file: 'src/actors/allocation/claims/records.ts',
    find: 'mode: RECORD_MODE, fsync: true',
    replace: 'mode: RECORD_MODE, fsync: false',
  },
  {
    id: 'a pod that has ended keeps its ResourceClaims',
    file: 'src/machines/pods/workers/terminating.ts',
    find: "[{ guard: 'usesClaims', target: 'releasingClaims' }, { target: '#podWorker.terminated' }]",
    replace: "[{ target: '#podWorker.terminated' }]",
  },
  ...ALLOCATION_MUTANTS,
  ...SLEEP_MUTANTS,
  {
    id: 'a volume of a server counts as set up before it is mounted',
    file: 'src/actors/services/volumes/kinds/nfs.ts',
    find: 'if (!mounted) await mount(o, { volume, source }, signal);',
    replace: '',
  },
  {
    id: 'what a server serves is removed while it is mounted',
    file: 'src/actors/services/volumes/disk/directory.ts',
    find: '  await unmark(o, ref);\n  await unmountAll(o, dir, signal);',
    replace: '  await unmark(o, ref);',
  },
  {
    id: 'the new certificate of a pod comes with the key before it',
    file: 'src/machines/services/certificates/podCertificateMachine.ts',
    find: 'return { held: found.held, request: null',
    replace: 'return { held: { ...found.held, key: context.held?.key ?? found.held.key }, request: null',
  },
];
