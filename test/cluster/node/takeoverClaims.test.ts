/** A node whose pods use ResourceClaims, taken over from the reference kubelet and by it again: each reads the other's record of claims. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { decodeClaims } from '../../../src/machines/allocation/claims/checkpoint.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { minorVersion } from '../../e2e/lab/cluster/controlPlane.ts';
import type { ReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { begin, checkpointNow, end, look, StoryDriver } from '../../reference/claims/observeClaims.ts';
import { pods } from '../../reference/claims/story.ts';
import { type Cluster, LONG } from '../cluster.ts';
import { besideReference } from '../hooks.ts';

const CLAIMS_SINCE = 36;

let c: Cluster;
let reference: ReferenceKubelet;
let driver: StoryDriver;
/** By UID. */
let known: Map<string, string>;

const whyNot = besideReference(
  async (made) => {
    ({ cluster: c, reference } = made);
    driver = new StoryDriver(c);
    await reference.start();
    await c.daemon.wait('the account', () => c.plane.hasAccount(), LONG);
    await begin(c, driver);
    ({ known } = await look(c, driver));
  },
  () => (minorVersion('kubelet') < CLAIMS_SINCE ? 'the reference kubelet is too old' : undefined),
);
afterAll(async () => {
  driver?.driver?.stop();
});

const onDisk = () => [...decodeClaims(readFileSync(join(c.daemon.rootDir, 'dra_manager_state'), 'utf8')).values()].map((r) => r.uid).sort();
const prepared = () => [...(driver.driver?.prepared ?? [])].sort();
const calls = () => (driver.driver?.calls ?? []).map(({ method, claims }) => `${method} ${claims.map(({ uid }) => known.get(uid)).join()}`);
const nodeReady = () => c.daemon.wait('the node is Ready', async () => / Ready /.test(await c.kubectl('get', 'node', NODE_NAME)), LONG);
const version = async () => (await c.kubectl('get', 'node', NODE_NAME, '-o', 'jsonpath={.status.nodeInfo.kubeletVersion}')).trim();
const agentIs = (what: string, is: (v: string) => boolean) => c.daemon.wait(what, async () => is(await version()), LONG);

describe.skipIf(whyNot !== undefined)('claims of a node of the reference kubelet', () => {
  let theirs = '';

  it('are read by actorlet: nothing is prepared again, and what a pod alone used is unprepared', async () => {
    theirs = await version();
    const [before, called] = [onDisk(), calls().length];
    await reference.end('SIGKILL');
    await c.daemon.start();
    await agentIs('another agent', (v) => v !== theirs);
    await nodeReady();
    expect(onDisk()).toEqual(before);
    expect(calls()).toHaveLength(called);
    await end(c, ['templated', 'sharer-a', 'couple']);
    expect(calls().slice(called).sort()).toEqual(
      ['claim:left', 'claim:right', 'claim:templated-made'].map((name) => `NodeUnprepareResources ${name}`),
    );
    expect(onDisk()).toEqual(prepared());
  });

  it('are read by the kubelet again, which unprepares what is left', async () => {
    const called = calls().length;
    await c.daemon.end('SIGTERM');
    await reference.start();
    await agentIs('the old agent', (v) => v === theirs);
    await nodeReady();
    await end(
      c,
      Object.keys(pods((name) => ({ name }) as never)).filter((name) => !['templated', 'sharer-a', 'couple'].includes(name)),
    );
    await c.daemon.wait('all is unprepared', () => prepared().length === 0, LONG);
    expect(
      calls()
        .slice(called)
        .every((call) => call.startsWith('NodeUnprepareResources')),
    ).toBe(true);
    expect((checkpointNow(c) as { ClaimInfoStateList: unknown[] | null }).ClaimInfoStateList ?? []).toEqual([]);
  });
});
