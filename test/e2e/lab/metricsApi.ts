/**
 * The resource metrics API (metrics.k8s.io/v1beta1) for `kubectl top`, made of a node's /metrics/resource in the way
 * metrics-server makes it: two scrapes, cumulative processor time over the time between their samples, and whoever lacks
 * a sample is left out. An API server is told of it by an APIService.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { ControlPlane } from './cluster/controlPlane.ts';

const GROUP = 'metrics.k8s.io';
const VERSION = `${GROUP}/v1beta1`;

interface Point {
  atMs: number;
  startMs: number;
  cpuSeconds: number;
  memoryBytes: number;
}
export interface Scrape {
  node: Point | undefined;
  /** By namespace, pod and container. */
  containers: Map<string, { namespace: string; pod: string; container: string; point: Point }>;
}

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
  atMs: number | undefined;
}
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/y;

/** Prometheus' text format, strictly: a line that is none is an error. */
export function parseExposition(text: string): Sample[] {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('# HELP ') && !line.startsWith('# TYPE '))
    .map((line) => {
      const m = LINE.exec(line);
      if (m === null) throw new Error(`not a sample: ${line}`);
      const [, name = '', inner = '', value = '', at] = m;
      const number = value === '+Inf' ? Number.POSITIVE_INFINITY : value === '-Inf' ? Number.NEGATIVE_INFINITY : Number(value);
      if (Number.isNaN(number) && value !== 'NaN') throw new Error(`not a number: ${line}`);
      return { name, labels: parseLabels(inner, line), value: number, atMs: at === undefined ? undefined : Number(at) };
    });
}

function parseLabels(inner: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < inner.length) {
    const m = LABEL.exec(inner);
    if (m === null) throw new Error(`not labels: ${line}`);
    const [, name = '', value = ''] = m;
    if (name in labels) throw new Error(`label ${name} twice: ${line}`);
    labels[name] = value.replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return labels;
}

/** What metrics-server keeps of a scrape; `nowMs` for samples without a time. */
export function readScrape(text: string, nowMs: number): Scrape {
  const node: Partial<Point> = {};
  const found = new Map<string, { namespace: string; pod: string; container: string; point: Partial<Point> }>();
  const take = (point: Partial<Point>, s: Sample, field: 'cpuSeconds' | 'memoryBytes') => {
    point[field] = s.value;
    // Of both the processor's time counts: the rate is made of it.
    if (field === 'cpuSeconds' || point.atMs === undefined) point.atMs = s.atMs ?? nowMs;
  };
  for (const s of parseExposition(text)) {
    if (s.name === 'node_cpu_usage_seconds_total') take(node, s, 'cpuSeconds');
    if (s.name === 'node_memory_working_set_bytes') take(node, s, 'memoryBytes');
    const { namespace = '', pod = '', container = '' } = s.labels;
    if (!s.name.startsWith('container_')) continue;
    const key = `${namespace}/${pod}/${container}`;
    const entry = found.get(key) ?? { namespace, pod, container, point: {} };
    found.set(key, entry);
    if (s.name === 'container_cpu_usage_seconds_total') take(entry.point, s, 'cpuSeconds');
    if (s.name === 'container_memory_working_set_bytes') take(entry.point, s, 'memoryBytes');
    if (s.name === 'container_start_time_seconds') entry.point.startMs = s.value * 1000;
  }
  const whole = (p: Partial<Point>): Point | undefined =>
    p.atMs !== undefined && (p.cpuSeconds ?? 0) > 0 && (p.memoryBytes ?? 0) > 0
      ? { atMs: p.atMs, startMs: p.startMs ?? 0, cpuSeconds: p.cpuSeconds ?? 0, memoryBytes: p.memoryBytes ?? 0 }
      : undefined;
  return {
    node: whole(node),
    containers: new Map(
      [...found].flatMap(([key, { point, ...names }]) => {
        const p = whole(point);
        return p === undefined ? [] : [[key, { ...names, point: p }] as const];
      }),
    ),
  };
}

/** Cores and bytes between two samples; undefined where they tell nothing. */
export function usage(before: Point | undefined, after: Point | undefined): { cores: number; bytes: number } | undefined {
  if (before === undefined || after === undefined) return undefined;
  if (after.atMs <= before.atMs || after.startMs !== before.startMs || after.cpuSeconds < before.cpuSeconds) return undefined;
  return { cores: (after.cpuSeconds - before.cpuSeconds) / ((after.atMs - before.atMs) / 1000), bytes: after.memoryBytes };
}

