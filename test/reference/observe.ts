/** What one node agent tells of a node with pods of every fate: the API server's objects, and the agent's own pages. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import { NODE_NAME } from '../e2e/daemon.ts';
import { PODS } from './pods.ts';

/** From the creation of the pods to the look at them: some have failed four times by then. */
const LIVES_MS = 45_000;
/** From their deletion to the look at what was said of it. */
const DIES_MS = 15_000;
/** Pages whose text is compared as it is; `METRICS` by their families. */
const PAGES = ['/healthz?verbose', '/runningpods/', '/containerLogs/default/done/main', '/containerLogs/default/plain/none', '/nothing'];
const METRICS = ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes', '/metrics/slis'];

interface Named {
  metadata: { name: string };
  status: unknown;
}
interface Event {
  type: string;
  reason: string;
  message: string;
  source?: { component?: string };
  involvedObject: { kind: string; name: string; fieldPath?: string };
}
export interface Observed {
  node: unknown;
  configz: unknown;
  /** Status by name. */
  pods: Readonly<Record<string, unknown>>;
  /** A line each; without those of other components. */
  events: readonly string[];
  /** Code and text by path. */
  pages: Readonly<Record<string, { status: number; text: string }>>;
  metrics: Readonly<Record<string, string>>;
}

/** The agent runs already, and the node is Ready. */
export async function observe(cluster: Cluster): Promise<Observed> {
  await cluster.post('configmaps', { metadata: { name: 'settings' }, data: { value: 'one' } });
  for (const [name, spec] of Object.entries(PODS)) await cluster.create(name, spec);
  await sleep(LIVES_MS);
  const { items } = JSON.parse(await cluster.kubectl('get', 'pods', '-o', 'json')) as { items: Named[] };
  const { status } = JSON.parse(await cluster.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as Named;
  const page = async (path: string) => {
    const { status: code, body } = await cluster.plane.request('GET', `https://127.0.0.1:${cluster.port}${path}`, {
      ...{ as: cluster.plane.kubeletClient, verify: false },
    });
    return { status: code, text: typeof body === 'string' ? body : JSON.stringify(body) };
  };
  const all = async (paths: readonly string[]) =>
    Object.fromEntries(await Promise.all(paths.map(async (p) => [p, await page(p)] as const)));
  const [pages, metrics, configz] = [await all(PAGES), await all(METRICS), await page('/configz')];
  await cluster.kubectl('delete', 'pod', '--wait=false', ...Object.keys(PODS));
  await sleep(DIES_MS);
  return {
    node: status,
    configz: JSON.parse(configz.text),
    pods: Object.fromEntries(items.map((pod) => [pod.metadata.name, pod.status])),
    events: await eventLines(cluster),
    pages,
    metrics: Object.fromEntries(Object.entries(metrics).map(([path, { text }]) => [path, text])),
  };
}

async function eventLines(cluster: Cluster): Promise<string[]> {
  const { items } = JSON.parse(await cluster.kubectl('get', 'events', '-o', 'json')) as { items: Event[] };
  return items
    .filter((e) => e.source?.component === 'kubelet')
    .map(({ type, reason, message, involvedObject: { kind, name, fieldPath = '' } }) =>
      [kind, name, type, reason, `${fieldPath}: ${message}`].join(' '),
    );
}
