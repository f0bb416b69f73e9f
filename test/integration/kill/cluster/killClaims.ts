/** The manager of ResourceClaims and workers that wait for it, killed in each state of each chart: what is prepared is used or unprepared. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import {
  bind,
  CLAIMS,
  claim,
  DRIVER,
  driver,
  onDiskNow,
  registered,
  SOCKET,
  STATE,
  slice,
  slices,
  unbound,
  unplug,
  using,
} from '../../claims/resourceClaims.ts';
import { drop, inApi, isReady } from '../../cluster/clusterPods.ts';
import type { VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const KEY = 'default/gpu';
const NONE: KubeVerdict = { delayMs: 0 };

const prepared = (h: VirtualNode) => h.dra.sockets.get(SOCKET)?.prepared.size ?? 0;
const runs = (h: VirtualNode) => isReady(h, 'subject') && prepared(h) === 1 && onDiskNow(h).join() === KEY;
const gone = (h: VirtualNode) => inApi(h, 'subject') === undefined && prepared(h) === 0 && onDiskNow(h).length === 0;
const worker = (h: VirtualNode) => `node/pods/workers/${inApi(h, 'subject')?.metadata.uid ?? ''}`;

const chart = (h: VirtualNode, name: string): string => h.charts(CLAIMS, name)[0] ?? '';
async function plug(h: VirtualNode, health = false): Promise<void> {
  driver(h, { health: health ? [] : null });
  await registered(h);
}
function begin(h: VirtualNode): Pod {
  const subject = unbound(h, 'subject', using('gpu'));
  claim(h, 'gpu', { pods: [subject] });
  bind(h, 'subject');
  return subject;
}
async function bring(h: VirtualNode): Promise<void> {
  await plug(h);
  begin(h);
  await h.until('the subject runs', () => runs(h));
}
const release = (h: VirtualNode): void => h.dra.back(SOCKET);
const hang = (h: VirtualNode): void => {
  h.dra.latencyMs = () => Number.POSITIVE_INFINITY;
};
const refuse = (h: VirtualNode): void => {
  h.dra.fault = () => ({ kind: 'error', error: 'no' });
};
const slowly = (h: VirtualNode, op: string): void => {
  h.fs.delayMs = (is, path) => (is === op && path.includes('dra_manager_state') ? 3_000 : 0);
};
const verdict = (h: VirtualNode, resource: string, of: KubeVerdict): void => {
  h.kube.trouble.verdict = (r) => (r.path.includes(resource) ? of : NONE);
};

function story(covers: string, more: Partial<KillCase> = {}): KillCase {
  return {
    ...{ covers, path: CLAIMS, options: { cluster: true, drivers: true, dra: true } },
    ...{ arrange: bring, release, rests: runs, restsWithinMs: 300_000 },
    ...more,
  };
}
/** A state of the claim's chart while its pod begins. */
const beginning = (state: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> = {}) =>
  story(`claim ${state}`, {
    arrange: async (h) => {
      await plug(h);
      hold(h);
      begin(h);
      await h.until(state, () => chart(h, KEY) === state);
    },
    at: (h) => chart(h, KEY) === state,
    ...more,
  });
/** The same while it ends. */
const ending = (state: string, hold: (h: VirtualNode) => void, more: Partial<KillCase> = {}) =>
  story(`claim ${state}`, {
    arrange: async (h) => {
      await bring(h);
      hold(h);
      drop(h, 'pods/subject');
      await h.until(state, () => chart(h, KEY) === state);
    },
    at: (h) => chart(h, KEY) === state,
    rests: gone,
    ...more,
  });
const driverIs = (state: string, arrange: (h: VirtualNode) => Promise<void>) =>
  story(`draDriver ${state}`, { arrange, at: (h) => chart(h, 'dra ') === state });
