/**
 * Conditions of a pod, also those about its end and its changes (6.6), a row for each line of the specification's table (pod lifecycle 6.5), with the very reasons and
 * messages. The line of statuses that are null (`UnknownContainerStatuses`) has no row: this node gives every container
 * of a definition a status before it looks at conditions.
 */
import type { ContainerStatus, Pod, PodCondition, PodPhase } from '../../../../src/machines/kube/types.ts';
import { ownConditions } from '../../../../src/machines/pods/status/conditions.ts';
import { container, pod, sidecar } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

interface Row {
  pod: Pod;
  statuses: ContainerStatus[];
  phase?: PodPhase;
  sandboxReady?: boolean;
  foreign?: PodCondition[];
}

const base = (name: string) => ({ name, lastState: {}, restartCount: 0, image: '', imageID: '' });
const startedAt = '2024-05-01T10:00:00Z';
const up = (name: string, ready = true, started = true): ContainerStatus => ({
  ...base(name),
  state: { running: { startedAt } },
  ready,
  started,
});
const waiting = (name: string): ContainerStatus => ({
  ...base(name),
  state: { waiting: { reason: 'PodInitializing' } },
  ready: false,
  started: false,
});
/** An init container that has done its work is ready; one that failed is not. */
const ended = (name: string, exitCode: number): ContainerStatus => ({
  ...base(name),
  state: { terminated: { exitCode } },
  ready: exitCode === 0,
  started: false,
});
const over = (name: string, exitCode: number): ContainerStatus => ({ ...ended(name, exitCode), ready: false });

const two = pod({ containers: [container('b'), container('a')] });
const inits = pod({ initContainers: [container('i1'), container('i2')] });
const withSidecar = pod({ initContainers: [sidecar('s')] });
const GATE = 'example.org/lb';
const gated = (...types: string[]) => pod({ readinessGates: types.map((conditionType) => ({ conditionType })) });
const says = (type: string, status: 'True' | 'False' | 'Unknown'): PodCondition => ({ type, status });

const ROWS: Record<string, Row> = {
  'everything is ready': { pod: pod(), statuses: [up('web')] },
  'PodReadyToStartContainers: no usable sandbox': { pod: pod(), statuses: [waiting('web')], sandboxReady: false, phase: 'Pending' },
  'Initialized: no init containers': { pod: pod(), statuses: [waiting('web')], phase: 'Pending' },
  'Initialized: the first runs, the second waits': {
    pod: inits,
    statuses: [up('i1', false), waiting('i2'), waiting('web')],
    phase: 'Pending',
  },
  'Initialized: one failed': { pod: inits, statuses: [ended('i1', 1), waiting('i2'), waiting('web')], phase: 'Pending' },
  'Initialized: one without a status': { pod: inits, statuses: [ended('i1', 0), waiting('web')], phase: 'Pending' },
  'Initialized: one without a status and one that is not done': { pod: inits, statuses: [waiting('i2'), waiting('web')], phase: 'Pending' },
  'Initialized: all done': { pod: inits, statuses: [ended('i1', 0), ended('i2', 0), waiting('web')], phase: 'Pending' },
  'Initialized: a regular container ever started': { pod: inits, statuses: [waiting('i1'), waiting('i2'), up('web')] },
  'Initialized: a sidecar that is not started yet': {
    pod: withSidecar,
    statuses: [up('s', false, false), waiting('web')],
    phase: 'Pending',
  },
  'Initialized: a sidecar that is started, not ready': { pod: withSidecar, statuses: [up('s', false), waiting('web')], phase: 'Pending' },
  'Succeeded with all known': { pod: inits, statuses: [ended('i1', 0), ended('i2', 0), over('web', 0)], phase: 'Succeeded' },
  'Succeeded with one unknown': { pod: two, statuses: [over('a', 0)], phase: 'Succeeded' },
  Failed: { pod: pod(), statuses: [over('web', 1)], phase: 'Failed' },
  'Failed while a container is still ready': { pod: pod(), statuses: [up('web')], phase: 'Failed' },
  'ContainersReady: one is not ready': { pod: two, statuses: [up('a'), up('b', false)] },
  'ContainersReady: none is, named in the order of the definition': { pod: two, statuses: [up('a', false), up('b', false)] },
  'ContainersReady: one without a status': { pod: two, statuses: [up('a')] },
  'ContainersReady: one without a status and one not ready': { pod: two, statuses: [up('a', false)] },
  'ContainersReady: a sidecar counts': { pod: withSidecar, statuses: [up('s', false), up('web')] },
  'ContainersReady: an init container that is done does not count': { pod: inits, statuses: [ended('i1', 0), ended('i2', 0), up('web')] },
  'gate: nobody has said anything': { pod: gated(GATE), statuses: [up('web')] },
  'gate: False': { pod: gated(GATE), statuses: [up('web')], foreign: [says(GATE, 'False')] },
  'gate: Unknown': { pod: gated(GATE), statuses: [up('web')], foreign: [says(GATE, 'Unknown')] },
  'gate: True': { pod: gated(GATE), statuses: [up('web')], foreign: [says(GATE, 'True')] },
  'gates: one of three is True': {
    pod: gated(GATE, 'example.org/dns', 'example.org/mesh'),
    statuses: [up('web')],
    foreign: [says(GATE, 'True'), says('example.org/dns', 'False')],
  },
  'gate: True does not help where containers are not ready': {
    pod: gated(GATE),
    statuses: [up('web', false)],
    foreign: [says(GATE, 'True')],
  },
  'gate: not asked while containers are not ready': { pod: gated(GATE), statuses: [up('web', false)] },
};

goldenTable(
  'conditions are as recorded',
  'status/conditions',
  deciding(ROWS, ({ pod: p, statuses, phase = 'Running', sandboxReady = true, foreign = [] }) =>
    ownConditions({ pod: p, statuses, phase, sandboxReady, foreign, restartingAll: false, old: {} }),
  ),
);
