/**
 * What programs that run on nodes ask of the node agent. Each call comes to the same with actorlet as with the reference kubelet on the
 * same node: status, content type, fields, names of metrics and their labels. CSI sidecars and device plugins are asked the other way
 * round: `test/reference/csi` and `test/e2e/node/devices.test.ts`.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { request as plain } from 'node:http';
import { request } from 'node:https';
import { describe, expect, it } from 'vitest';
import { NODE_NAME } from '../e2e/daemon.ts';
import { REFERENCE_LOGS, type ReferenceKubelet } from '../e2e/lab/cluster/referenceKubelet.ts';
import { parseExposition } from '../e2e/lab/metricsApi.ts';
import { sh } from '../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, LONG, PROBE_TIMEOUT_S, STAY } from './cluster.ts';
import { besideReference } from './hooks.ts';

interface Answer {
  status: number;
  type: string;
  body: string;
}
type As = 'scraper' | 'reader' | 'stranger' | 'nobody';
const CALLS: readonly { who: string; as?: As; path: string; accept?: string; health?: true }[] = [
  { who: 'metrics-server', as: 'scraper', path: '/metrics/resource' },
  { who: 'metrics-server, older', as: 'scraper', path: '/stats/summary?only_cpu_and_memory=true' },
  { who: 'telegraf, Elastic agent, OpenTelemetry kubeletstats', as: 'scraper', path: '/stats/summary' },
  {
    who: 'Prometheus',
    as: 'scraper',
    path: '/metrics',
    accept: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
  },
  { who: 'Prometheus, cAdvisor', as: 'scraper', path: '/metrics/cadvisor' },
  { who: 'Prometheus, probes', as: 'scraper', path: '/metrics/probes' },
  { who: 'Prometheus, health checks', as: 'scraper', path: '/metrics/slis' },
  { who: 'fluent-bit, Datadog, OpenTelemetry', as: 'reader', path: '/pods' },
  { who: 'Datadog, pods of the runtime', as: 'reader', path: '/runningpods/' },
  { who: 'kube-bench, node feature discovery', as: 'reader', path: '/configz' },
  { who: 'node-problem-detector', path: '/healthz', health: true },
  { who: 'node-problem-detector, the loop', path: '/healthz/syncloop', health: true },
  { who: 'a check by a load balancer', as: 'reader', path: '/healthz' },
  { who: 'a check without rights', as: 'stranger', path: '/metrics' },
  { who: 'a check without a name', as: 'nobody', path: '/metrics' },
  { who: 'a check without a name, of health', as: 'nobody', path: '/healthz' },
  { who: 'a page that is none', as: 'reader', path: '/nowhere' },
  { who: 'cAdvisor of long ago', as: 'reader', path: '/spec/' },
];
/** Families that the rules, dashboards and agents of those programs name. */
const NAMED = [
  ...['kubelet_node_name', 'kubelet_running_pods', 'kubelet_running_containers', 'kubelet_volume_stats_used_bytes'],
  ...['kubelet_runtime_operations_total', 'kubelet_runtime_operations_duration_seconds', 'kubelet_pod_start_duration_seconds'],
  ...['kubelet_pod_worker_duration_seconds', 'kubelet_pleg_relist_duration_seconds', 'kubelet_pleg_relist_interval_seconds'],
  ...['kubelet_certificate_manager_client_ttl_seconds', 'kubelet_server_expiration_renew_errors', 'storage_operation_duration_seconds'],
  ...['volume_manager_total_volumes', 'rest_client_requests_total', 'process_resident_memory_bytes', 'process_cpu_seconds_total'],
  ...['container_cpu_usage_seconds_total', 'container_memory_working_set_bytes', 'container_memory_rss', 'container_memory_cache'],
  ...['container_network_receive_bytes_total', 'container_network_transmit_packets_dropped_total', 'container_fs_reads_bytes_total'],
  ...['container_fs_usage_bytes', 'container_cpu_cfs_throttled_periods_total', 'machine_cpu_cores', 'machine_memory_bytes'],
];

