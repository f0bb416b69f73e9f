/** What a cluster measures of a node: `kubectl top` by way of a metrics API, Prometheus' scrapes, and profiles for whoever may have them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, askHttps } from '../../askHttps.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { type MetricsApi, parseExposition, startMetricsApi } from '../../e2e/lab/metricsApi.ts';
import type { KeyPair } from '../../e2e/lab/pki.ts';
import { sh, steady } from '../../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, LONG, PROBE_TIMEOUT_S, startCluster } from '../cluster.ts';

let cluster: Cluster;
let api: MetricsApi;
let token = '';

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.kubectl('create', 'serviceaccount', 'scraper');
  await cluster.kubectl('create', 'clusterrole', 'scrape', '--verb=get', '--resource=nodes/metrics,nodes/stats');
  await cluster.kubectl('create', 'clusterrolebinding', 'scrape', '--clusterrole=scrape', '--serviceaccount=default:scraper');
  const made = await cluster.plane.request('POST', `${DEFAULT_NAMESPACE}/serviceaccounts/scraper/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  });
  token = (made.body as { status: { token: string } }).status.token;
  api = await startMetricsApi(cluster.plane, { nodeName: NODE_NAME, scrape: async () => given(await ask('/metrics/resource')) });
  const probe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: PROBE_TIMEOUT_S };
  await cluster.create('busy', {
    containers: [
      sh('worker', 'while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.05; done'),
      steady('idle', { readinessProbe: probe }),
    ],
  });
  await cluster.ready('busy');
});
afterAll(async () => {
  await api?.stop();
  await cluster?.stop();
});

/** As the scraper by default. */
function ask(path: string, o: { cert?: KeyPair; bearer?: string; method?: string; body?: string } = {}): Promise<Answer> {
  const pair = o.cert === undefined ? {} : { cert: readFileSync(o.cert.certFile), key: readFileSync(o.cert.keyFile) };
  const headers = o.cert === undefined ? { authorization: `Bearer ${o.bearer ?? token}` } : {};
  const ca = readFileSync(join(cluster.daemon.dir, 'pki/kubelet.crt'));
  const at = { host: '127.0.0.1', servername: NODE_NAME, port: cluster.port, path, method: o.method ?? 'GET', timeout: 90_000 };
  return askHttps({ ...at, headers, ca, ...pair }, o.body);
}
function given({ status, body }: Answer): string {
  if (status !== 200) throw new Error(`${status} ${body}`);
  return body;
}

describe('kubectl top', () => {
  it('shows what pods, their containers and the node use, by two scrapes as metrics-server makes them', async () => {
    const both = ['default/busy/idle', 'default/busy/worker'];
    const first = await cluster.daemon.wait(
      'samples of both containers, and of no other',
      async () => {
        const scrape = await api.scrape();
        return scrape.node !== undefined && [...scrape.containers.keys()].sort().join() === both.join() && scrape;
      },
      { ...LONG, everyMs: 1_000 },
    );
    // Samples are the runtime's: a newer one is waited for, and another after that.
    const worker = 'default/busy/worker';
    const newer = async (than: number) => ((await api.scrape()).containers.get(worker)?.point.atMs ?? 0) > than + 1_000;
    const at = first.containers.get(worker)?.point.atMs ?? 0;
    await cluster.daemon.wait('a newer sample', () => newer(at), { ...LONG, everyMs: 2_000 });
    await cluster.daemon.wait(
      'the API server knows the metrics API',
      async () => /True/.test(await cluster.kubectl('get', 'apiservice', 'v1beta1.metrics.k8s.io')),
      LONG,
    );
    const line = /^busy +(\d+)m +(\d+)Mi/;
    await cluster.daemon.wait('the pod', async () => line.test(await cluster.kubectl('top', 'pod', 'busy', '--no-headers')), LONG);
    const containers = (await cluster.kubectl('top', 'pod', 'busy', '--containers', '--no-headers')).trim().split('\n').sort();
    expect(containers).toEqual([
      expect.stringMatching(/^busy +idle +\d+m +\d+Mi/),
      expect.stringMatching(/^busy +worker +[1-9]\d*m +\d+Mi/),
    ]);
    expect(await cluster.kubectl('top', 'node', '--no-headers')).toMatch(
      new RegExp(`^${NODE_NAME} +[1-9]\\d*m +\\d+% +[1-9]\\d*Mi +\\d+%`),
    );
  });

  it('of older metrics-servers finds all that they ask of /stats/summary', async () => {
    type Used = { cpu?: { time: string; usageNanoCores?: number }; memory?: { time: string; workingSetBytes?: number } };
    type Summary = { node: Used & { nodeName: string }; pods: { podRef: { name: string }; containers: (Used & { name: string })[] }[] };
    const summary = async () => JSON.parse(given(await ask('/stats/summary?only_cpu_and_memory=true'))) as Summary;
    const complete = (u: Used) =>
      u.cpu?.usageNanoCores !== undefined &&
      (u.memory?.workingSetBytes ?? 0) > 0 &&
      Number.isInteger(u.cpu.usageNanoCores) &&
      !Number.isNaN(Date.parse(u.cpu.time)) &&
      !Number.isNaN(Date.parse(u.memory?.time ?? ''));
    const busy = (s: Summary) => s.pods.find((p) => p.podRef.name === 'busy')?.containers ?? [];
    // A rate needs two looks.
    const found = await cluster.daemon.wait(
      'rates of everything',
      async () => {
        const s = await summary();
        return complete(s.node) && busy(s).length === 2 && busy(s).every(complete) && s;
      },
      { ...LONG, everyMs: 2_000 },
    );
    expect(found.node.nodeName).toBe(NODE_NAME);
    expect(Object.keys(found.node).sort()).toEqual(['cpu', 'memory', 'nodeName', 'startTime', 'swap', 'systemContainers']);
  });
});

