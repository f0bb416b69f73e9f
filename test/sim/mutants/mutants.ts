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
    file: 'src/machines/runtime/fence.ts',
    find: '    lane.queue.push(job);\n    return { start: [], refuse };',
    replace: '    return { start: [job], refuse };',
  },
  {
    id: 'what waits behind an act is forgotten when it settles',
    file: 'src/machines/runtime/fence.ts',
    find: 'const next = lane.queue.shift();',
    replace: 'const next = undefined as J | undefined;',
  },
  {
    id: 'a pod that left its source is not noticed',
    file: 'src/machines/pods/manager/records.ts',
    find: 'if (rec.source !== source || rec.removed || complete.has(uid)) continue;',
    replace: 'if (rec.source === source || rec.removed || complete.has(uid)) continue;',
  },
  {
    id: 'a crashed container is not started again',
    file: 'src/machines/pods/podActions.ts',
    find: '      actions.containersToStart.push(container.name);\n      // It may be running',
    replace: '      // It may be running',
  },
  {
    id: 'the definition of a running container is never compared',
    file: 'src/machines/pods/podActions.ts',
    find: "if (!matchesHash(container, newest.hash)) return { what: 'definition changed', reason: 'definitionChanged', restart: true };",
    replace: '',
  },
  {
    id: 'the definition of a running container always differs',
    file: 'src/machines/pods/podActions.ts',
    find: "if (!matchesHash(container, newest.hash)) return { what: 'definition changed'",
    replace: "if (matchesHash(container, newest.hash)) return { what: 'definition changed'",
  },
  {
    id: 'a hint never makes its pod look',
    file: 'src/machines/pods/manager/records.ts',
    find: "edit.out.push({ to: 'worker', event: { type: 'pod.dirty'",
    replace: "void ({ to: 'worker', event: { type: 'pod.dirty'",
  },
  {
    id: 'winding down ends before anything was stopped',
    file: 'src/machines/pods/worker/terminating.ts',
    find: "judging: { always: [{ guard: 'somethingUp', target: 'stopping' }, { target: 'done' }] },",
    replace: "judging: { always: [{ target: 'done' }] },",
  },
  {
    id: 'winding down never ends',
    file: 'src/machines/pods/worker/terminating.ts',
    find: "done: { always: { target: '#podWorker.terminated' } },",
    replace: 'done: {},',
  },
  {
    id: 'a failure while winding down is not tried again',
    file: 'src/machines/pods/worker/terminating.ts',
    find: "after: { wait: { target: 'fencing' } },",
    replace: '',
  },
  {
    id: 'garbage is never old enough',
    file: 'src/machines/pods/gc.ts',
    find: "if (c.state === 'running' || starting ||",
    replace: "if (c.state !== 'unknown' || starting ||",
  },
  {
    id: 'sandboxes of the dead are kept',
    file: 'src/machines/pods/gc.ts',
    find: 'if (!sandbox.ready && !used.has(sandbox.id)) plan.push',
    replace: 'if (sandbox.ready && !used.has(sandbox.id)) plan.push',
  },
  {
    id: 'a worker keeps no fence: it acts in the first instant of its life',
    file: 'src/machines/pods/worker/podWorker.ts',
    find: "onDone: [{ guard: 'terminating', target: 'terminating' }, { target: 'syncing' }],",
    replace: "onDone: [{ target: 'syncing' }],",
  },
  {
    id: 'pods are stopped before their sources have spoken',
    file: 'src/actors/reclaim/housekeeping.ts',
    find: '!pods.value.sourcesReady) return',
    replace: 'false) return',
  },
  {
    id: 'the status of a pod goes back in version',
    file: 'src/actors/pods/status/status.ts',
    find: 'version: (old?.version ?? 0) + 1',
    replace: 'version: 1000 - (old?.version ?? 0)',
  },
  {
    id: 'a restart of a worker leaks the actors of the one before',
    file: 'src/actors/kernel/nodes/supervisable.ts',
    find: 'for (const other of alive) if (other._parent === ref) other._stop();',
    replace: '',
  },
  {
    id: 'the killed child stays alive beside its successor',
    file: 'src/actors/kernel/nodes/actorCell.ts',
    find: '.stop();',
    replace: ';',
  },
];
