/** A rule that restarts all containers of a pod, in a real cluster with a real runtime. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toldOfRestart } from '../../reference/lives/restart.ts';
import type { Cluster } from '../cluster.ts';
import { onCluster } from '../hooks.ts';

let c: Cluster;
onCluster((made) => (c = made));

describe('a rule that restarts all containers', () => {
  it('starts init containers, sidecars and regular containers again in the same sandbox, and keeps their logs', async () => {
    const { restarting, after } = await toldOfRestart(c);
    expect(restarting.conditions).toContain(
      'AllContainersRestarting True RestartAllContainersStarted container exited with restart policy rule',
    );
    expect(restarting.phase).toBe('Running');
    expect(after.conditions).toContain('AllContainersRestarting False');
    expect(after.containers.map((s) => [s.name, s.restartCount, s.last.reason])).toEqual(
      ['first', 'side', 'main', 'stays'].map((name) => [name, 1, 'RestartingAllContainers']),
    );
    const pod = await c.ready('restarts');
    const logs = join(c.daemon.podLogs, `default_restarts_${pod.metadata.uid}`, 'main');
    expect(readdirSync(logs).sort()).toEqual(['0.log', '1.log']);
  });
});
