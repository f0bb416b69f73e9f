/** A rule that restarts all containers of a pod, in a real cluster with a real runtime: told as the reference kubelet tells it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RECORDED_RESTART, toldOfRestart } from '../../reference/lives/restart.ts';
import { type Cluster, startCluster } from '../cluster.ts';

let c: Cluster;
beforeAll(async () => {
  c = await startCluster();
});
afterAll(async () => {
  await c?.stop();
});

describe('a rule that restarts all containers', () => {
  it('starts init containers, sidecars and regular containers again in the same sandbox, and keeps their logs', async () => {
    const told = await toldOfRestart(c);
    expect(told).toEqual(JSON.parse(readFileSync(RECORDED_RESTART, 'utf8')));
    const pod = await c.ready('restarts');
    const logs = join(c.daemon.podLogs, `default_restarts_${pod.metadata.uid}`, 'main');
    expect(readdirSync(logs).sort()).toEqual(['0.log', '1.log']);
  });
});