const slicesAre = (state: string, hold: (h: VirtualNode) => void) =>
  story(`slices ${state}`, {
    arrange: async (h) => {
      await h.until('those of before are gone', () => chart(h, 'slices of all drivers') === '');
      await plug(h);
      await h.until('connected', () => chart(h, 'dra ').startsWith('connected'));
      slice(h, 'mine');
      hold(h);
      unplug(h);
      await h.until(state, () => chart(h, `slices of ${DRIVER}`) === state, 60_000);
    },
    at: (h) => chart(h, `slices of ${DRIVER}`) === state,
    rests: (h) => slices(h).length === 0,
  });

export const CLAIM_CASES: KillCase[] = [
  story('claims serving'),
  story('claims loading', {
    arrange: async (h) => {
      await bring(h);
      slowly(h, 'readFile');
      h.kill(CLAIMS);
      await h.until('loading', () => h.state(CLAIMS) === 'loading');
    },
  }),
  story('claims unread', {
    arrange: async (h) => {
      await bring(h);
      h.fs.failing = (op, path) => (op === 'readFile' && path === STATE ? 'EIO' : undefined);
      h.kill(CLAIMS);
      await h.until('unread', () => h.state(CLAIMS) === 'unread');
    },
  }),
  beginning('looking', (h) => verdict(h, 'resourceclaims', { delayMs: 3_000 })),
  beginning('recording', (h) => slowly(h, 'writeFile')),
  beginning('preparing', hang),
  beginning('storing', (h) => {
    h.dra.latencyMs = () => {
      slowly(h, 'writeFile');
      return 1;
    };
  }),
  beginning('failed', refuse),
  story('claim prepared', { at: (h) => chart(h, KEY) === 'prepared' }),
  story('claim restored', {
    arrange: async (h) => {
      await bring(h);
      h.kill(CLAIMS);
      await h.until('restored', () => chart(h, KEY) === 'restored');
    },
    at: (h) => chart(h, KEY) === 'restored',
  }),
  story('claim parting', {
    arrange: async (h) => {
      await plug(h);
      const both = ['subject', 'other'].map((name) => unbound(h, name, using('gpu')));
      claim(h, 'gpu', { pods: both });
      for (const { metadata } of both) bind(h, metadata.name);
      await h.until('both run', () => both.every(({ metadata }) => isReady(h, metadata.name)));
      slowly(h, 'writeFile');
      drop(h, 'pods/other');
      await h.until('parting', () => chart(h, KEY) === 'parting');
    },
    at: (h) => chart(h, KEY) === 'parting',
    rests: (h) => runs(h) && inApi(h, 'other') === undefined,
  }),
  ending('unpreparing', hang),
  ending('forgetting', (h) => slowly(h, 'writeFile')),
  driverIs('connected.plain', bring),
  driverIs('connected.watching', async (h) => {
    await plug(h, true);
    begin(h);
    await h.until('the subject runs', () => runs(h));
  }),
  driverIs('connected.resting', async (h) => {
    await plug(h, true);
    begin(h);
    await h.until('the subject runs', () => runs(h));
    h.dra.endHealth(SOCKET, 'away');
    await h.until('resting', () => chart(h, 'dra ') === 'connected.resting');
  }),
  driverIs('connecting', async (h) => {
    await bring(h);
    h.dra.die(SOCKET);
    await h.until('connecting', () => chart(h, 'dra ') === 'connecting');
  }),
  slicesAre('waiting', () => {}),
  slicesAre('deleting', (h) => verdict(h, 'resourceslices', { delayMs: 3_000 })),
  slicesAre('failed', (h) => verdict(h, 'resourceslices', { delayMs: 0, refuse: { status: 500 } })),
  beginning('preparing', hang, {
    covers: 'podWorker syncing.preparingClaims',
    path: worker,
    at: (h) => h.state(worker(h)) === 'syncing.preparingClaims',
  }),
  ending('unpreparing', hang, {
    covers: 'podWorker terminating.releasingClaims',
    path: worker,
    at: (h) => h.state(worker(h)) === 'terminating.releasingClaims',
  }),
  ending('failed', refuse, {
    covers: 'podWorker terminating.claimsHeld',
    path: worker,
    at: (h) => h.state(worker(h)) === 'terminating.claimsHeld',
  }),
];
