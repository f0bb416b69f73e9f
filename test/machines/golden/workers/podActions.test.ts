/** Every row of the tables of `computePodActions` (pod lifecycle 5.2), and what a worker does of it first (5.1, 5.3). */
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import type { ProbeResult } from '../../../../src/machines/pod/probes/probes.ts';
import { checkSandbox } from '../../../../src/machines/pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer, RuntimeSandbox } from '../../../../src/machines/pod/runtime/seen.ts';
import { shouldRestart } from '../../../../src/machines/pod/runtime/shouldRestart.ts';
import { computePodActions } from '../../../../src/machines/pods/workers/actions/podActions.ts';
import { type DecideInput, decide } from '../../../../src/machines/pods/workers/decide.ts';
import { box, container, FACTS, NOW_MS, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

interface Results {
  liveness?: Record<string, ProbeResult>;
  startup?: Record<string, ProbeResult>;
}
/** What is done, without what is not. */
const act = (p: Pod, status: PodRuntimeStatus, { liveness = {}, startup = {} }: Results = {}) => {
  const actions = computePodActions({
    pod: p,
    status,
    liveness: new Map(Object.entries(liveness)),
    startup: new Map(Object.entries(startup)),
  });
  const said = Object.entries(actions).filter(([, v]) => (Array.isArray(v) ? v.length > 0 : v !== false));
  return Object.fromEntries(said);
};
const check = (p: Pod, ...sandboxes: RuntimeSandbox[]) => checkSandbox(p, observed([], sandboxes));
const LOST = [box({ ready: false, ips: [] })];
const NONE: RuntimeSandbox[] = [];
const anew = (p: Pod, containers: RuntimeContainer[] = [], sandboxes = LOST) => act(p, observed(containers, sandboxes));
const done = (name: string, n = 1) => rc(name, 'exited', { n });
const failed = (name: string, n = 1) => rc(name, 'exited', { n, exitCode: 1 });

const policy = (restartPolicy: 'Always' | 'OnFailure' | 'Never', more: Partial<Pod['spec']> = {}) => pod({ restartPolicy, ...more });
const two = { containers: [container('a'), container('b')] };
const inits = { initContainers: [container('i1'), container('i2'), container('i3')] };
const init = (...containers: RuntimeContainer[]) => act(pod(inits), observed(containers));
const probe = { exec: { command: ['true'] } };
const sidecars = { initContainers: [sidecar('s1'), container('i'), sidecar('s2')] };
const beside = (more: Partial<Container>, spec: Partial<Pod['spec']> = {}) =>
  pod({ initContainers: [sidecar('s', more), container('i')], ...spec });
const regular = (more: Partial<Container>, state: RuntimeContainer, results: Results = {}, spec: Partial<Pod['spec']> = {}) =>
  act(pod({ containers: [container('web', more)], ...spec }), observed([state]), results);
const ALWAYS_NEVER = ['Always', 'Never'] as const;

/** What the worker does first. */
const first = (p: Pod, status: PodRuntimeStatus, more: Partial<DecideInput> = {}) => {
  const { plan, apiStatus } = decide({
    pod: p,
    status,
    old: undefined,
    failures: new Map(),
    facts: FACTS,
    networkReady: true,
    networkReason: '',
    nowWallMs: NOW_MS,
    ...more,
  });
  const { phase, reason } = apiStatus;
  return { plan: plan.kind, ...(plan.kind === 'network' ? { message: plan.message } : {}), phase, reason };
};
const HAD: PodStatus = {
  phase: 'Pending',
  conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }],
  resources: { requests: { cpu: '100m' } },
};
/** What is said of the pod as a whole, and which steps there are to what it was granted. */
const grown = (containers: RuntimeContainer[], sandboxes?: RuntimeSandbox[], before: PodStatus = HAD) => {
  const cpu = (amount: string) => ({ requests: { cpu: amount } });
  const { apiStatus, resize } = decide({
    pod: pod({ initContainers: [container('i')], resources: cpu('300m') }),
    status: observed(containers, sandboxes),
    old: { startTime: '2024-05-01T10:00:00Z', ...before },
    failures: new Map(),
    facts: FACTS,
    networkReady: true,
    networkReason: '',
    nowWallMs: NOW_MS,
  });
  return { phase: apiStatus.phase, said: apiStatus.resources, steps: resize.steps.map((s) => [s.name, s.resource]) };
};
const old = (more: PodStatus): Partial<DecideInput> => ({ old: { startTime: '2024-05-01T10:00:00Z', ...more } });

