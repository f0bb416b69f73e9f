/** Probes (pod lifecycle 8.1 to 8.6): what is asked, how an answer counts, when a probe is due, what is said and counted. A row for each line. */
import { probeMetrics } from '../../../../src/actors/services/probes/metrics.ts';
import type { Container, Probe } from '../../../../src/machines/kube/podTable.ts';
import type { Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import {
  execCommand,
  grpcProbe,
  httpProbe,
  judgeGrpc,
  judgeHttp,
  redirectOf,
  resolvePort,
  tcpProbe,
  timeoutSeconds,
} from '../../../../src/machines/pod/probes/netRequests.ts';
import {
  PROBE_TYPES,
  type ProbeLedger,
  type ProbeOutcome,
  type ProbeTarget,
  type ProbeType,
} from '../../../../src/machines/pod/probes/probes.ts';
import { lastingContainers } from '../../../../src/machines/pod/resources/podLevel.ts';
import { probeEvent } from '../../../../src/machines/services/probes/said.ts';
import { firstDelayMs, nextTickMs, periodMs } from '../../../../src/machines/services/probes/schedule.ts';
import { initialResult, lookedAt, targetsOf, withResult } from '../../../../src/machines/services/probes/state.ts';
import { countOutcome, endsContainer, NO_RUN, type Run } from '../../../../src/machines/services/probes/threshold.ts';
import { facts, target } from '../../../probes/fixtures.ts';
import { container, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const exec: Probe = { exec: { command: ['true'] } };
const all = { startupProbe: exec, readinessProbe: exec, livenessProbe: exec };

// ---- thresholds --------------------------------------------------------------------------------------------------
const KINDS: Record<string, ProbeOutcome['kind']> = { s: 'success', w: 'warning', f: 'failure', e: 'error' };
/** The results of a row of outcomes: s(uccess), w(arning), f(ailure), e(rror). */
const rows = (outcomes: string, type: ProbeType, probe: Partial<Probe> = {}) => {
  let run: Run = NO_RUN;
  return [...outcomes].map((letter) => {
    const counted = countOutcome(run, { kind: KINDS[letter] ?? 'error', output: '' }, { probe: { ...exec, ...probe }, type });
    run = counted.run;
    return counted.result;
  });
};

// ---- the ledger ----------------------------------------------------------------------------------------------------
const look = (o: Parameters<typeof facts>[1] = {}, spec: Partial<Container> = all, before: ProbeLedger = new Map()) =>
  Object.fromEntries([...lookedAt(before, facts(spec, o))].map(([id, { uid: _, container: __, ...results }]) => [id, results]));
const known: ProbeLedger = new Map([
  ['web-1', { uid: 'uid-1', container: 'web', startup: 'success', readiness: 'success', liveness: 'success' }],
]);
const running = (o: Parameters<typeof facts>[1] = {}, ledger: ProbeLedger = new Map(), spec: Partial<Container> = all) => {
  const f = facts(spec, o);
  return targetsOf(lookedAt(ledger, f), f).map((t) => `${t.type}${t.started ? ', started' : ''}`);
};
const said = (ready: boolean, started: boolean): Pod => {
  const status: PodStatus = {
    containerStatuses: [
      {
        name: 'web',
        state: { running: { startedAt: '2024-05-01T10:00:00Z' } },
        lastState: {},
        ready,
        started,
        restartCount: 0,
        image: '',
        imageID: '',
        containerID: 'containerd://web-1',
      },
    ],
  };
  return pod({}, { status });
};
const initial = (p: Pod, containerId = 'web-1') =>
  Object.fromEntries(PROBE_TYPES.map((type) => [type, initialResult(type, { said: p.status, containerId })]));

// ---- requests ----------------------------------------------------------------------------------------------------
const PORTS = [{ name: 'web', containerPort: 8080 }];
const http = (httpGet: object, more: Partial<ProbeTarget> = {}) =>
  httpProbe(target({ httpGet: { port: 80, ...httpGet } }, { spec: { ports: PORTS }, ...more }));
const headers = (...httpHeaders: { name: string; value: string }[]) => {
  const asked = http({ httpHeaders });
  return asked.ok ? { headers: asked.value.headers, host: asked.value.host } : asked.message;
};
const tcp = (tcpSocket: object, more: Partial<ProbeTarget> = {}) =>
  tcpProbe(target({ tcpSocket: { port: 80, ...tcpSocket } }, { spec: { ports: PORTS }, ...more }));
const grpc = (o: object, more: Partial<ProbeTarget> = {}) => grpcProbe(target({ grpc: { port: 80, ...o } }, more));
const FIRST = 'http://10.1.2.3:8080/a';
const redirect = (status: number, location: string | null) =>
  redirectOf({ first: FIRST, present: { url: FIRST, headers: {}, host: 'shop.example' } }, { status, location });
const due = (o: { initial?: number; started?: number; now: number; phase?: number | null; known?: boolean }) =>
  firstDelayMs({
    probe: { ...exec, initialDelaySeconds: o.initial ?? 0, periodSeconds: 10 },
    startMs: o.started ?? 0,
    nowMs: o.now,
    phase: o.phase ?? null,
    known: o.known ?? true,
  });

/** What the attempts of one probe add to the metrics, and what of them is taken away with it. */
const counted = (...outcomes: ProbeOutcome['kind'][]) => {
  const lines: string[] = [];
  const labels = (of: Record<string, string> = {}) =>
    Object.entries(of)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => `${k}=${v}`)
      .join();
  const remove = (name: string) => (of: Record<string, string>) => void lines.push(`- ${name}{${labels(of)}}`);
  const metrics = probeMetrics({
    counter: (name) => ({ inc: (of, by = 1) => void lines.push(`+${by} ${name}{${labels(of)}}`), remove: remove(name) }),
    histogram: (name) => ({ observe: (value, of) => void lines.push(`${value} ${name}{${labels(of)}}`), remove: remove(name) }),
    gauge: () => ({ set: () => {}, remove: () => {} }),
    onCollect: () => {},
    render: async () => '',
  });
  const of = target(exec, { type: 'liveness' });
  for (const kind of outcomes) metrics.attempted(of, { kind, output: '' }, 250);
  if (outcomes.length > 0) return lines;
  metrics.attempted(of, { kind: 'success', output: '' }, 250);
  lines.length = 0;
  metrics.ended(of.pod.uid);
  return lines;
};

goldenTable('probes are as recorded', 'services/probes', {
  '8.1 who is probed': () =>
    lastingContainers(
      pod({
        containers: [container('b'), container('a')],
        initContainers: [container('i'), sidecar('s')],
        ephemeralContainers: [container('e')],
      }),
    ).map((c) => c.name),
  '8.1 initial results': () => initial(pod()),
  '8.1 initial results: the API says ready and started': () => initial(said(true, true)),
  '8.1 initial results: the API says started': () => initial(said(false, true)),
  '8.1 initial results: the API says it of another instance': () => initial(said(true, true), 'web-2'),
  '8.1 what ends a container': () =>
    PROBE_TYPES.flatMap((type) => ['success', 'failure', 'unknown'].map((result) => [type, result, endsContainer(type, result)])),
  '8.1 period': () => [{}, { periodSeconds: 0 }, { periodSeconds: 3 }].map((p) => periodMs({ ...exec, ...p })),
  '8.1 time-out': () => [{}, { timeoutSeconds: 0 }, { timeoutSeconds: 7 }].map((p) => timeoutSeconds({ probe: { ...exec, ...p } })),
  '8.1 first attempt: at once': () => due({ now: 0 }),
  '8.1 first attempt: after the initial delay': () => [0, 2_000, 5_000, 9_000].map((now) => due({ initial: 5, now })),
  '8.1 first attempt: a clock that was set back': () => due({ initial: 5, now: -3_600_000 }),
  '8.1 first attempt: ran before, at its phase': () => [0, 0.5, 0.99].map((phase) => due({ now: 60_000, phase })),
  '8.1 first attempt: ran before, nothing is known of it': () => due({ now: 60_000, phase: 0.5, known: false }),
  '8.1 next attempt': () => [nextTickMs(0, 1_000, 10_000), nextTickMs(0, 12_000, 10_000)],

  '8.2 phase: over': () => ['Failed', 'Succeeded'].map((phase) => running({ phase: phase as PodStatus['phase'] })),
  '8.2 status: none of the container': () => look({ running: false }),
  '8.2 status: a new instance': () => look({ id: 'web-2' }, all, known),
  '8.2 status: does not run any more': () => look({ running: false }, all, known),
  '8.2 status: as before': () => look({}, all, known),
  '8.2 deleted': () => look({ terminating: true }),
  '8.2 probing: not started': () => running(),
  '8.2 probing: started': () => running({}, known),
  '8.2 probing: no startup probe': () => running({}, new Map(), { readinessProbe: exec, livenessProbe: exec }),
  '8.2 probing: deleted': () => running({ terminating: true }, known),
  '8.2 result of an instance that is gone': () =>
    [...withResult(known, { containerId: 'web-0', type: 'readiness', result: 'failure' })].map(([id, r]) => [id, r.readiness]),
  '8.2 threshold: failures': () => rows('ffff', 'readiness'),
  '8.2 threshold: of one failure': () => rows('f', 'readiness', { failureThreshold: 1 }),
  '8.2 threshold: a success between failures': () => rows('ffsff', 'readiness'),
  '8.2 threshold: successes': () => rows('fffsss', 'readiness', { successThreshold: 2 }),
  '8.2 threshold: errors count for nothing': () => rows('ffeeef', 'readiness'),
  '8.2 threshold: warnings are successes': () => rows('fffw', 'readiness'),
  '8.2 threshold: after a failure that ends the container, anew': () => rows('ffffff', 'liveness'),
  '8.2 threshold: startup': () => rows('fffs', 'startup'),

  '8.3 port: number, name, number as text': () => [8080, 'web', '81'].map((p) => resolvePort(p, PORTS)),
  '8.3 port: none of these': () => ['nope', 0, 65_536, '99999', -1].map((p) => resolvePort(p, PORTS)),
  '8.3 HTTP: to the pod': () => http({}),
  '8.3 HTTP: scheme, host, path with a query': () => http({ scheme: 'HTTPS', host: 'h.example', path: 'a?b=c', port: 'web' }),
  '8.3 HTTP: to an IPv6 address': () => http({}, { podIP: 'fd00::5' }),
  '8.3 HTTP: no address yet': () => http({}, { podIP: '' }),
  '8.3 HTTP: a port that is not there': () => http({ port: 'nope' }),
  '8.3 headers: none given': () => headers(),
  '8.3 headers: in any letters': () => headers({ name: 'x-a', value: '1' }, { name: 'X-A', value: '2' }),
  '8.3 headers: another user agent, in any letters': () => headers({ name: 'user-agent', value: 'me' }),
  '8.3 headers: Accept, empty': () => headers({ name: 'accept', value: '' }),
  '8.3 headers: User-Agent, empty': () => headers({ name: 'User-Agent', value: '' }),
  '8.3 headers: Host': () => headers({ name: 'Host', value: 'shop.example' }),
  '8.3 redirect: a path': () => redirect(302, '/b'),
  '8.3 redirect: the same host, another port': () => redirect(307, 'https://10.1.2.3:8443/b'),
  '8.3 redirect: another host': () => redirect(302, 'http://other.test/b'),
  '8.3 redirect: without a location': () => redirect(302, null),
  '8.3 redirect: 304 is none': () => redirect(304, '/b'),
  '8.3 status': () => Object.fromEntries([199, 200, 204, 299, 300, 304, 399, 400, 404, 500].map((code) => [code, judgeHttp(code, 'body')])),
  '8.3 TCP: to the pod, to a host': () => [tcp({}), tcp({ host: 'h.example', port: 'web' })],
  '8.3 TCP: no address yet': () => tcp({}, { podIP: '' }),
  '8.3 TCP: a port that is not there': () => tcp({ port: 'nope' }),
  '8.3 gRPC: to the pod': () => [grpc({}), grpc({ service: 'db' })],
  '8.3 gRPC: no address yet': () => grpc({}, { podIP: '' }),
  '8.3 gRPC: what a service says': () => [0, 1, 2, 3, 9].map((status) => judgeGrpc({ ok: true, status }, { timeoutSeconds: 1 })),
  '8.3 gRPC: what fails': () => [4, 12, 14].map((code) => judgeGrpc({ ok: false, code, details: 'why' }, { timeoutSeconds: 3 })),
  '8.3 exec: expanded with what the definition spells out': () => {
    const wanted = execCommand(
      { env: [{ name: 'A', value: 'a' }, { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }, { name: 'C' }] },
      ['$(A)', '$(B)', '$(C)', '$(D)', '$$(A)', '$('],
    );
    return wanted.ok ? wanted.value : wanted.message;
  },

  '8.4 failure: of each type': () =>
    PROBE_TYPES.map((type) => probeEvent(type, { kind: 'failure', output: 'HTTP probe failed with statuscode: 500' })),
  '8.4 error': () => probeEvent('readiness', { kind: 'error', output: 'rpc error: no such container' }),
  '8.4 warning': () => probeEvent('liveness', { kind: 'warning', output: 'Probe terminated redirects' }),
  '8.4 success: nothing is said': () => probeEvent('liveness', { kind: 'success', output: 'ok' }),
  '8.4 failure: without words': () => probeEvent('startup', { kind: 'failure', output: '' }),
  '8.4 failure: of many words': () => {
    const said = probeEvent('startup', { kind: 'failure', output: 'x'.repeat(5_000) });
    return [said?.message.length, said?.message.slice(0, 25), said?.message.slice(-4)];
  },

  '8.6 metrics: a success': () => counted('success'),
  '8.6 metrics: a warning': () => counted('warning'),
  '8.6 metrics: a failure': () => counted('failure'),
  '8.6 metrics: an error': () => counted('error'),
  '8.6 metrics: the probe is gone': () => counted(),
});
