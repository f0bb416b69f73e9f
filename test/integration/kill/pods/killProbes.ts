/** For every state of a probe and of the manager of probes: how a node is driven there. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const probes = 'node/services/probes';
const exec = { exec: { command: ['check'] } };

/** The state of one probe of the subject's container, '' while there is none. */
function probeState(h: VirtualNode, type: string): string {
  const record = h.record('subject');
  return record === undefined ? '' : (h.charts(probes, `${record.pod.metadata.uid}/main/${type}`)[0] ?? '');
}
function isReady(h: VirtualNode): boolean {
  return h.status('subject')?.status.conditions?.find((c) => c.type === 'Ready')?.status === 'True';
}

/** The manager is killed while that probe of a subject is in that state; the subject ends up ready, with its first container. */
function probe(state: string, o: { type: string; container: object; hold?(h: VirtualNode): void }): KillCase {
  return {
    covers: `prober ${state}`,
    path: probes,
    arrange: async (h) => {
      o.hold?.(h);
      h.write('subject', pod('subject', { container: o.container }));
    },
    at: (h) => probeState(h, o.type) === state,
    rests: isReady,
  };
}

export const PROBE_CASES: KillCase[] = [
  { covers: 'probes serving.sweeping', path: probes },
  {
    // The checkpoint is slow while the node starts.
    covers: 'probes loading',
    path: probes,
    options: { ready: false },
    arrange: async (h) => {
      await h.crash();
      h.fs.delayMs = (op, path) => (op === 'readFile' && path.endsWith('/probes.json') ? 500 : 0);
      await h.boot();
    },
    rests: (h) => h.running('web').length === 1 && h.phase('web') === 'Running' && h.phase('full') === 'Running',
  },
  probe('gated', {
    type: 'readiness',
    container: { startupProbe: { httpGet: { port: 1 }, failureThreshold: 99, periodSeconds: 1 }, readinessProbe: exec },
    hold: (h) => {
      h.probes.answer = () => 500;
    },
  }),
  probe('delaying', { type: 'readiness', container: { readinessProbe: { ...exec, initialDelaySeconds: 9 } } }),
  probe('attempting.probing', {
    type: 'readiness',
    container: { readinessProbe: { httpGet: { port: 1 }, timeoutSeconds: 5, periodSeconds: 1 } },
    hold: (h) => {
      h.probes.afterMs = 3_000;
    },
  }),
  probe('resting', { type: 'readiness', container: { readinessProbe: exec } }),
  {
    // So many slow commands that the subject has to wait.
    ...probe('attempting.queued', { type: 'readiness', container: { readinessProbe: { ...exec, periodSeconds: 1, timeoutSeconds: 60 } } }),
    arrange: async (h) => {
      h.faults.latencyMs = { ExecSync: 5_000 };
      for (let i = 0; i < 8; i++)
        h.write(`busy-${i}`, pod(`busy-${i}`, { container: { readinessProbe: { ...exec, periodSeconds: 1, timeoutSeconds: 60 } } }));
      await h.until('the places are taken', () => Array.from({ length: 8 }, (_, i) => h.phase(`busy-${i}`)).every((p) => p === 'Running'));
      h.write('subject', pod('subject', { container: { readinessProbe: { ...exec, periodSeconds: 1, timeoutSeconds: 60 } } }));
    },
    rests: (h) =>
      isReady(h) &&
      Array.from({ length: 8 }, (_, i) => h.status(`busy-${i}`)).every(
        (s) => s?.status.conditions?.find((c) => c.type === 'Ready')?.status === 'True',
      ),
  },
  {
    // It has failed, and the container takes its time to end.
    ...probe('held', { type: 'liveness', container: { livenessProbe: { httpGet: { port: 1 }, failureThreshold: 1, periodSeconds: 1 } } }),
    arrange: async (h) => {
      h.write(
        'subject',
        pod('subject', { life: 'term=6s', container: { livenessProbe: { httpGet: { port: 1 }, failureThreshold: 1, periodSeconds: 1 } } }),
      );
      await h.until('the subject runs', () => h.phase('subject') === 'Running');
      await h.advance(2_000);
      h.probes.answer = () => 500;
    },
    rests: (h) => isReady(h) && h.status('subject')?.status.containerStatuses?.[0]?.restartCount === 1,
  },
];