export interface MetricsApi {
  /** Scrapes once more; the last two count. */
  scrape(): Promise<Scrape>;
  stop(): Promise<void>;
}

export async function startMetricsApi(plane: ControlPlane, o: { nodeName: string; scrape(): Promise<string> }): Promise<MetricsApi> {
  const serving = plane.ca.issue('metrics-api', { name: 'metrics-api', hosts: ['localhost', '127.0.0.1'] });
  let scrapes: Scrape[] = [];
  const rendered = (cores: number, bytes: number) => ({ cpu: `${Math.ceil(cores * 1e9)}n`, memory: `${Math.ceil(bytes / 1024)}Ki` });
  const stamp = (point: Point) => ({ timestamp: new Date(point.atMs).toISOString().replace(/\.\d+Z$/, 'Z'), window: '10s' });
  const nodes = () => {
    const [before, after] = [scrapes.at(-2)?.node, scrapes.at(-1)?.node];
    const used = usage(before, after);
    if (used === undefined || after === undefined) return [];
    return [
      {
        kind: 'NodeMetrics',
        apiVersion: VERSION,
        metadata: { name: o.nodeName },
        ...stamp(after),
        usage: rendered(used.cores, used.bytes),
      },
    ];
  };
  const pods = () => {
    const made = new Map<string, { metadata: object; containers: object[] } & Record<string, unknown>>();
    for (const [key, c] of scrapes.at(-1)?.containers ?? []) {
      const used = usage(scrapes.at(-2)?.containers.get(key)?.point, c.point);
      if (used === undefined) continue;
      const id = `${c.namespace}/${c.pod}`;
      const metadata = { name: c.pod, namespace: c.namespace };
      const pod = made.get(id) ?? { kind: 'PodMetrics', apiVersion: VERSION, metadata, ...stamp(c.point), containers: [] };
      pod.containers.push({ name: c.container, usage: rendered(used.cores, used.bytes) });
      made.set(id, pod);
    }
    return made;
  };
  const answer = (path: string): object | undefined => {
    const parts = path.split('/').slice(4);
    const list = (kind: string, items: object[]) => ({ kind, apiVersion: VERSION, metadata: {}, items });
    if (path === `/apis/${VERSION}`) {
      const resource = (name: string, kind: string, namespaced: boolean) => ({
        name,
        singularName: '',
        namespaced,
        kind,
        verbs: ['get', 'list'],
      });
      return {
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: VERSION,
        resources: [resource('nodes', 'NodeMetrics', false), resource('pods', 'PodMetrics', true)],
      };
    }
    if (parts[0] === 'nodes') return parts[1] === undefined ? list('NodeMetricsList', nodes()) : nodes()[0];
    if (parts[0] === 'pods') return list('PodMetricsList', [...pods().values()]);
    if (parts[0] === 'namespaces' && parts[2] === 'pods') {
      const own = [...pods()].filter(([id]) => id.startsWith(`${parts[1]}/`));
      return parts[3] === undefined
        ? list(
            'PodMetricsList',
            own.map(([, p]) => p),
          )
        : pods().get(`${parts[1]}/${parts[3]}`);
    }
    return undefined;
  };
  const server = createServer({ cert: readFileSync(serving.certFile), key: readFileSync(serving.keyFile) }, (req, res) => {
    const body = answer(new URL(req.url ?? '/', 'https://x').pathname);
    const none = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    res.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? none));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the metrics API has no port');
  const made = async (path: string, body: object) => {
    const done = await plane.request('POST', path, { body });
    if (done.status !== 201) throw new Error(`POST ${path}: ${done.status} ${JSON.stringify(done.body)}`);
  };
  const service = { type: 'ExternalName', externalName: 'localhost' };
  await made('/api/v1/namespaces/kube-system/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'metrics' },
    spec: service,
  });
  await made('/apis/apiregistration.k8s.io/v1/apiservices', {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1beta1.${GROUP}` },
    spec: {
      group: GROUP,
      version: 'v1beta1',
      groupPriorityMinimum: 100,
      versionPriority: 100,
      insecureSkipTLSVerify: true,
      service: { namespace: 'kube-system', name: 'metrics', port: address.port },
    },
  });
  return {
    scrape: async () => {
      const scrape = readScrape(await o.scrape(), Date.now());
      // A sample that is no newer would tell nothing.
      scrapes = [...scrapes, scrape].slice(-2);
      return scrape;
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
