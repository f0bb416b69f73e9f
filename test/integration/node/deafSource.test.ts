/** An API server that keeps this node away from its pods: for how long, and what says so. */
import { lostPeers } from '@actorlet/shown/src/moment/lostPeers.ts';
import { expect } from 'vitest';
import { DEAF_AFTER_MS } from '../../../src/machines/api/messages.ts';
import { create, createReady, isReady } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import type { VirtualNode } from '../virtualNode.ts';

const SOURCE = 'node/pods/sources/api';
const PODS = '/api/v1/pods';
/** Of the bug: 34 days. */
const RETRY_AFTER_MS = 3_000_000_000;

const lost = (h: VirtualNode): string | undefined =>
  lostPeers({
    read: (key) => h.tree.registry.read(key)?.value,
    stateAt: (path) => h.actor(path),
    monoMs: h.time.clock.monoMs(),
  }).get(SOURCE);

it('asks again within a minute or so, whatever Retry-After a server names', async ({ h }) => {
  await createReady(h, 'one');
  const refuse = { status: 429, retryAfterMs: RETRY_AFTER_MS };
  h.kube.trouble.verdict = (r) => ({ delayMs: 0, ...(r.path === PODS ? { refuse } : {}) });
  h.kill(SOURCE);
  await h.advance(20_000);
  h.kube.trouble.verdict = () => ({ delayMs: 0 });
  create(h, 'two');
  await h.advance(62_000);
  expect(isReady(h, 'two')).toBe(true);
});

it('says that it is deaf, for how long and why, as long as it is', async ({ h }) => {
  await createReady(h, 'one');
  await h.advance(5 * 60_000);
  expect(lost(h)).toBeUndefined();
  h.kube.trouble.verdict = (r) => ({ delayMs: 0, ...(r.path === PODS ? { refuse: { status: 500 } } : {}) });
  h.kill(SOURCE);
  await h.advance(DEAF_AFTER_MS + 60_000);
  expect(lost(h)).toMatch(/^nothing was heard about the pods of this node for \d+m.*; new pods do not start: pods of node n1: injected/);
  h.kube.trouble.verdict = () => ({ delayMs: 0 });
  await h.until('it hears again', () => lost(h) === undefined, 120_000);
});
