/** A pod whose containers all restart, and what a node agent tells of it on the way: `record.ts` writes what the reference tells. */
import { join } from 'node:path';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { ContainerStatus, Pod } from '../../../src/machines/kube/types.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { sh } from '../../e2e/manifests.ts';

export const RECORDED_RESTART = join(import.meta.dirname, '../recorded/restart136.json');
const CODE = 88;
const QUICK = { timeoutMs: 120_000, everyMs: 20 };
const STAY = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
/** The first process of a container ignores TERM unless it says otherwise: its stop takes a moment in which the restart can be seen. */
const DEAF = 'while :; do sleep 3600; done';

export const RESTARTED: Partial<PodSpec> & { containers: Container[] } = {
  restartPolicy: 'Never',
  initContainers: [sh('first', 'echo first'), { ...sh('side', STAY), restartPolicy: 'Always' }],
  containers: [
    sh('main', `if [ -e /shared/again ]; then ${STAY}; fi; sleep 2; touch /shared/again; exit ${CODE}`, {
      restartPolicy: 'Never',
      restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [CODE] } }],
      volumeMounts: [{ name: 'shared', mountPath: '/shared' }],
    }),
    sh('stays', DEAF, { resources: { requests: { cpu: '20m', memory: '16Mi' } } }),
  ],
  volumes: [{ name: 'shared', emptyDir: {} }],
};

const all = ({ status }: Pod): ContainerStatus[] => [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
export const restarting = (pod: Pod) => pod.status.conditions?.find((c) => c.type === 'AllContainersRestarting')?.status === 'True';
/** All run again. */
export const again = (pod: Pod) => all(pod).length === 4 && all(pod).every((s) => s.restartCount === 1 && s.ready);

/** Without what is new each time. */
export interface Told {
  phase: string | undefined;
  conditions: string[];
  containers: { name: string; restartCount: number; last: { reason?: string | undefined }; [more: string]: unknown }[];
}

export function told({ status }: Pod): Told {
  const end = (state: ContainerStatus['state']) =>
    state.terminated === undefined
      ? {}
      : { reason: state.terminated.reason, exitCode: state.terminated.exitCode, message: state.terminated.message };
  return {
    phase: status.phase,
    conditions: (status.conditions ?? [])
      .map(({ type, status: value, reason = '', message = '' }) => [type, value, reason, message].join(' ').trim())
      .sort(),
    containers: all({ status } as Pod).map((s) => ({
      ...{ name: s.name, state: Object.keys(s.state)[0], end: end(s.state), last: end(s.lastState) },
      ...{ restartCount: s.restartCount, ready: s.ready, started: s.started ?? false },
    })),
    ...{ resources: status.resources, allocatedResources: status.allocatedResources },
  };
}

/** When it is first told that all restart, and when all run again. */
export async function toldOfRestart(cluster: Cluster): Promise<{ restarting: Told; after: Told }> {
  await cluster.create('restarts', RESTARTED);
  const seen = await cluster.podWhere('restarts', 'restarts', restarting, QUICK);
  const after = await cluster.podWhere('restarts', 'runs again', again, QUICK);
  return JSON.parse(JSON.stringify({ restarting: told(seen), after: told(after) })) as { restarting: Told; after: Told };
}