/** What is not the same yet: each with why, and what a program sees of it. */
const KNOWN: readonly [what: RegExp, why: string][] = [
  [/only_cpu_and_memory.*\.psi\./, 'pressure of the node stands in the whole summary alone'],
  [/\.cpu\.usageNanoCores: number$/, 'a rate needs two looks; the first comes with the first question'],
  [/\.pods\[\]\.(?:containers\[\]\.)?memory\.availableBytes: number$/, 'told of containers with a limit alone'],
  [/\.pods\[\]\.(?:containers\[\]\.)?io\.time: string$/, 'no pressure of disks is told of pods on this kernel'],
  [/with \.pods\[\]\.process_stats/, 'processes of a pod are counted'],
  [/\/pods: without .*\.managedFields\[\]/, 'nobody on the node needs who wrote a field'],
  [/\/pods: without .*\.lastProbeTime: null$/, 'empty fields are left out'],
  [/\/pods: with .*\.hostIPs?/, 'the status as it is written, not as it was received'],
  [/\/runningpods\/: with .*\.creationTimestamp: null$/, 'a field that says nothing'],
  [/\/metrics: without storage_operation_duration_seconds/, 'begins with the first operation, and pods were adopted'],
  [/\/configz: with/, 'fields with their default'],
  [
    /\/configz: without .*\.(?:evictionHard|crashLoopBackOff|imagePullCredentialsVerificationPolicy|imageServiceEndpoint|tls)/,
    'not shown yet',
  ],
];

let cluster: Cluster;
let reference: ReferenceKubelet;
const tokens = new Map<As, string>();

const whyNot = besideReference(async (made) => {
  ({ cluster, reference } = made);
  const rights: Partial<Record<As, string>> = {
    scraper: 'nodes/metrics,nodes/stats',
    reader: 'nodes/proxy,nodes/pods,nodes/healthz,nodes/configz',
  };
  for (const as of ['scraper', 'reader', 'stranger'] as const) {
    await cluster.kubectl('create', 'serviceaccount', as);
    const resources = rights[as];
    if (resources !== undefined) {
      await cluster.kubectl('create', 'clusterrole', as, '--verb=get', `--resource=${resources}`);
      await cluster.kubectl('create', 'clusterrolebinding', as, `--clusterrole=${as}`, `--serviceaccount=default:${as}`);
    }
    const made = await cluster.plane.request('POST', `${DEFAULT_NAMESPACE}/serviceaccounts/${as}/token`, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    });
    tokens.set(as, (made.body as { status: { token: string } }).status.token);
  }
});

function ask({ as = 'nobody', path, accept, health }: (typeof CALLS)[number], healthPort: number): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const token = tokens.get(as);
    const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...(accept === undefined ? {} : { accept }) };
    const options = { host: '127.0.0.1', path, headers, agent: false as const, timeout: 60_000, rejectUnauthorized: false };
    const req = (health === true ? plain : request)({ ...options, port: health === true ? healthPort : cluster.port }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      res.once('error', reject);
      res.once('end', () => resolve({ status: res.statusCode ?? 0, type: res.headers['content-type'] ?? '', body }));
    });
    req.once('timeout', () => req.destroy(new Error(`${path}: no answer`)));
    req.once('error', reject);
    req.end();
  });
}