goldenTable('what is done about a pod is as recorded', 'workers/podActions', {
  'sandbox: none': () => check(pod()),
  'sandbox: more than one ready': () => check(pod(), box(), box({ n: 2 })),
  'sandbox: the newest is not ready': () => check(pod(), box({ ready: false }), box({ n: 2, ready: false })),
  'sandbox: the newest is not ready, an older one is': () => check(pod(), box(), box({ n: 2, ready: false })),
  'sandbox: an older one is not ready': () => check(pod(), box({ ready: false }), box({ n: 2 })),
  'sandbox: the pod moved to the network of the host': () => check(pod({ hostNetwork: true }), box()),
  'sandbox: the pod moved away from the network of the host': () => check(pod(), box({ hostNetwork: true, ips: [] })),
  'sandbox: without an address': () => check(pod(), box({ ips: [] })),
  'sandbox: without an address, on the network of the host': () => check(pod({ hostNetwork: true }), box({ hostNetwork: true, ips: [] })),
  'sandbox: as it should be': () => check(pod(), box({ n: 3 })),

  'anew: the first': () => anew(pod(), [], NONE),
  'anew: the first, of a Never pod': () => anew(policy('Never'), [], NONE),
  'anew: the second, of a Never pod of which nothing ran': () => anew(policy('Never')),
  'anew: the second, of a Never pod that ran': () => anew(policy('Never'), [failed('web')]),
  'anew: the second, of a Never pod of which an init container ran': () => anew(policy('Never', inits), [done('i1')]),
  'anew: OnFailure leaves out what succeeded': () => anew(policy('OnFailure', two), [done('a'), failed('b')]),
  'anew: OnFailure starts what was created and never ended': () => anew(policy('OnFailure', two), [rc('a', 'created'), failed('b')]),
  'anew: OnFailure, all succeeded': () => anew(policy('OnFailure', two), [done('a'), done('b')]),
  'anew: OnFailure starts what is in unknown state': () => anew(policy('OnFailure'), [rc('web', 'unknown')]),
  'anew: Always, all succeeded': () => anew(policy('Always', two), [done('a'), done('b')]),
  'anew: with init containers': () => anew(pod(inits), [done('i1'), done('i2', 2), done('web', 3)]),

  'ephemeral: without a status': () => act(pod({ ephemeralContainers: [container('debug')] }), observed([rc('web', 'running')])),
  'ephemeral: ended': () => act(pod({ ephemeralContainers: [container('debug')] }), observed([rc('web', 'running'), failed('debug')])),
  'ephemeral: before the pod is initialised': () =>
    act(pod({ ...inits, ephemeralContainers: [container('debug')] }), observed([rc('i1', 'running')])),

  'init: none in the definition': () => act(pod(), observed([])),
  'init: no statuses': () => init(),
  'init: the first runs': () => init(rc('i1', 'running')),
  'init: the first ended well': () => init(done('i1')),
  'init: the second runs, the first was collected': () => init(rc('i2', 'running')),
  'init: the second was created': () => init(done('i1'), rc('i2', 'created', { n: 2 })),
  'init: the last ended well': () => init(done('i1'), done('i2', 2), done('i3', 3)),
  'init: the last ended well, the others were collected': () => init(done('i3')),
  ...Object.fromEntries(
    (['Always', 'OnFailure', 'Never'] as const).flatMap((p) => [
      [`init: ${p}: the second failed`, () => act(policy(p, inits), observed([done('i1'), failed('i2', 2)]))],
      [`init: ${p}: the second is unknown`, () => act(policy(p, inits), observed([done('i1'), rc('i2', 'unknown', { n: 2 })]))],
    ]),
  ),
  'init: a regular container runs': () => init(rc('web', 'running')),
  'init: a regular container was created': () => init(rc('web', 'created')),
  'init: a regular container ended, as after a reboot': () => init(failed('web')),
  'init: failed, and a regular container runs': () => init(failed('i1'), rc('web', 'running', { n: 2 })),

  'sidecar: none has a status': () => act(pod(sidecars), observed([])),
  'sidecar: created': () => act(beside({}), observed([rc('s', 'created')])),
  'sidecar: runs, without a startup probe': () => act(beside({}), observed([rc('s', 'running')])),
  'sidecar: runs, startup without a result': () => act(beside({ startupProbe: probe }), observed([rc('s', 'running')])),
  'sidecar: runs, startup unknown': () =>
    act(beside({ startupProbe: probe }), observed([rc('s', 'running')]), { startup: { 's-1': 'unknown' } }),
  'sidecar: runs, startup failed': () =>
    act(beside({ startupProbe: probe }), observed([rc('s', 'running')]), { startup: { 's-1': 'failure' } }),
  'sidecar: runs, startup succeeded': () =>
    act(beside({ startupProbe: probe }), observed([rc('s', 'running')]), { startup: { 's-1': 'success' } }),
  'sidecar: runs, liveness failed': () =>
    act(beside({ livenessProbe: probe }), observed([rc('s', 'running'), rc('i', 'running', { n: 2 })]), { liveness: { 's-1': 'failure' } }),
  'sidecar: runs, its definition changed': () =>
    act(beside({ image: 'example.org/s:v2' }), observed([rc('s', 'running'), rc('i', 'running', { n: 2 })])),
  'sidecar: ended': () => act(beside({}), observed([done('s'), rc('i', 'running', { n: 2 })])),
  'sidecar: ended, in a Never pod': () =>
    act(beside({}, { restartPolicy: 'Never' }), observed([failed('s'), rc('i', 'running', { n: 2 })])),
  'sidecar: unknown': () => act(beside({}), observed([rc('s', 'unknown'), rc('i', 'running', { n: 2 })])),
  'sidecar: is the last, and started': () =>
    act(pod(sidecars), observed([rc('s1', 'running'), done('i', 2), rc('s2', 'running', { n: 3 })])),
  'sidecar: is the last, and the one before it ended meanwhile': () =>
    act(pod(sidecars), observed([failed('s1'), done('i', 2), rc('s2', 'running', { n: 3 })])),
  'sidecar: without a status beside a regular container': () => act(pod(sidecars), observed([rc('web', 'running')])),
  'sidecar: several to stop, in the order of the definition': () =>
    act(pod(sidecars), observed([rc('s1', 'unknown'), rc('s2', 'unknown', { n: 2 }), rc('web', 'running', { n: 3 })])),

  'regular: no status': () => act(pod(), observed([])),
  'regular: created': () => regular({}, rc('web', 'created')),
  'regular: unknown': () => regular({}, rc('web', 'unknown')),
  'regular: unknown, in a Never pod': () => regular({}, rc('web', 'unknown'), {}, { restartPolicy: 'Never' }),
  'regular: ended': () => regular({}, failed('web')),
  'regular: runs': () => regular({}, rc('web', 'running')),
  ...Object.fromEntries(
    ALWAYS_NEVER.flatMap((restartPolicy) => [
      [
        `regular: ${restartPolicy}: its definition changed`,
        () => regular({ image: 'example.org/web:v2' }, rc('web', 'running'), {}, { restartPolicy }),
      ],
      [
        `regular: ${restartPolicy}: liveness failed`,
        () => regular({ livenessProbe: probe }, rc('web', 'running'), { liveness: { 'web-1': 'failure' } }, { restartPolicy }),
      ],
      [
        `regular: ${restartPolicy}: startup failed`,
        () => regular({ startupProbe: probe }, rc('web', 'running'), { startup: { 'web-1': 'failure' } }, { restartPolicy }),
      ],
    ]),
  ),
  'regular: both probes failed': () =>
    regular({}, rc('web', 'running'), { liveness: { 'web-1': 'failure' }, startup: { 'web-1': 'failure' } }),
  'regular: a result of an earlier instance': () => regular({}, rc('web', 'running', { n: 2 }), { liveness: { 'web-1': 'failure' } }),
  'regular: not in the definition any more': () => act(pod(), observed([rc('web', 'running'), rc('old', 'running', { n: 2 })])),
  'regular: nothing is kept and nothing starts': () => act(policy('Never'), observed([done('web')])),
  'regular: nothing is kept and nothing starts, sidecars run': () =>
    act(policy('Never', { initContainers: [sidecar('s')] }), observed([rc('s', 'running'), done('web', 2)])),
  'regular: nothing is kept and nothing starts, a sidecar has ended': () =>
    act(policy('Never', { initContainers: [sidecar('s')] }), observed([failed('s'), done('web', 2)])),
  'regular: one is kept': () => act(policy('Never', two), observed([rc('a', 'running'), failed('b', 2)])),

  'restart: the pod is deleted': () =>
    shouldRestart({
      container: container('web'),
      pod: pod({}, { metadata: { deletionTimestamp: '2024-05-01T10:00:00Z' } }),
      newest: failed('web'),
    }),
  'restart: a sidecar of a Never pod': () =>
    shouldRestart({ container: sidecar('s'), pod: policy('Never', { initContainers: [sidecar('s')] }), newest: failed('s') }),
  'restart: created': () => shouldRestart({ container: container('web'), pod: policy('Never'), newest: rc('web', 'created') }),

  'first: the pod is over in the API': () => first(pod({}, { status: { phase: 'Failed' } }), observed([rc('web', 'running')])),
  'first: the pod is over by itself': () => first(policy('Never'), observed([done('web')])),
  'first: its deadline is over': () => first(pod({ activeDeadlineSeconds: 60 }), observed([rc('web', 'running')]), old({})),
  'first: its deadline is not over': () => first(pod({ activeDeadlineSeconds: 7_200 }), observed([rc('web', 'running')]), old({})),
  'first: it had ended before its deadline': () => first(policy('Never', { activeDeadlineSeconds: 60 }), observed([done('web')]), old({})),
  'first: the network is not ready': () =>
    first(pod(), observed([], NONE), { networkReady: false, networkReason: 'cni plugin not initialized' }),
  'first: the network is not ready, on the network of the host': () =>
    first(pod({ hostNetwork: true }), observed([], NONE), { networkReady: false, networkReason: 'cni plugin not initialized' }),
  'first: the network is not ready, and it runs': () => first(pod(), observed([rc('web', 'running')]), { networkReady: false }),
  'first: a sandbox is to be made': () => first(pod(), observed([], NONE)),
  'first: a sandbox is to be made, and the old one is up': () => first(pod(), observed([rc('web', 'running')], [box({ ips: [] })])),
  'first: a Never pod lost its sandbox before it began': () => first(policy('Never', inits), observed([done('i1')], LOST)),
  'first: a container is to be stopped': () =>
    first(pod({ containers: [container('web', { image: 'example.org/web:v2' })] }), observed([rc('web', 'running')])),
  'first: containers are to be started': () => first(pod(), observed([])),
  'first: all is as it should be': () => first(pod(), observed([rc('web', 'running')])),

  'resize: a Pending pod without a sandbox': () => grown([], NONE),
  'resize: a Pending pod with one': () => grown([]),
  'resize: a Pending pod whose init container runs': () => grown([rc('i', 'running')]),
  'resize: a Pending pod that lost its sandbox': () => grown([failed('i')], LOST),
  'resize: nobody knows what the pod has': () => grown([rc('i', 'running')], undefined, { phase: 'Running' }),
  'resize: what is said is older than the sandbox': () => grown([rc('i', 'running')], undefined, { ...HAD, conditions: [] }),
  'resize: it has nothing yet': () => grown([], NONE, { phase: 'Pending' }),
});
