/** Volumes of an NFS server that is dead: who mounts, unmounts and gives up is killed on the way. */
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const VOLUMES = 'node/services/volumes';
/** What a dead server holds up is over by then. */
const RESTS_MS = 300_000;

const subject = (): object =>
  pod('subject', {
    uid: 'pinned-1',
    container: { volumeMounts: [{ name: 'files', mountPath: '/files' }] },
    spec: { terminationGracePeriodSeconds: 2, volumes: [{ name: 'files', nfs: { server: 'files', path: '/e' } }] },
  });
const state = (h: VirtualNode): string => h.charts(VOLUMES, 'pinned-1/')[0] ?? '';
const runs = (h: VirtualNode) => h.running('subject').length === 1 && h.phase('subject') === 'Running' && h.mounts.table.length === 1;
const gone = (h: VirtualNode) => h.record('subject') === undefined && h.mounts.table.length === 0 && !h.fs.has(`${ROOT}/pods/pinned-1`);
const dies = (h: VirtualNode) => void h.mounts.dead.add('files');

function starting(what: string, more: Partial<KillCase> = {}): KillCase {
  return {
    covers: `volume ${what}`,
    // Other stories cover the same states.
    story: `volume of a dead server ${what}`,
    path: VOLUMES,
    arrange: async (h) => {
      dies(h);
      h.write('subject', subject());
      await h.until('the pod is known', () => h.record('subject'));
    },
    at: (h) => state(h) === what,
    release: (h) => h.mounts.dead.clear(),
    rests: runs,
    restsWithinMs: RESTS_MS,
    ...more,
  };
}
/** It stays dead. */
function ending(what: string, more: Partial<KillCase> = {}): KillCase {
  return starting(what, {
    arrange: async (h) => {
      h.write('subject', subject());
      await h.until('the subject runs', () => runs(h));
      dies(h);
      h.remove('subject');
    },
    release: () => undefined,
    rests: gone,
    ...more,
  });
}

/** The node of the story: its containers end by no signal while the server is dead. */
let world: VirtualNode | undefined;
/** `at`: of a worker that waits for containers which were killed. */
function held(covers: string, more: Partial<KillCase>): KillCase {
  const story = ending('mounted', more);
  return {
    ...story,
    covers,
    story: `held by a dead server: ${covers}`,
    options: { hollow: { held: ({ pod: { uid } }) => world?.mounts.holds(uid) === true } },
    arrange: async (h) => {
      world = h;
      await story.arrange?.(h);
    },
  };
}
const stopping = (h: VirtualNode): boolean => h.state(h.workerPath('subject')).startsWith('terminating.stopping');

export const NETWORK_CASES: KillCase[] = [
  starting('mounting'),
  starting('mountFailed'),
  ending('unmounting'),
  held('podWorker terminating.stopping', { path: (h) => h.workerPath('subject'), at: stopping }),
  held('volumes ready', { at: (h) => stopping(h) && h.tree.actorAt(VOLUMES)?.getSnapshot()?.children?.sever !== undefined }),
];
