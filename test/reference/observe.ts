/** What one node agent tells of a node with pods of every fate: the API server's objects, and the agent's own pages. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { askPodResources } from '../edge/podResourcesClient.ts';
import { PODS } from './pods.ts';

/** From the creation of the pods to the look at them: some have failed four times by then. */
const LIVES_MS = 60_000;
/** From their deletion to the look at what was said of it. */
const DIES_MS = 15_000;
const METRICS = ['', '/cadvisor', '/resource', '/probes', '/slis'].map((page) => `/metrics${page}`);
const LOGS = '/containerLogs/default';
/** Pages that are compared as they are: objects by path, text by line. */
const PAGES = [
  ...['', '/ping', '/log', '/syncloop', '/watchdog', '/nothing', '?verbose'].map((page) => `/healthz${page}`),
  ...[
    '/',
    '/nothing',
    '/pods',
    '/pods/',
    '/runningpods/',
    '/configz',
    '/stats/summary',
    '/stats/summary?only_cpu_and_memory=true',
    '/stats',
    '/spec/',
  ],
  ...['done/main', 'plain/none', 'nothing/main', 'full/first', 'full/side', 'crash/main?previous=true', 'plain/main?previous=true'].map(
    (page) => `${LOGS}/${page}`,
  ),
  ...[
    'tailLines=0',
    'tailLines=-1',
    'tailLines=x',
    'limitBytes=3',
    'limitBytes=0',
    'sinceSeconds=0',
    'sinceSeconds=3600',
    'sinceTime=x',
    'timestamps=true',
    'stream=Stderr',
    'x=y',
  ].map((query) => `${LOGS}/done/main?${query}`),
  ...[`${LOGS}`, `${LOGS}/done`, '/containerLogs/none/done/main', `${LOGS}/absent/main`, `${LOGS}/two/one`],
  ...[
    '/logs/',
    '/logs/nothing',
    '/logs/../etc/passwd',
    '/logs/?query=x',
    '/flagz',
    '/statusz',
    '/debug/pprof/',
    '/debug/flags/v',
    '/exec',
    '/run/default/plain/main',
    '/attach/default/plain/main',
    '/checkpoint/default/plain/main',
    '/portForward/default/plain',
  ],
];

interface Named {
  metadata: { name: string };
}
interface Event {
  type: string;
  reason: string;
  message: string;
  count?: number;
  source?: { component?: string };
  involvedObject: { kind: string; name: string; fieldPath?: string };
}
export interface Page {
  status: number;
  type: string;
  text: string;
}
/** As it was told; nothing is left out. JSON. */
export interface Observed {
  /** Whole objects. */
  node: unknown;
  pods: readonly Named[];
  lease: unknown;
  /** Those of other components too. */
  events: readonly Event[];
  /** By path. */
  pages: Readonly<Record<string, Page>>;
  metrics: Readonly<Record<string, Page>>;
  /** Answers of the pod resources API by method. */
  resources: Readonly<Record<string, unknown>>;
}

/** The agent runs already, and the node is Ready. */
export async function observe(cluster: Cluster): Promise<Observed> {
  await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
  for (const [name, spec] of Object.entries(PODS)) await cluster.create(name, spec).catch((error: unknown) => console.error(String(error)));
  await sleep(LIVES_MS);
  const all = async (paths: readonly string[]) => {
    const found: Record<string, Page> = {};
    for (const path of paths) found[path] = await page(cluster, path);
    return found;
  };
  const metrics = await all(METRICS);
  const told = {
    metrics,
    pages: await all(PAGES),
    node: await object(cluster, 'node', NODE_NAME),
    lease: await object(cluster, 'lease', NODE_NAME, '-n', 'kube-node-lease').catch(String),
    pods: ((await object(cluster, 'pods')) as { items: Named[] }).items,
    resources: await resources(cluster),
  };
  await cluster.kubectl('delete', 'pod', '--wait=false', ...Object.keys(PODS));
  await sleep(DIES_MS);
  return { ...told, events: ((await object(cluster, 'events')) as { items: Event[] }).items };
}

async function object(cluster: Cluster, ...args: string[]): Promise<unknown> {
  return JSON.parse(await cluster.kubectl('get', ...args, '-o', 'json'));
}

/** As the API server asks for it. A path is sent as it is. */
function page({ plane, port }: Cluster, path: string): Promise<Page> {
  const { certFile, keyFile } = plane.kubeletClient;
  const options = { host: '127.0.0.1', port, path, cert: readFileSync(certFile), key: readFileSync(keyFile), rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = request({ ...options, agent: false, timeout: 20_000 });
    asked.once('timeout', () => asked.destroy(new Error(`GET ${path}: no answer in time`)));
    asked.once('error', (error) => resolve({ status: 0, type: '', text: String(error) }));
    asked.once('response', (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.once('error', reject);
      res.once('end', () =>
        resolve({ status: res.statusCode ?? 0, type: res.headers['content-type'] ?? '', text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    asked.end();
  });
}

async function resources({ daemon }: Cluster): Promise<Record<string, unknown>> {
  const socket = join(daemon.rootDir, 'pod-resources', 'kubelet.sock');
  const ask = (rpc: string, request = {}) => askPodResources(socket, rpc, request).catch((error: unknown) => String(error));
  return {
    List: await ask('List'),
    GetAllocatableResources: await ask('GetAllocatableResources'),
    Get: await ask('Get', { podName: 'guaranteed', podNamespace: 'default' }),
    'Get nothing': await ask('Get', { podName: 'nothing', podNamespace: 'default' }),
  };
}
