/** Tables of stopping and restarting (pod lifecycle 5.2 shouldRestart, 5.13, 5.14): a row for each line of the specification. */
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { effectiveGraceSeconds, killPlan, stopTimeoutSeconds } from '../../../../src/machines/pod/runtime/killOrder.ts';
import { shouldRestart } from '../../../../src/machines/pod/runtime/shouldRestart.ts';
import { initialization, podPhase } from '../../../../src/machines/pods/status/phase.ts';
import { computePodActions } from '../../../../src/machines/pods/workers/actions/podActions.ts';
import { hookKind, hookRequest, judgeCommand, plainRequest } from '../../../../src/machines/pods/workers/container/hooks.ts';
import { killTasks } from '../../../../src/machines/pods/workers/stopMachine.ts';
import { container, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

const preStop = { exec: { command: ['bye'] } };
const hooked = (name: string, more: Partial<Container> = {}) => container(name, { lifecycle: { preStop }, ...more });
const rule = (operator: string, ...values: number[]) => ({ restartPolicyRules: [{ action: 'Restart', exitCodes: { operator, values } }] });

/** What is stopped, with how much grace, after which hook, and after whom. */
const stops = (p: Pod, names: string[], o: { override?: number; elapsedMs?: number } = {}) => {
  const status = observed(names.map((name) => rc(name, 'running')));
  const graceSeconds = effectiveGraceSeconds({ pod: p, override: o.override ?? null });
  return {
    graceSeconds,
    stops: killPlan({ pod: p, status, graceSeconds, forced: o.override === 0 }).map((s) => ({
      name: s.name,
      hook: s.preStop !== undefined,
      after: s.waitForIds,
      timeoutSeconds: stopTimeoutSeconds(s.graceSeconds, o.elapsedMs ?? 0),
    })),
  };
};
const deleted = (deletionGracePeriodSeconds: number, spec = {}) =>
  pod({ containers: [hooked('web')], terminationGracePeriodSeconds: 30, ...spec }, { metadata: { deletionGracePeriodSeconds } });
const kill = (reason: 'LivenessProbe' | 'StartupProbe' | 'FailedPostStartHook' | 'definitionChanged', c: Container) =>
  killTasks({
    pod: pod({ containers: [c], terminationGracePeriodSeconds: 30 }),
    kills: [{ id: 'web-1', name: 'web', message: 'why', reason }],
    preStopped: new Set(),
  }).map(({ step }) => ({ graceSeconds: step.graceSeconds, hook: step.preStop !== undefined }));

const all = pod({
  initContainers: [sidecar('s1'), container('i1'), { ...sidecar('s2'), lifecycle: { preStop } }],
  containers: [hooked('b'), container('a')],
  terminationGracePeriodSeconds: 30,
});

const ENDS: [string, number | 'running' | 'unknown' | null][] = [
  ['no status', null],
  ['running', 'running'],
  ['unknown', 'unknown'],
  ['exit 0', 0],
  ['exit 1', 1],
  ['exit 42', 42],
];
function restarts(podPolicy: 'Always' | 'OnFailure' | 'Never', c: Partial<Container>): Record<string, boolean> {
  const web = container('web', c);
  const p = pod({ restartPolicy: podPolicy, containers: [web] });
  return Object.fromEntries(
    ENDS.map(([name, end]) => {
      const newest =
        end === null
          ? undefined
          : typeof end === 'number'
            ? rc('web', 'exited', { exitCode: end })
            : rc('web', end === 'running' ? 'running' : 'unknown');
      return [name, shouldRestart({ container: web, pod: p, newest })];
    }),
  );
}
function after(p: Pod, exits: Record<string, number>): unknown {
  const status = observed(Object.entries(exits).map(([name, exitCode]) => rc(name, 'exited', { exitCode })));
  const statuses = Object.entries(exits).map(([name, exitCode]) => ({
    name,
    state: { terminated: { exitCode } },
    lastState: {},
    ready: false,
    restartCount: 0,
    image: '',
    imageID: '',
  }));
  const { killPod, initToStart, containersToStart } = computePodActions({ pod: p, status });
  return { phase: podPhase(p, statuses, { podIsTerminal: false, ...initialization(p, status) }), killPod, initToStart, containersToStart };
}
const two = (a: Partial<Container>, b: Partial<Container>, restartPolicy: 'Always' | 'Never' = 'Always') =>
  pod({ restartPolicy, containers: [container('a', a), container('b', b)] });
const get = (httpGet: object, podIPs = ['10.0.0.7']) => {
  const job = {
    which: 'preStop' as const,
    handler: { httpGet: { port: 80, ...httpGet } },
    pod: pod(),
    container: container('web', { ports: [{ name: 'web', containerPort: 8080 }] }),
    containerId: 'web-1',
    podIPs,
  };
  const request = hookRequest(job);
  return { request, plain: request.ok && request.value.url.startsWith('https') ? plainRequest(request.value) : undefined };
};

/** Of a whole pod. */
const grace = (deletion: number | null, o: { current?: number; override?: number; spec?: number | null } = {}) => {
  const { current = null, override = null, spec = 30 } = o;
  const { terminationGracePeriodSeconds: _, ...rest } = pod().spec;
  const p = { ...pod({}, { metadata: deletion === null ? {} : { deletionGracePeriodSeconds: deletion } }) };
  return effectiveGraceSeconds({
    pod: { ...p, spec: spec === null ? rest : { ...rest, terminationGracePeriodSeconds: spec } },
    current,
    override,
  });
};
const command = (exitCode: number, stdout = '', stderr = '') => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  return judgeCommand({ exitCode, stdout: bytes(stdout), stderr: bytes(stderr) });
};

