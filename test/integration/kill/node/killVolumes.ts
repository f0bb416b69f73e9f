/** The volume manager killed in each of its states and in each state of a volume. */
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const volumes = 'node/services/volumes';
const MOUNTED = { labels: 'info', cache: 'memory' };

function subject(labels: Record<string, string> = { app: 'a' }): object {
  const p = pod('subject', {
    uid: 'pinned-1',
    container: {
      volumeMounts: [
        { name: MOUNTED.cache, mountPath: '/memory' },
        { name: MOUNTED.labels, mountPath: '/info' },
      ],
    },
    spec: {
      volumes: [
        { name: MOUNTED.cache, emptyDir: { medium: 'Memory' } },
        { name: MOUNTED.labels, downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      ],
    },
  }) as { metadata: object };
  return { ...p, metadata: { ...p.metadata, labels } };
}

/** State of the chart of one of the subject's volumes, '' when there is none. */
function volumeState(h: VirtualNode, name: string): string {
  return h.charts(volumes, new RegExp(`^pinned-1/.*/${name}#`))[0] ?? '';
}
const runs = (h: VirtualNode) => h.running('subject').length === 1 && h.phase('subject') === 'Running' && h.mounts.table.length === 2;
const gone = (h: VirtualNode) => h.record('subject') === undefined && h.mounts.table.length === 0 && !h.fs.has(`${ROOT}/pods/pinned-1`);
const up = (h: VirtualNode) => h.until('the subject runs', () => runs(h));
const slowly = (op: string) => (h: VirtualNode) => {
  h.mounts.trouble.delayMs = (what) => (what === op ? 800 : 0);
};
const refused = (op: string) => (h: VirtualNode) => {
  h.mounts.trouble.failing = (what) => (what === op ? 'EBUSY' : undefined);
};

function starting(state: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> = {}): KillCase {
  return {
    covers: `volume ${state}`,
    path: volumes,
    arrange: async (h) => {
      hold(h);
      h.write('subject', subject());
      await h.until('the pod is known', () => h.record('subject'));
    },
    at: (h) => volumeState(h, MOUNTED.cache) === state,
    rests: runs,
    ...more,
  };
}
const settled = (hold: (h: VirtualNode) => void, act: (h: VirtualNode) => void) => async (h: VirtualNode) => {
  h.write('subject', subject());
  await up(h);
  await h.advance(5_000);
  hold(h);
  act(h);
};
function ending(state: string, hold: (h: VirtualNode) => void): KillCase {
  return starting(state, hold, {
    arrange: settled(hold, (h) => h.remove('subject')),
    rests: gone,
    restsWithinMs: 300_000,
  });
}
/** Its labels change, so a file of one of its volumes does. */
function edited(state: string, hold: (h: VirtualNode) => void): KillCase {
  return starting(state, hold, {
    arrange: settled(hold, (h) => h.write('subject', subject({ app: 'b' }))),
    at: (h) => volumeState(h, MOUNTED.labels) === state,
  });
}
/** A new manager that cannot yet look at the disk. */
function scanning(covers: string, hold: (h: VirtualNode) => void): KillCase {
  return {
    covers,
    path: volumes,
    arrange: async (h) => {
      h.write('subject', subject());
      await up(h);
      hold(h);
      h.kill(volumes);
    },
    rests: runs,
  };
}
const podsDir = `${ROOT}/pods`;

export const VOLUME_CASES: KillCase[] = [
  starting('mounting', slowly('mount')),
  {
    ...starting('mounting', slowly('mount')),
    covers: 'podWorker syncing.mountingVolumes',
    path: (h) => h.workerPath('subject'),
    at: waits,
  },
  starting('mountFailed', refused('mount')),
  starting('mounted', () => {}, { at: (h) => runs(h) && volumeState(h, MOUNTED.cache) === 'mounted' }),
  edited('refreshing', (h) => {
    h.fs.delayMs = (op, path) => (op === 'symlink' && path.endsWith('..data_tmp') ? 800 : 0);
  }),
  edited('refreshFailed', (h) => {
    h.fs.failing = (op, path) => (op === 'symlink' && path.endsWith('..data_tmp') ? 'ENOSPC' : undefined);
  }),
  ending('unmounting', slowly('unmount')),
  ending('unmountFailed', refused('unmount')),
  {
    // Found on disk, and no source has said yet whether its pod is wanted.
    ...starting('uncertain', () => {}),
    options: { config: { staticPodURL: 'http://example.test/pods' } },
    arrange: async (h) => {
      h.write('subject', subject());
      await up(h);
      await h.crash();
      h.fs.delayMs = (op, path) => (op === 'readdir' && path.endsWith('/manifests') ? 6_000 : 0);
      await h.boot();
    },
  },
  scanning('volumes reconstructing', (h) => {
    h.fs.delayMs = (op, path) => (op === 'readdir' && path === podsDir ? 900 : 0);
  }),
  scanning('volumes scanFailed', (h) => {
    h.fs.failing = (op, path) => (op === 'readdir' && path === podsDir ? 'EIO' : undefined);
  }),
  { ...starting('mounted', () => {}), covers: 'volumes ready', at: runs },
];
function waits(h: VirtualNode): boolean {
  return h.state(h.workerPath('subject')) === 'syncing.mountingVolumes';
}
