/**
 * How a status comes to be another (pod lifecycle 7.2): a whole one is set, what a probe found changes whether a container is
 * ready or started, and what is said of pods that went is forgotten. Each by whoever does it here.
 */
import { statusSpec } from '../../../../src/actors/pods/status/status.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { PodStatus } from '../../../../src/machines/kube/types.ts';
import type { ProbeLedger, ProbeResult, ProbeType } from '../../../../src/machines/pod/probes/probes.ts';
import type { PodRuntimeStatus } from '../../../../src/machines/pod/runtime/seen.ts';
import { podsView } from '../../../../src/machines/pods/manager/messages.ts';
import { generatePodStatus } from '../../../../src/machines/pods/status/generate.ts';
import { type StatusEvent, statusesView } from '../../../../src/machines/pods/status/messages.ts';
import { probesAddr } from '../../../../src/machines/services/probes/messages.ts';
import { probeVerdicts, withResult } from '../../../../src/machines/services/probes/state.ts';
import { run, views } from '../../../edge/harness.ts';
import { record, viewOfPods } from '../../../edge/metrics/samples.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { fakePorts } from '../../../supervision/fakePorts.ts';
import { box, container, FACTS, NOW_MS, observed, pod, rc, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const EXEC = { exec: { command: ['true'] } };
const READINESS: Partial<Container> = { readinessProbe: EXEC };
const BOTH: Partial<Container> = { readinessProbe: EXEC, startupProbe: EXEC };

interface Story {
  containers?: Container[];
  initContainers?: Container[];
  /** What the runtime holds. Default: `web` runs. */
  status?: PodRuntimeStatus;
  /** What is in the ledger of results before. */
  before: Record<string, Partial<Record<ProbeType, ProbeResult>>>;
}
/** What the API is told before and after a result of a probe: `same` when the ledger did not change. */
const found = (o: Story, type: ProbeType, result: ProbeResult, containerId = 'web-1') => {
  return () => {
    const { containers = [container('web', READINESS)], initContainers } = o;
    const p = pod({ containers, ...(initContainers === undefined ? {} : { initContainers }) });
    const status = o.status ?? observed([rc('web', 'running')]);
    const ledger: ProbeLedger = new Map(
      Object.entries(o.before).map(([id, r]) => [id, { uid: 'uid-1', container: id.split('-')[0] ?? '', ...r }]),
    );
    const said = (of: ProbeLedger) => {
      const { started, ready } = probeVerdicts(p, status, of);
      const told = generatePodStatus({
        pod: p,
        status,
        failures: new Map(),
        facts: FACTS,
        nowWallMs: NOW_MS,
        podIsTerminal: false,
        startedContainers: started,
        readyContainers: ready,
      });
      const lists = [...(told.initContainerStatuses ?? []), ...(told.containerStatuses ?? [])];
      return {
        ...Object.fromEntries(
          lists.map((c) => [c.name, `${c.ready ? 'ready' : 'not ready'}, ${c.started === true ? 'started' : 'not started'}`]),
        ),
        ...Object.fromEntries(
          (told.conditions ?? [])
            .filter((c) => ['Ready', 'ContainersReady', 'Initialized'].includes(c.type))
            .map((c) => [c.type, [c.status, c.reason, c.message].filter((t) => t !== undefined).join(': ')]),
        ),
      };
    };
    const after = withResult(ledger, { containerId, type, result });
    return { before: said(ledger), after: after === ledger ? 'same' : said(after) };
  };
};

// ---- the actor that keeps statuses ----

const AT = '2024-05-01T10:00:00Z';
const RUNNING: PodStatus = { phase: 'Running', startTime: AT };
type Said = Partial<Extract<StatusEvent, { type: 'status.set' }>>;
const set = (status: PodStatus, o: Said = {}): StatusEvent => ({
  type: 'status.set',
  pod: { uid: 'uid-1', name: 'p', namespace: 'ns' },
  life: 1,
  status,
  restartPolicy: 'Always',
  deleting: false,
  ...o,
});
const forget = (life: number, uid = 'uid-1'): StatusEvent => ({ type: 'status.forget', uid, life });
/** After each word: version, phase and whether it has finished, of each pod; and who was told. */
const kept =
  (cluster: boolean, ...words: StatusEvent[]) =>
  () => {
    const time = virtualTime();
    const registry = views();
    // Its probes are looked for with each status.
    const probed = pod({ containers: [container('web', READINESS)] });
    registry.set(podsView, viewOfPods([record({ ...probed, metadata: { ...probed.metadata, uid: 'uid-1' } })]));
    const told: string[] = [];
    registry.send = (to) => {
      told.push(to.path === probesAddr.path ? 'the probes' : 'the writer of the API');
      return 'delivered';
    };
    const actor = run(statusSpec({ cluster }), fakePorts({ clock: time.clock }), registry);
    const rows = words.map((word) => {
      told.length = 0;
      actor.send(word);
      const entries = [...(registry.read(statusesView)?.value ?? [])].map(
        ([uid, e]) => `${uid}, life ${e.life}: version ${e.version}, ${e.status.phase ?? 'no phase'}${e.finished ? ', finished' : ''}`,
      );
      return { entries, told: [...told] };
    });
    actor.abort();
    return rows;
  };

goldenTable('how a status comes to be another is as recorded', 'status/statusSetters', {
  '7.2 set: the first': kept(true, set(RUNNING)),
  '7.2 set: on a node without an API': kept(false, set(RUNNING)),
  '7.2 set: the same again': kept(true, set(RUNNING), set(RUNNING)),
  '7.2 set: the same again, the pod is deleted': kept(true, set(RUNNING), set(RUNNING, { deleting: true })),
  '7.2 set: the same again, nothing is left of it': kept(true, set({ phase: 'Failed' }), set({ phase: 'Failed' }, { finished: true })),
  '7.2 set: another': kept(true, set({ phase: 'Pending' }), set(RUNNING)),
  '7.2 set: refused, a phase that is final': kept(true, set({ phase: 'Failed' }), set(RUNNING)),
  '7.2 set: of a later life': kept(true, set({ phase: 'Failed' }), set({ phase: 'Pending' }, { life: 2 })),
  '7.2 forget: that life': kept(true, set(RUNNING), forget(1)),
  '7.2 forget: an earlier life': kept(true, set(RUNNING, { life: 2 }), forget(1)),
  '7.2 forget: a pod that nobody knows': kept(true, set(RUNNING), forget(1, 'uid-2')),

  '7.2 readiness: it becomes ready': found({ before: { 'web-1': { readiness: 'failure' } } }, 'readiness', 'success'),
  '7.2 readiness: it is ready no more': found({ before: { 'web-1': { readiness: 'success' } } }, 'readiness', 'failure'),
  '7.2 readiness: unchanged': found({ before: { 'web-1': { readiness: 'success' } } }, 'readiness', 'success'),
  '7.2 readiness: the pod is not known': found({ before: {} }, 'readiness', 'success'),
  '7.2 readiness: the container is not known': found({ before: { 'web-1': { readiness: 'failure' } } }, 'readiness', 'success', 'web-9'),
  '7.2 readiness: of one of two': found(
    {
      containers: [container('web', READINESS), container('api', READINESS)],
      status: observed([rc('web', 'running'), rc('api', 'running')]),
      before: { 'web-1': { readiness: 'failure' }, 'api-1': { readiness: 'failure' } },
    },
    'readiness',
    'success',
  ),
  '7.2 readiness: of a sidecar': found(
    {
      containers: [container('web')],
      initContainers: [sidecar('s', READINESS)],
      status: observed([rc('s', 'running'), rc('web', 'running')]),
      before: { 's-1': { readiness: 'success' } },
    },
    'readiness',
    'failure',
    's-1',
  ),
  '7.2 readiness: success, though it has not started': found(
    { containers: [container('web', BOTH)], before: { 'web-1': { startup: 'unknown', readiness: 'failure' } } },
    'readiness',
    'success',
  ),
  '7.2 readiness: the sandbox is not ready': found(
    { status: observed([rc('web', 'running')], [box({ ready: false })]), before: { 'web-1': { readiness: 'failure' } } },
    'readiness',
    'success',
  ),
  '7.2 readiness: the container has ended meanwhile': found(
    { status: observed([rc('web', 'exited')]), before: { 'web-1': { readiness: 'failure' } } },
    'readiness',
    'success',
  ),
  '7.2 startup: it has started': found(
    { containers: [container('web', BOTH)], before: { 'web-1': { startup: 'unknown', readiness: 'failure' } } },
    'startup',
    'success',
  ),
  '7.2 startup: it has started, and there is no readiness probe': found(
    { containers: [container('web', { startupProbe: EXEC })], before: { 'web-1': { startup: 'unknown' } } },
    'startup',
    'success',
  ),
  '7.2 startup: it failed': found(
    { containers: [container('web', BOTH)], before: { 'web-1': { startup: 'unknown', readiness: 'failure' } } },
    'startup',
    'failure',
  ),
  '7.2 startup: unchanged': found(
    { containers: [container('web', BOTH)], before: { 'web-1': { startup: 'success', readiness: 'failure' } } },
    'startup',
    'success',
  ),
  '7.2 liveness: says nothing of either': found(
    {
      containers: [container('web', { ...READINESS, livenessProbe: EXEC })],
      before: { 'web-1': { readiness: 'success', liveness: 'success' } },
    },
    'liveness',
    'failure',
  ),
});
