/** Conditions about the end of a pod and about changes of its resources (pod lifecycle 6.5, 6.6), and those of others: a row for each case. */
import type { Pod, PodCondition, PodStatus } from '../../../../src/machines/kube/types.ts';
import { DEADLINE_OVERRIDE } from '../../../../src/machines/pod/ends/byNode.ts';
import { PREEMPTED_MESSAGE, PREEMPTING_MESSAGE } from '../../../../src/machines/pods/admission/preemption.ts';
import { evictedStatus } from '../../../../src/machines/pods/manager/messages.ts';
import { type GenerateStatusInput, generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { box, FACTS, NOW_MS, observed, pod, rc } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const BEFORE = '2024-05-01T09:00:00Z';
const told = (more: Partial<GenerateStatusInput> = {}): PodStatus =>
  generatePodStatus({
    pod: pod(),
    status: observed([rc('web', 'running')]),
    failures: new Map(),
    facts: FACTS,
    nowWallMs: NOW_MS,
    podIsTerminal: false,
    ...more,
  });
/** All but those that every pod has. */
const further = (more: Partial<GenerateStatusInput> = {}): PodCondition[] =>
  (told(more).conditions ?? []).filter(
    (c) => !['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].includes(c.type),
  );
const one = (type: string, more: Partial<GenerateStatusInput>): PodCondition | undefined =>
  told(more).conditions?.find((c) => c.type === type);
const conditions = (...list: PodCondition[]): PodStatus => ({ phase: 'Running', conditions: list });
const shown = (...list: PodCondition[]): Pod => pod({}, { status: conditions(...list) });

const low = 'The node was low on resource: memory. ';
const EVICTED = evictedStatus({ reason: 'Evicted', message: low, graceSeconds: 0, disruption: low });
const OVER_LIMIT = evictedStatus({ reason: 'Evicted', message: 'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ', graceSeconds: 1 });
const PREEMPTED = evictedStatus({
  reason: 'Preempting',
  message: PREEMPTING_MESSAGE,
  graceSeconds: 0,
  disruption: PREEMPTED_MESSAGE,
});
const TARGET: PodCondition = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'TerminationByKubelet',
  message: 'low',
  lastTransitionTime: BEFORE,
};
const BY_API: PodCondition = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'EvictionByEvictionAPI',
  message: 'a drain',
  lastTransitionTime: BEFORE,
};
const waiting = (reason: 'Deferred' | 'Infeasible', message: string): Pod => ({ ...pod(), resize: { reason, message } });
const notReady = (reason: string): PodCondition => ({ type: 'Ready', status: 'False', reason, lastTransitionTime: BEFORE });
const CRASHED = observed([rc('web', 'exited', { exitCode: 1 })]);

goldenTable('conditions about the end and the changes of a pod are as recorded', 'status/furtherConditions', {
  '6.5 DisruptionTarget: nobody ends it': () => further(),
  '6.5 DisruptionTarget: evicted': () => further({ override: EVICTED }),
  '6.5 DisruptionTarget: evicted for what it wrote itself': () => further({ override: OVER_LIMIT }),
  '6.5 DisruptionTarget: made room for a critical pod': () => further({ override: PREEMPTED }),
  '6.5 DisruptionTarget: not past its deadline': () => further({ override: DEADLINE_OVERRIDE }),
  '6.5 DisruptionTarget: stays when that was said once': () => further({ old: conditions(TARGET) }),
  '6.5 DisruptionTarget: stays over a restart, as the API shows it': () => further({ pod: shown(TARGET) }),
  '6.5 DisruptionTarget: said by others': () => further({ pod: shown(BY_API) }),
  '6.5 DisruptionTarget: said by others, and taken back since': () =>
    further({ pod: shown({ ...BY_API, status: 'False' }), old: conditions(BY_API) }),
  '6.5 DisruptionTarget: said by others, and then evicted': () => further({ pod: shown(BY_API), override: EVICTED }),
  '6.5 PodResizePending: deferred': () => further({ pod: waiting('Deferred', 'Node didn’t have enough resource: cpu') }),
  '6.5 PodResizePending: infeasible': () => further({ pod: waiting('Infeasible', 'Node didn’t have enough capacity: cpu') }),
  '6.5 PodResizePending: granted since': () =>
    further({ old: conditions({ type: 'PodResizePending', status: 'True', reason: 'Deferred' }) }),
  '6.5 PodResizePending: of a pod that has ended': () =>
    further({ pod: { ...waiting('Deferred', 'full'), status: { phase: 'Failed' } }, status: CRASHED }),
  '6.5 PodResizeInProgress: granted, not in force yet': () => further({ resizing: { error: null } }),
  '6.5 PodResizeInProgress: it could not be set': () =>
    further({ resizing: { error: 'memory of container web could not be changed: busy' } }),
  '6.5 PodResizeInProgress: in force since': () => further({ old: conditions({ type: 'PodResizeInProgress', status: 'True' }) }),
  '6.5 PodResizeInProgress: while another change waits': () => further({ pod: waiting('Deferred', 'full'), resizing: { error: null } }),
  '6.5 PodResizeInProgress: of a pod that has ended': () =>
    further({ pod: pod({}, { status: { phase: 'Succeeded' } }), resizing: { error: null } }),
  '6.5 of others: left as they are': () =>
    further({ pod: shown({ type: 'example.org/lb', status: 'False', reason: 'Draining', lastTransitionTime: BEFORE }) }),
  '6.5 of others: that the API no longer shows': () => further({ old: conditions({ type: 'example.org/lb', status: 'True' }) }),
  '6.5 time: another reason of the same status moves nothing': () =>
    one('Ready', { status: CRASHED, old: conditions(notReady('ReadinessGatesNotReady')) }),
  '6.5 time: of a change that waits is that of its reason': () =>
    (['Deferred', 'Infeasible'] as const).map(
      (reason) =>
        one('PodResizePending', {
          pod: waiting(reason, 'full'),
          old: conditions({ type: 'PodResizePending', status: 'True', reason: 'Deferred', lastTransitionTime: BEFORE }),
        })?.lastTransitionTime,
    ),
  '6.5 time: another status is of now': () => one('Ready', { old: conditions(notReady('ContainersNotReady')) }),
  '6.5 time: of what was never said is now': () => one('PodReadyToStartContainers', { status: observed([], [box({ ready: false })]) }),
  '6.5 time: of an eviction is now': () => one('DisruptionTarget', { override: EVICTED })?.lastTransitionTime,
});