/** Paths of fields, with what they hold. */
function fields(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => fields(item, `${at}[]`));
  if (typeof value !== 'object' || value === null) return [`${at}: ${value === null ? 'null' : typeof value}`];
  // Names that somebody chose are no fields.
  return Object.entries(value).flatMap(([key, item]) =>
    fields(item, /[/.]|^(?:memory|cpu|kind)$/.test(key) && /labels|annotations|capacity/.test(at) ? `${at}.*` : `${at}.${key}`),
  );
}
function shape({ type, body }: Answer): string[] {
  if (type.startsWith('application/json')) return [...new Set(fields(JSON.parse(body)))].sort();
  if (!type.includes('version=')) return [body.trim().slice(0, 200)];
  const families = Map.groupBy(parseExposition(body.replace(/^# EOF\n$/m, '')), (s) => s.name.replace(/_(?:bucket|sum|count)$/, ''));
  return [...families].map(([name, of]) => `${name} {${[...new Set(of.flatMap((s) => Object.keys(s.labels)))].sort().join()}}`).sort();
}
async function told(healthPort: number): Promise<Map<string, Answer>> {
  const all = new Map<string, Answer>();
  for (const call of CALLS) all.set(`${call.who}: ${call.path}`, await ask(call, healthPort));
  return all;
}
/** Figures and caches of the agent have the pod. */
async function seen(): Promise<void> {
  for (const [as, path, words] of [
    ['scraper', '/metrics/resource', 'pod="busy"'],
    ['reader', '/runningpods/', 'busy'],
  ] as const)
    await cluster.daemon.wait(path, async () => (await ask({ who: '', as, path }, 0)).body.includes(words), LONG);
}
/** Logs as collectors find them: names with what is of this run left out. */
const logs = () =>
  readdirSync(REFERENCE_LOGS.containerLogs)
    .map((name) => `${name} -> ${readlinkSync(`${REFERENCE_LOGS.containerLogs}/${name}`)}`)
    .map((line) => line.replace(/[0-9a-f]{64}/g, 'ID').replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID'))
    .sort();

describe.skipIf(whyNot !== undefined)('programs that run on nodes', () => {
  let theirs: Map<string, Answer>;
  let theirLogs: string[];

  it('ask the reference kubelet', async () => {
    const authentication = { x509: { clientCAFile: cluster.plane.ca.certFile }, anonymous: { enabled: false }, webhook: { enabled: true } };
    await reference.start({ config: { authentication, authorization: { mode: 'Webhook' } } });
    await cluster.daemon.wait('the account', () => cluster.plane.hasAccount(), LONG);
    const probe = { exec: { command: ['true'] }, periodSeconds: 2, timeoutSeconds: PROBE_TIMEOUT_S };
    await cluster.create('busy', {
      containers: [sh('main', `echo said; ${STAY}`, { readinessProbe: probe, volumeMounts: [{ name: 'v', mountPath: '/v' }] })],
      volumes: [{ name: 'v', emptyDir: {} }],
    });
    await cluster.ready('busy');
    await seen();
    theirs = await told(reference.healthzPort);
    theirLogs = logs();
    expect(theirs.size).toBe(CALLS.length);
    await reference.end('SIGTERM');
  });

  it('get the same answers of actorlet', async () => {
    await cluster.daemon.start();
    await cluster.ready('busy');
    await seen();
    const ours = await told(cluster.daemon.healthzPort);
    const differ: string[] = [];
    for (const [call, their] of theirs) {
      const our = ours.get(call);
      if (our === undefined) continue;
      if (our.status !== their.status || our.type !== their.type)
        differ.push(`${call}: ${our.status} ${our.type}, the kubelet ${their.status} ${their.type}`);
      else {
        const named = (line: string) =>
          !their.type.includes('version=') || call.includes('/resource') || NAMED.includes(line.split(' ')[0] ?? '');
        const [a, b] = [shape(our).filter(named), shape(their).filter(named)];
        differ.push(...b.filter((x) => !a.includes(x)).map((x) => `${call}: without ${x}`));
        if (!their.type.includes('version=')) differ.push(...a.filter((x) => !b.includes(x)).map((x) => `${call}: with ${x}`));
      }
    }
    expect(differ.filter((line) => !KNOWN.some(([what]) => what.test(line)))).toEqual([]);
  });

  it('find the same files of logs, of containers of either agent', async () => {
    expect(logs()).toEqual(theirLogs);
    await cluster.create('later', { containers: [sh('main', `echo said; ${STAY}`)] });
    await cluster.ready('later');
    const ours = logs().filter((line) => line.startsWith('later_'));
    expect(ours).toEqual(theirLogs.filter((line) => line.startsWith('busy_')).map((line) => line.replaceAll('busy', 'later')));
    expect(await cluster.kubectl('get', 'node', NODE_NAME)).toContain('Ready');
  });
});