const ROWS: Record<string, unknown> = {
  'grace: of the definition': grace(null),
  'grace: of the definition, none': grace(null, { spec: null }),
  'grace: of the deletion, shorter': grace(7),
  'grace: of the deletion, longer': grace(90),
  'grace: of the deletion, 0: a second all the same': grace(0),
  'grace: asked for by the node, shorter': grace(7, { override: 3 }),
  'grace: asked for by the node, longer': grace(7, { override: 90 }),
  'grace: asked for by the node, without a deletion': grace(null, { override: 90 }),
  'grace: asked for by the node, 0': grace(7, { override: 0 }),
  'grace: while it is stopped already, shorter': grace(3, { current: 20 }),
  'grace: while it is stopped already, longer': grace(90, { current: 20 }),
  'grace: while it is stopped already, asked for by the node': grace(null, { current: 20, override: 5 }),
  'grace: while it is stopped already, nothing new': grace(null, { current: 20 }),
  'stop: deletion with a grace of its own': stops(deleted(7), ['web']),
  'stop: deletion by force': stops(deleted(0), ['web']),
  'stop: no deletion grace': stops(pod({ containers: [hooked('web')], terminationGracePeriodSeconds: 30 }), ['web']),
  'stop: an override shrinks the grace': stops(deleted(20), ['web'], { override: 3 }),
  'stop: an override never extends it': stops(deleted(20), ['web'], { override: 90 }),
  'stop: an override of 0': stops(deleted(20), ['web'], { override: 0 }),
  'stop: part of a second is not taken': stops(deleted(20), ['web'], { elapsedMs: 3_999 }),
  'stop: the hook used up the grace': stops(deleted(20), ['web'], { elapsedMs: 20_000 }),
  'stop: sidecars last, in reverse order': stops(all, ['s1', 's2', 'b', 'a']),
  'stop: sidecars wait for what runs only': stops(all, ['s1', 'a']),
  'kill: liveness with a grace of its own': kill(
    'LivenessProbe',
    hooked('web', { livenessProbe: { exec: { command: ['x'] }, terminationGracePeriodSeconds: 4 } }),
  ),
  'kill: startup with a grace of its own': kill(
    'StartupProbe',
    hooked('web', { startupProbe: { exec: { command: ['x'] }, terminationGracePeriodSeconds: 5 } }),
  ),
  'kill: liveness with the grace of the pod': kill('LivenessProbe', hooked('web', { livenessProbe: { exec: { command: ['x'] } } })),
  'kill: postStart failed': kill('FailedPostStartHook', hooked('web')),
  'kill: definition changed': kill('definitionChanged', container('web')),
  'restart: Always': restarts('Always', {}),
  'restart: OnFailure': restarts('OnFailure', {}),
  'restart: Never': restarts('Never', {}),
  'restart: Never of its own in an Always pod': restarts('Always', { restartPolicy: 'Never' }),
  'restart: OnFailure of its own in a Never pod': restarts('Never', { restartPolicy: 'OnFailure' }),
  'restart: Never with a rule for 42': restarts('Never', { restartPolicy: 'Never', ...rule('In', 42) }),
  'restart: Never with a rule for all but 42': restarts('Always', { restartPolicy: 'Never', ...rule('NotIn', 42) }),
  'restart: OnFailure with a rule for 0': restarts('Never', { restartPolicy: 'OnFailure', ...rule('In', 0) }),
  'pod: one ends for good, one is restarted': after(two({ restartPolicy: 'Never' }, {}), { a: 1, b: 1 }),
  'pod: both end for good': after(two({ restartPolicy: 'Never' }, { restartPolicy: 'Never' }), { a: 0, b: 1 }),
  'pod: both succeed for good': after(two({ restartPolicy: 'Never' }, { restartPolicy: 'OnFailure' }), { a: 0, b: 0 }),
  'pod: a rule keeps a Never pod alive': after(two({ restartPolicy: 'Never', ...rule('In', 42) }, {}, 'Never'), { a: 42, b: 1 }),
  'pod: an init container that may not fail': after(pod({ initContainers: [container('i', { restartPolicy: 'Never' })] }), { i: 1 }),
  'pod: an init container that may': after(
    pod({ restartPolicy: 'Never', initContainers: [container('i', { restartPolicy: 'OnFailure' })] }),
    { i: 1 },
  ),
  'hook: kinds': [preStop, { httpGet: { port: 1 } }, { sleep: { seconds: 1 } }, { tcpSocket: { port: 1 } }, {}].map(hookKind),
  'hook: HTTP to the pod, a named port': get({ port: 'web', path: 'bye' }),
  'hook: HTTP to a host, with headers': get({
    host: 'h.example',
    path: '/a?b=c',
    httpHeaders: [
      { name: 'accept', value: '' },
      { name: 'X-One', value: '1' },
    ],
  }),
  'hook: HTTPS, and what is asked where TLS is not spoken': get({
    scheme: 'HTTPS',
    httpHeaders: [{ name: 'authorization', value: 'Bearer x' }],
  }),
  'hook: HTTPS at its usual port': get({ scheme: 'HTTPS', port: 443 }),
  'hook: a command that ends well': command(0, 'said'),
  'hook: a command that fails, with its words': command(3, 'out ', 'err\n'),
  'hook: a command that fails, with many words': command(1, 'x'.repeat(2_000)),
  'hook: HTTP without an address': get({}, []),
  'hook: HTTP to a port that is not there': get({ port: 'nope' }),
};

goldenTable(
  'stops, hooks and restarts are as recorded',
  'workers/hooks',
  deciding(ROWS, (row) => row),
);
