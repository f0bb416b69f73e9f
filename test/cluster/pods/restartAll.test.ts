/** A rule that restarts all containers of a pod, in a real cluster with a real runtime: the API server of 1.36 lets it through for this node. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ContainerStatus, Pod } from '../../../src/machines/kube/types.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, LONG, STAY, startCluster } from '../cluster.ts';

let c: Cluster;
beforeAll(async () => {
  c = await startCluster();
});
afterAll(async () => {
  await c?.stop();
});

const CODE = 88;
const rules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [CODE] } }];
const all = ({ status }: Pod): ContainerStatus[] => [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
const counts = (pod: Pod) => all(pod).map((s) => `${s.name} ${s.restartCount}`);

describe('a rule that restarts all containers', () => {
  it('starts init containers, sidecars and regular containers again in the same sandbox, and keeps their logs', async () => {
    await c.create('training', {
      restartPolicy: 'Never',
      initContainers: [sh('first', 'echo first'), { ...sh('side', STAY), restartPolicy: 'Always' }],
      containers: [
        sh('main', `if [ -e /shared/again ]; then ${STAY}; fi; sleep 2; touch /shared/again; exit ${CODE}`, {
          restartPolicy: 'Never',
          restartPolicyRules: rules,
          volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
        }),
        steady('stays'),
      ],
      volumes: [{ name: 'shared', emptyDir: {} }],
    });
    const before = await c.podWhere('training', 'its containers are shown', (pod) => pod.status.podIP !== undefined);
    const after = await c.podWhere(
      'training',
      'all ran twice and are Ready',
      (pod) => all(pod).length === 4 && all(pod).every((s) => s.restartCount === 1 && s.ready),
      LONG,
    );
    expect(after.status.podIP).toBe(before.status.podIP);
    expect(counts(after)).toEqual(['first 1', 'side 1', 'main 1', 'stays 1']);
    for (const s of all(after)) expect(s.lastState.terminated?.reason).toBe('RestartingAllContainers');
    expect(after.status.conditions?.find((x) => x.type === 'AllContainersRestarting')).toMatchObject({ status: 'False' });
    const logs = join(c.daemon.podLogs, `default_training_${after.metadata.uid}`, 'main');
    expect(readdirSync(logs).sort()).toEqual(['0.log', '1.log']);
  });
});