describe('Prometheus', () => {
  const series = (text: string, name: string) => parseExposition(text).filter((s) => s.name === name);

  it('finds the families of a kubelet, each well-formed, and what this pod added to them', async () => {
    const text = given(await ask('/metrics'));
    const names = new Set(parseExposition(text).map((s) => s.name.replace(/_(bucket|sum|count)$/, '')));
    const expected = [
      ...['kubernetes_build_info', 'kubelet_node_name', 'kubelet_running_pods', 'kubelet_running_containers', 'kubelet_mirror_pods'],
      ...['kubelet_pod_start_duration_seconds', 'kubelet_pod_start_sli_duration_seconds', 'kubelet_pod_start_total_duration_seconds'],
      ...['kubelet_pod_worker_duration_seconds', 'kubelet_pod_worker_start_duration_seconds', 'kubelet_containers_per_pod_count'],
      ...['kubelet_pod_status_sync_duration_seconds', 'kubelet_started_pods_total', 'kubelet_started_containers_total'],
      ...['kubelet_run_podsandbox_duration_seconds', 'kubelet_runtime_operations_total', 'kubelet_runtime_operations_duration_seconds'],
      ...['kubelet_pleg_relist_duration_seconds', 'kubelet_pleg_relist_interval_seconds', 'kubelet_http_requests_total'],
      ...['rest_client_requests_total', 'rest_client_request_duration_seconds', 'process_cpu_seconds_total', 'process_start_time_seconds'],
    ];
    expect(expected.filter((name) => !names.has(name))).toEqual([]);
    // A name is described once.
    const described = [...text.matchAll(/^# TYPE (\S+)/gm)].map((m) => m[1]);
    expect(described.length).toBe(new Set(described).size);
    const started = series(text, 'kubelet_started_containers_total').find((s) => s.labels.container_type === 'container');
    expect(started?.value).toBeGreaterThanOrEqual(2);
    for (const name of ['kubelet_pod_start_sli_duration_seconds', 'kubelet_pod_start_total_duration_seconds']) {
      expect([name, series(text, `${name}_count`)[0]?.value]).toEqual([name, 1]);
    }
    const calls = series(text, 'rest_client_requests_total');
    expect(calls.some((s) => s.labels.method === 'PATCH' && s.labels.code === '200')).toBe(true);
    expect(new Set(calls.map((s) => s.labels.host))).toEqual(new Set([new URL(cluster.plane.url).host]));
  });

  it('finds health checks and probes on their pages, and each page well-formed', async () => {
    const slis = given(await ask('/metrics/slis'));
    expect(series(slis, 'kubernetes_healthcheck').map((s) => [s.labels.name, s.labels.type, s.value])).toEqual([
      ['ping', 'healthz', 1],
      ['log', 'healthz', 1],
      ['syncloop', 'healthz', 1],
      ['device-plugin', 'healthz', 1],
    ]);
    const probes = series(given(await ask('/metrics/probes')), 'prober_probe_total').map((s) => s.labels);
    expect(probes).toContainEqual(
      expect.objectContaining({ probe_type: 'Readiness', result: 'successful', container: 'idle', pod: 'busy' }),
    );
    for (const page of ['cadvisor', 'probes', 'resource'])
      expect(parseExposition(given(await ask(`/metrics/${page}`))).length).toBeGreaterThan(0);
  });
});

describe('a profile of the daemon', () => {
  const admin = () => cluster.plane.kubeletClient;

  it('is for nobody who may only read metrics, nor is the verbosity of its log', async () => {
    for (const path of ['/debug/pprof/', '/debug/pprof/profile?seconds=1', '/debug/pprof/heap?seconds=1']) {
      expect([path, (await ask(path)).status]).toEqual([path, 403]);
      expect([path, (await ask(path, { bearer: 'none' })).status]).toEqual([path, 401]);
    }
    expect((await ask('/debug/flags/v', { method: 'PUT', body: '9' })).status).toBe(403);
  });

  it('shows whoever may have it where time and memory go, while pods live on', async () => {
    const before = await cluster.ready('busy');
    const cpu = JSON.parse(given(await ask('/debug/pprof/profile?seconds=3', { cert: admin() }))) as { nodes: object[]; samples: number[] };
    expect([cpu.nodes.length, cpu.samples.length].every((n) => n > 1)).toBe(true);
    const heap = JSON.parse(given(await ask('/debug/pprof/heap?seconds=3', { cert: admin() }))) as { head: object };
    expect(heap.head).toBeDefined();
    expect(await cluster.nodePage('/debug/pprof/')).toContain('profile?seconds=');
    expect((await cluster.ready('busy')).status.containerStatuses).toEqual(before.status.containerStatuses);
  });

  it('is joined by more words in the log, where that was asked for', async () => {
    const set = await ask('/debug/flags/v', { cert: admin(), method: 'PUT', body: '4' });
    expect(set).toEqual({ status: 200, body: 'successfully set klog.logging.verbosity to 4\n' });
    // Somebody whom the API server does not know is a debug line.
    expect((await ask('/pods', { bearer: 'none' })).status).toBe(401);
    await cluster.daemon.wait('the line', () => /a request to the API was not authenticated/.test(cluster.daemon.log()), LONG);
  });
});

it('leaves the pod as it was: containers that are measured are not touched', async () => {
  expect((await cluster.ready('busy')).status.containerStatuses?.map((c) => c.restartCount)).toEqual([0, 0]);
  await cluster.kubectl('delete', 'pod', 'busy');
  await cluster.gone('busy');
});
