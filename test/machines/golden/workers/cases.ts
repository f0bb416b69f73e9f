/** The table: pods x runtime states. Names are keys of the golden files; add at the end of a group. */
import type { Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import type { StatusOverride } from '../../../../src/machines/pod/ends/byNode.ts';
import type { PodRuntimeStatus, StartFailure } from '../../../../src/machines/pod/runtime/seen.ts';
import { box, container, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';

export interface Case {
  pod: Pod;
  status: PodRuntimeStatus;
  old?: PodStatus;
  failures?: Record<string, StartFailure>;
  podIsTerminal?: boolean;
  deadlineExceeded?: boolean;
  override?: StatusOverride;
}

const NOT_READY = box({ ready: false, ips: [] });
const BACKOFF: StartFailure = { reason: 'CrashLoopBackOff', message: 'back-off 20s restarting failed container=web pod=p_ns(uid-1)' };
const PULL: StartFailure = { reason: 'ErrImagePull', message: 'no such image' };
const ranBefore = (restartCount: number) => ({
  ...{ name: 'web', state: { running: { startedAt: '2024-05-01T10:00:01Z' } }, lastState: {}, ready: true },
  ...{ restartCount, image: 'x', imageID: 'y' },
});
const inits = [container('i1'), container('i2')];
const sidecars = [container('i1'), sidecar('s1'), container('i2'), sidecar('s2')];
const done = (name: string, n = 1) => rc(name, 'exited', { n });
const failed = (name: string, n = 1) => rc(name, 'exited', { n, exitCode: 1 });

function table(): Record<string, Case> {
  const cases: Record<string, Case> = {
    'nothing in the runtime': { pod: pod(), status: observed([], []) },
    'nothing in the runtime, with init containers': { pod: pod({ initContainers: inits }), status: observed([], []) },
    'sandbox ready, nothing started': { pod: pod(), status: observed([]) },
    'sandbox ready, image missing': { pod: pod(), status: observed([]), failures: { web: PULL } },
    'two sandboxes ready': { pod: pod(), status: observed([rc('web', 'running')], [box(), box({ n: 2 })]) },
    'sandbox not ready, container running': { pod: pod(), status: observed([rc('web', 'running')], [NOT_READY]) },
    'sandbox without address': { pod: pod(), status: observed([rc('web', 'running')], [box({ ips: [] })]) },
    'host network switched on': { pod: pod({ hostNetwork: true }), status: observed([rc('web', 'running')]) },
    'host network, running': {
      pod: pod({ hostNetwork: true }),
      status: observed([rc('web', 'running')], [box({ hostNetwork: true, ips: [] })]),
    },
    'running as it should': { pod: pod(), status: observed([rc('web', 'running')]) },
    'running, restarted once': { pod: pod(), status: observed([rc('web', 'running', { n: 2 }), failed('web')]) },
    'created and never started': { pod: pod(), status: observed([rc('web', 'created')]) },
    'definition changed': {
      pod: pod({ restartPolicy: 'Never', containers: [container('web', { image: 'example.org/web:v2' })] }),
      status: observed([rc('web', 'running')]),
    },
    'crash back-off': { pod: pod(), status: observed([failed('web', 2), failed('web')]), failures: { web: BACKOFF } },
    'just crashed': { pod: pod(), status: observed([failed('web')]) },
    'two containers, one image missing': {
      pod: pod({ containers: [container('web'), container('api')] }),
      status: observed([rc('web', 'running')]),
      failures: { api: PULL },
    },
    'container gone from the runtime': {
      pod: pod(),
      status: observed([]),
      old: {
        phase: 'Running',
        startTime: '2024-05-01T10:00:00Z',
        containerStatuses: [ranBefore(3)],
      },
    },
    'unknown state': { pod: pod(), status: observed([rc('web', 'unknown')]) },
    'unknown state, ran before': {
      pod: pod(),
      status: observed([rc('web', 'unknown')]),
      old: {
        phase: 'Running',
        containerStatuses: [ranBefore(0)],
      },
    },
    'ephemeral while initialising': {
      pod: pod({ initContainers: inits, ephemeralContainers: [container('debug')] }),
      status: observed([rc('i1', 'running')]),
    },
    'ephemeral ended': { pod: pod({ ephemeralContainers: [container('debug')] }), status: observed([rc('web', 'running'), done('debug')]) },
    'first init running': { pod: pod({ initContainers: inits }), status: observed([rc('i1', 'running')]) },
    'first init done': { pod: pod({ initContainers: inits }), status: observed([done('i1')]) },
    'last init done': { pod: pod({ initContainers: inits }), status: observed([done('i1'), done('i2', 2)]) },
    'init unknown': { pod: pod({ initContainers: inits }), status: observed([rc('i1', 'unknown')]) },
    'init created only': { pod: pod({ initContainers: inits }), status: observed([rc('i1', 'created')]) },
    'init collected, regular running': { pod: pod({ initContainers: inits }), status: observed([rc('web', 'running', { n: 3 })]) },
    'after a reboot': {
      pod: pod({ initContainers: inits }),
      status: observed([done('i1'), done('i2', 2), failed('web', 3)], [NOT_READY]),
    },
    'sidecars: first one starts': { pod: pod({ initContainers: sidecars }), status: observed([done('i1')]) },
    'sidecars: started, next init follows': {
      pod: pod({ initContainers: sidecars }),
      status: observed([done('i1'), rc('s1', 'running', { n: 2 })]),
    },
    'sidecars: all started': {
      pod: pod({ initContainers: sidecars }),
      status: observed([done('i1'), rc('s1', 'running', { n: 2 }), done('i2', 3), rc('s2', 'running', { n: 4 })]),
    },
    'sidecars: crashed beside a running container': {
      pod: pod({ initContainers: sidecars }),
      status: observed([failed('s1', 2), rc('s2', 'running', { n: 4 }), rc('web', 'running', { n: 5 })]),
    },
    'sidecars: startup probe without result': {
      pod: pod({ initContainers: [sidecar('s1', { startupProbe: { exec: { command: ['true'] } } }), container('i2')] }),
      status: observed([rc('s1', 'running')]),
    },
    'sidecars: pod done, sidecar still running': {
      pod: pod({ restartPolicy: 'Never', initContainers: [sidecar('s1')] }),
      status: observed([rc('s1', 'running'), done('web', 2)]),
    },
    'sidecars: crash back-off in a Never pod': {
      pod: pod({ restartPolicy: 'Never', initContainers: [sidecar('s1')] }),
      status: observed([failed('s1', 2), rc('web', 'running', { n: 3 })]),
      failures: { s1: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
    },
    'deadline over': { pod: pod({ activeDeadlineSeconds: 60 }), status: observed([rc('web', 'running')]), deadlineExceeded: true },
    evicted: {
      pod: pod(),
      status: observed([rc('web', 'exited', { exitCode: 137 })], [NOT_READY]),
      podIsTerminal: true,
      override: { phase: 'Failed', reason: 'Evicted', message: 'low on memory', disruption: 'low on memory' },
    },
    'API says Failed, runtime says running': {
      pod: pod({}, { status: { phase: 'Failed', reason: 'NodeLost', message: 'gone' } }),
      status: observed([rc('web', 'running')]),
    },
    'readiness gate unmet': {
      pod: pod({ readinessGates: [{ conditionType: 'example.org/lb' }] }),
      status: observed([rc('web', 'running')]),
    },
    'stopped for good': { pod: pod(), status: observed([rc('web', 'exited', { exitCode: 143 })], [NOT_READY]), podIsTerminal: true },
    'stopped for good, static': {
      pod: pod({}, { source: 'file' }),
      status: observed([rc('web', 'exited', { exitCode: 143 })], [NOT_READY]),
      podIsTerminal: true,
    },
  };
  for (const restartPolicy of ['Always', 'OnFailure', 'Never'] as const) {
    const one = pod({ restartPolicy });
    const withInit = pod({ restartPolicy, initContainers: inits });
    cases[`${restartPolicy}: exited 0`] = { pod: one, status: observed([done('web')]) };
    cases[`${restartPolicy}: exited 1`] = { pod: one, status: observed([failed('web')]) };
    cases[`${restartPolicy}: exited 0, sandbox lost`] = { pod: one, status: observed([done('web')], [NOT_READY]) };
    cases[`${restartPolicy}: exited 1, sandbox lost`] = { pod: one, status: observed([failed('web')], [NOT_READY]) };
    cases[`${restartPolicy}: init failed`] = { pod: withInit, status: observed([failed('i1')]) };
    cases[`${restartPolicy}: one of two exited 0`] = {
      pod: pod({ restartPolicy, containers: [container('web'), container('api')] }),
      status: observed([rc('web', 'running'), done('api')]),
    };
  }
  return cases;
}

export const CASES: ReadonlyMap<string, Case> = new Map(Object.entries(table()));
