/** A disk that cannot be written while claims begin and end: nothing is prepared that is not on disk, and nothing stays prepared. */
import { expect, it } from 'vitest';
import { drop, events, inApi, isReady } from '../cluster/clusterPods.ts';
import type { VirtualNode } from '../virtualNode.ts';
import { bind, chart, claim, claimNode, driven, onDisk, SOCKET, unbound, using, withClaim } from './resourceClaims.ts';

const fail = (h: VirtualNode): void => {
  h.fs.failing = (op, path) => (op === 'rename' && path.includes('dra_manager_state') ? 'EIO' : undefined);
};
const mend = (h: VirtualNode): void => {
  h.fs.failing = () => undefined;
};
const prepared = (h: VirtualNode) => h.dra.sockets.get(SOCKET)?.prepared.size;

it('holds up the pod before a driver is asked, and after it has prepared', async () => {
  await using h = await claimNode();
  await driven(h);
  fail(h);
  withClaim(h, 'web');
  await h.until('it is told', () => events(h, 'FailedPrepareDynamicResources').length > 0);
  expect(h.dra.calls).toEqual([]);
  mend(h);
  h.dra.fault = () => {
    fail(h);
    return undefined;
  };
  await h.until('what was prepared cannot be written', () => chart(h, 'default/web-gpu') === 'failed', 60_000);
  expect(prepared(h)).toBe(1);
  h.dra.fault = () => undefined;
  mend(h);
  await h.until('Ready', () => isReady(h, 'web'), 60_000);
});

it('holds up the end of a pod, of the first and of the last that uses the claim', async () => {
  await using h = await claimNode();
  await driven(h);
  const both = ['one', 'two'].map((name) => unbound(h, name, using('shared')));
  claim(h, 'shared', { pods: both });
  for (const { metadata } of both) bind(h, metadata.name);
  await h.until('both are Ready', () => isReady(h, 'one') && isReady(h, 'two'));
  for (const [name, left] of [
    ['one', 1],
    ['two', 0],
  ] as const) {
    fail(h);
    drop(h, `pods/${name}`);
    await h.advance(40_000);
    expect(inApi(h, name)).toBeDefined();
    expect(await onDisk(h)).toEqual(['default/shared']);
    mend(h);
    await h.until('gone', () => inApi(h, name) === undefined, 60_000);
    expect(prepared(h)).toBe(left);
  }
  expect(await onDisk(h)).toEqual([]);
});
