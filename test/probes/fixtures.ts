/** Probes, pods and statuses in few words. */
import type { Container, Probe } from '../../src/machines/kube/podTable.ts';
import type { Pod, PodStatus } from '../../src/machines/kube/types.ts';
import type { ProbeTarget, ProbeType } from '../../src/machines/pod/probes/probes.ts';
import { container, pod } from '../machines/pods/fixtures.ts';

export const STARTED_MS = Date.parse('2024-05-01T10:00:00Z');

export function target(probe: Probe, more: Partial<ProbeTarget> & { spec?: Partial<Container> } = {}): ProbeTarget {
  const { spec, ...rest } = more;
  const type: ProbeType = rest.type ?? 'readiness';
  return {
    key: `uid-1/web/${type}`,
    pod: { uid: 'uid-1', name: 'p', namespace: 'ns' },
    container: container('web', spec),
    fieldPath: 'spec.containers{web}',
    type,
    probe,
    containerId: 'web-1',
    podIP: '10.1.2.3',
    startedAtMs: STARTED_MS,
    started: true,
    ...rest,
  };
}

export const EXEC: Probe = { exec: { command: ['true'] } };

/** A pod with one container `web`, and a status in which its instance `id` runs. */
export function facts(
  spec: Partial<Container>,
  o: { id?: string; running?: boolean; phase?: PodStatus['phase']; terminating?: boolean } = {},
) {
  const { id = 'web-1', running = true, phase = 'Running', terminating = false } = o;
  const p: Pod = pod({ containers: [container('web', spec)] });
  const status: PodStatus = {
    phase,
    podIP: '10.1.2.3',
    containerStatuses: [
      {
        name: 'web',
        state: running ? { running: { startedAt: '2024-05-01T10:00:00Z' } } : { waiting: {} },
        lastState: {},
        ready: false,
        restartCount: 0,
        image: '',
        imageID: '',
        containerID: `containerd://${id}`,
      },
    ],
  };
  return { pod: p, status, terminating, said: p.status };
}
