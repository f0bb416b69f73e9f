/** The phase of a pod (pod lifecycle 6.2), what keeps it (6.4), the state of one container (6.1, 8.5), QoS classes (6.3): a row for each line. */
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { ContainerStatus, Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import { qosClass } from '../../../../src/machines/pod/resources/qos.ts';
import type { RuntimeContainer } from '../../../../src/machines/pod/runtime/seen.ts';
import { type GenerateStatusInput, generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { anyRegularEverStarted, podPhase } from '../../../../src/machines/pods/status/phase.ts';
import { box, container, FACTS, NOW_MS, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const AT = '2024-05-01T10:00:00Z';
const base = (name: string): ContainerStatus => ({ name, state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' });
const up = (name: string, started = true): ContainerStatus => ({ ...base(name), state: { running: { startedAt: AT } }, started });
const ended = (name: string, exitCode: number): ContainerStatus => ({ ...base(name), state: { terminated: { exitCode } } });
const waits = (name: string): ContainerStatus => ({ ...base(name), state: { waiting: { reason: 'ContainerCreating' } } });
const backsOff = (name: string, exitCode: number): ContainerStatus => ({
  ...base(name),
  state: { waiting: { reason: 'CrashLoopBackOff' } },
  lastState: { terminated: { exitCode } },
});
/** Under each policy; then when everything was stopped for good; then that of a static pod. */
const phases = (spec: Partial<Pod['spec']>, ...statuses: ContainerStatus[]) => {
  const of = (p: Pod, podIsTerminal: boolean) =>
    podPhase(p, statuses, { podIsTerminal, done: anyRegularEverStarted(p.spec, statuses), ahead: new Set() });
  const by = Object.fromEntries(
    (['Always', 'OnFailure', 'Never'] as const).map((restartPolicy) => [restartPolicy, of(pod({ restartPolicy, ...spec }), false)]),
  );
  return { ...by, stopped: of(pod(spec), true), stoppedStatic: of(pod(spec, { source: 'file' }), true) };
};
/** Under each policy, of what the runtime holds. */
const policies = (spec: Partial<Pod['spec']>, ...instances: RuntimeContainer[]) =>
  Object.fromEntries(
    (['Always', 'OnFailure', 'Never'] as const).map((restartPolicy) => [
      restartPolicy,
      status({ pod: pod({ restartPolicy, ...spec }), status: observed(instances) }).phase,
    ]),
  );
const two = { containers: [container('a'), container('b')] };
const init = { initContainers: [container('i')] };
const side = { initContainers: [sidecar('s')] };

const status = (input: Partial<GenerateStatusInput> & Pick<GenerateStatusInput, 'status'>): PodStatus =>
  generatePodStatus({ pod: pod(), failures: new Map(), facts: FACTS, nowWallMs: NOW_MS, podIsTerminal: false, ...input });
const verdict = ({ phase, reason, message }: PodStatus) => ({ phase, reason, message });
const runs = observed([rc('web', 'running')]);
const web = (instances: RuntimeContainer[], more: Partial<GenerateStatusInput> = {}) =>
  status({ status: observed(instances), ...more }).containerStatuses?.[0];
const before = (s: Partial<ContainerStatus>): Partial<GenerateStatusInput> => ({
  old: { phase: 'Running', containerStatuses: [{ ...base('web'), ...s }] },
});
const failure = new Map([['web', { reason: 'CrashLoopBackOff', message: 'back-off 10s' }]]);
const started = (startedContainers: boolean | undefined, ready: boolean | undefined) => {
  const of = (v: boolean | undefined) => new Map(v === undefined ? [] : [['web-1', v]]);
  const s = web([rc('web', 'running')], { startedContainers: of(startedContainers), readyContainers: of(ready) });
  return { started: s?.started, ready: s?.ready };
};
const ofInit = (c: Container, instance: RuntimeContainer, startedMap = new Map<string, boolean>()) => {
  const s = status({ pod: pod({ initContainers: [c] }), status: observed([instance]), startedContainers: startedMap })
    .initContainerStatuses?.[0];
  return { started: s?.started, ready: s?.ready };
};
const addresses = (o: {
  ips?: string[];
  ready?: boolean;
  hostIPs?: string[];
  ipv6First?: boolean;
  hostNetwork?: boolean;
  old?: string[];
}) => {
  const sandbox = box({ ips: o.ips ?? [], ready: o.ready ?? true, hostNetwork: o.hostNetwork ?? false });
  const s = status({
    pod: pod(o.hostNetwork === true ? { hostNetwork: true } : {}),
    status: observed([], [sandbox]),
    facts: { ...FACTS, hostIPs: o.hostIPs ?? ['192.0.2.10'], ipv6First: o.ipv6First ?? false },
    ...(o.old === undefined ? {} : { old: { phase: 'Running' as const, podIPs: o.old.map((ip) => ({ ip })) } }),
  });
  return { podIP: s.podIP, podIPs: s.podIPs, hostIPs: s.hostIPs };
};
const qos = (...resources: NonNullable<Container['resources']>[]) =>
  qosClass(pod({ containers: resources.map((r, i) => container(`c${i}`, { resources: r })) }));
const both = { cpu: '1', memory: '1Gi' };
const asks = [container('web', { resources: { requests: both } })];

goldenTable('phases, states and classes are as recorded', 'status/phase', {
  '6.2 init: no status': () => phases(init, waits('web')),
  '6.2 init: runs': () => phases(init, up('i'), waits('web')),
  '6.2 init: waits': () => phases(init, waits('i'), waits('web')),
  '6.2 init: says nothing': () => phases(init, base('i'), waits('web')),
  '6.2 init: failed': () => phases(init, ended('i', 1), waits('web')),
  '6.2 init: backs off after a failure': () => phases(init, backsOff('i', 1), waits('web')),
  '6.2 init: done': () => phases(init, ended('i', 0), up('web')),
  '6.2 init: no status, a regular container ever started': () => phases(init, up('web')),
  '6.2 sidecar: no status': () => phases(side, up('web')),
  '6.2 sidecar: runs, not started': () => phases(side, up('s', false), waits('web')),
  '6.2 sidecar: runs, not started, a regular container runs': () => phases(side, up('s', false), up('web')),
  '6.2 sidecar: runs, started': () => phases(side, up('s'), up('web')),
  '6.2 sidecar: ended': () => phases(side, ended('s', 1), up('web')),
  '6.2 sidecar: backs off': () => phases(side, backsOff('s', 1), up('web')),
  '6.2 sidecar: waits': () => phases(side, waits('s'), up('web')),
  '6.2 sidecar: ended with the pod': () => phases(side, ended('s', 143), ended('web', 0)),
  '6.2 regular: runs': () => phases({}, up('web')),
  '6.2 regular: waits for its first start': () => phases({}, waits('web')),
  '6.2 regular: one runs, one waits for its first start': () => phases(two, up('a'), waits('b')),
  '6.2 regular: one runs, one has no status': () => phases(two, up('a')),
  '6.2 regular: one runs, one ended': () => phases(two, up('a'), ended('b', 1)),
  '6.2 regular: one runs, one backs off': () => phases(two, up('a'), backsOff('b', 1)),
  '6.2 regular: ended well': () => phases({}, ended('web', 0)),
  '6.2 regular: ended badly': () => phases({}, ended('web', 1)),
  '6.2 regular: one ended well, one badly': () => phases(two, ended('a', 0), ended('b', 1)),
  '6.2 regular: backs off after a good end': () => phases({}, backsOff('web', 0)),
  '6.2 regular: one ended, one has no status': () => phases(two, ended('a', 0)),
  '6.2 regular: no status at all': () => phases({}),
  '6.2 regular: ended well, stopped to be replaced': () => policies({}, rc('web', 'exited', { replaced: true })),
  '6.2 init: ended badly, stopped to be replaced': () => policies(init, rc('i', 'exited', { exitCode: 143, replaced: true })),

  '6.4 the API says Failed': () =>
    verdict(status({ pod: pod({}, { status: { phase: 'Failed', reason: 'A', message: 'a' } }), status: runs })),
  '6.4 the API says Succeeded, the node was to evict': () =>
    verdict(
      status({
        pod: pod({}, { status: { phase: 'Succeeded' } }),
        status: runs,
        override: { phase: 'Failed', reason: 'Evicted', message: 'x' },
      }),
    ),
  '6.4 this node said Failed, the API not yet': () =>
    verdict(
      status({ pod: pod({}, { status: { phase: 'Running' } }), status: runs, old: { phase: 'Failed', reason: 'Evicted', message: 'x' } }),
    ),
  '6.4 reason and message of the same phase': () => verdict(status({ status: runs, old: { phase: 'Running', reason: 'R', message: 'm' } })),
  '6.4 reason and message of another phase': () => verdict(status({ status: runs, old: { phase: 'Pending', reason: 'R', message: 'm' } })),
  '6.3 the deadline is over': () => verdict(status({ status: runs, deadlineExceeded: true })),
  '6.3 the node evicts': () => verdict(status({ status: runs, override: { phase: 'Failed', reason: 'Evicted', message: 'x' } })),

  '6.1 no instance': () => web([]),
  '6.1 no instance, with init containers': () =>
    status({ pod: pod({ initContainers: [container('i')] }), status: observed([]) }).containerStatuses?.[0],
  '6.1 no instance, ran before': () => web([], before({ state: { running: { startedAt: AT } }, restartCount: 2 })),
  '6.1 no instance, ran before, the pod is deleted': () =>
    web([], {
      pod: pod({}, { metadata: { deletionTimestamp: AT } }),
      ...before({ state: { running: { startedAt: AT } }, restartCount: 2 }),
    }),
  '6.1 no instance, had ended before': () => web([], before({ state: { terminated: { exitCode: 3 } }, restartCount: 2 })),
  '6.1 no instance, backed off before': () =>
    web([], before({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 3 } }, restartCount: 2 })),
  '6.1 running': () => web([rc('web', 'running', { n: 3 })]),
  '6.1 exited': () => web([rc('web', 'exited', { exitCode: 1, message: 'boom' })]),
  '6.1 exited, with a reason of the runtime': () => web([rc('web', 'exited', { exitCode: 137, reason: 'OOMKilled' })]),
  '6.1 exited, stopped to be replaced': () => web([rc('web', 'exited', { replaced: true })]),
  '6.1 exited, stopped to be replaced, and backs off': () =>
    web([rc('web', 'exited', { replaced: true })], { pod: pod({ restartPolicy: 'Never' }), failures: failure }),
  '6.1 created': () => web([rc('web', 'created')]),
  '6.1 unknown': () => web([rc('web', 'unknown')]),
  '6.1 unknown, ran before': () => web([rc('web', 'unknown')], before({ state: { running: { startedAt: AT } }, restartCount: 4 })),
  '6.1 three instances': () =>
    web([rc('web', 'running', { n: 3 }), rc('web', 'exited', { n: 2, exitCode: 2 }), rc('web', 'exited', { n: 1, exitCode: 1 })]),
  '6.1 a refused start': () => web([rc('web', 'exited', { exitCode: 1 })], { failures: failure }),
  '6.1 a refused first start': () => web([], { failures: failure }),
  '6.1 a refused start of what is not to start again': () =>
    web([rc('web', 'exited', { exitCode: 1 })], { pod: pod({ restartPolicy: 'Never' }), failures: failure }),
  '6.1 a refused start of an init container that is done': () =>
    status({
      pod: pod({ initContainers: [container('i')] }),
      status: observed([rc('i', 'exited')]),
      failures: new Map([['i', { reason: 'CrashLoopBackOff', message: '' }]]),
    }).initContainerStatuses?.[0]?.state,
  '6.1 order': () => {
    const p = pod({
      containers: [container('b'), container('a')],
      initContainers: [container('z'), container('y')],
      ephemeralContainers: [container('f'), container('e')],
    });
    const s = status({ pod: p, status: observed([rc('gone', 'running')]) });
    return [s.initContainerStatuses, s.containerStatuses, s.ephemeralContainerStatuses].map((list) => list?.map((c) => c.name));
  },

  '8.5 no probes': () => started(undefined, undefined),
  '8.5 startup failed or without a result': () => started(false, undefined),
  '8.5 startup succeeded, no readiness': () => started(true, undefined),
  '8.5 startup not yet, readiness succeeded': () => started(false, true),
  '8.5 readiness failed or without a result': () => started(undefined, false),
  '8.5 readiness succeeded': () => started(true, true),
  '8.5 init: done': () => ofInit(container('i'), rc('i', 'exited')),
  '8.5 init: failed': () => ofInit(container('i'), rc('i', 'exited', { exitCode: 1 })),
  '8.5 init: runs': () => ofInit(container('i'), rc('i', 'running')),
  '8.5 sidecar: started': () => ofInit(sidecar('s'), rc('s', 'running')),
  '8.5 sidecar: not started': () => ofInit(sidecar('s'), rc('s', 'running'), new Map([['s-1', false]])),

  '6.3 addresses: of the sandbox': () => addresses({ ips: ['10.0.0.5'] }),
  '6.3 addresses: the primary family of the node first': () =>
    addresses({ ips: ['10.0.0.5', 'fd00::5'], hostIPs: ['2001:db8::1', '192.0.2.10'], ipv6First: true }),
  '6.3 addresses: IPv4 first, although the cloud names IPv6 first': () =>
    addresses({ ips: ['fd00::5', '10.0.0.5'], hostIPs: ['2001:db8::1', '192.0.2.10'] }),
  '6.3 addresses: one of each family': () => addresses({ ips: ['10.0.0.5', '10.0.0.6', 'fd00::5'] }),
  '6.3 addresses: kept without a ready sandbox': () => addresses({ ready: false, old: ['10.0.0.5'] }),
  '6.3 addresses: on the network of the host': () => addresses({ hostNetwork: true, hostIPs: ['192.0.2.10', '2001:db8::1'] }),
  '6.3 addresses: on the network of the host, which has another address now': () =>
    addresses({ hostNetwork: true, hostIPs: ['192.0.2.99'], old: ['192.0.2.10'] }),
  '6.3 addresses: on the network of the host, whose address is not known': () =>
    addresses({ hostNetwork: true, hostIPs: [], old: ['192.0.2.10'] }),

  '6.3 class: nothing asked for': () => qos({}),
  '6.3 class: zero asked for': () => qos({ requests: { cpu: '0' }, limits: { memory: '0' } }),
  '6.3 class: other resources asked for': () => qos({ requests: { 'ephemeral-storage': '1Gi' } }),
  '6.3 class: limits of both, requests equal': () => qos({ limits: both, requests: both }),
  '6.3 class: limits of both, requests equal in other words': () => qos({ limits: both, requests: { cpu: '1000m', memory: '1024Mi' } }),
  '6.3 class: limits of both, requests less': () => qos({ limits: both, requests: { cpu: '500m', memory: '1Gi' } }),
  '6.3 class: limits of both, one request': () => qos({ limits: both, requests: { cpu: '1' } }),
  '6.3 class: limits of one': () => qos({ limits: { cpu: '1' }, requests: { cpu: '1' } }),
  '6.3 class: one container of two without limits': () => qos({ limits: both, requests: both }, {}),
  '6.3 class: init containers count': () =>
    qosClass(pod({ containers: [container('c', { resources: { limits: both, requests: both } })], initContainers: [container('i')] })),
  '6.3 class: ephemeral containers do not': () =>
    qosClass(pod({ containers: [container('c', { resources: { limits: both, requests: both } })], ephemeralContainers: [container('e')] })),
  '6.3 class: as the API server says': () =>
    status({ pod: pod({ containers: asks }, { status: { qosClass: 'BestEffort' } }), status: runs }).qosClass,
});
