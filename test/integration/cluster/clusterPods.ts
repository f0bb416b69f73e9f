/** Pods of the API and the objects they name, in the API server of a virtual node: in few words. */
import type { NodeCondition } from '../../../src/machines/api/node/nodeObject.ts';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import type { CriRequest, CriResponse } from '../../../src/machines/wire/criCalls.ts';
import type { CriContainerStats } from '../../../src/machines/wire/criStats.ts';
import { pod as manifest, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

export const NS = '/api/v1/namespaces/default';
export const cluster = (o: VirtualNodeOptions = {}) => virtualNode({ cluster: true, ...o });

/** The answer of the API server, which must be a good one. */
export function must<T = { metadata: { uid: string } }>(h: VirtualNode, request: Parameters<VirtualNode['kube']['handle']>[0]): T {
  const answer = h.kube.handle(request);
  if (!answer.ok) throw new Error(answer.failure.message);
  return answer.body as T;
}
export const put = (h: VirtualNode, path: string, body: object) => must(h, { verb: 'POST', path, body });
export const post = (h: VirtualNode, path: string, body: object) => put(h, `${NS}/${path}`, body);
export function get(h: VirtualNode, path: string): Record<string, unknown> | undefined {
  const got = h.kube.handle({ verb: 'GET', path });
  return got.ok ? (got.body as Record<string, unknown>) : undefined;
}
export function patch(h: VirtualNode, path: string, body: object): void {
  must(h, { verb: 'PATCH', path: `${NS}/${path}`, patchType: 'merge', body });
}
export function drop(h: VirtualNode, path: string, gracePeriodSeconds?: number): void {
  const query = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: String(gracePeriodSeconds) };
  must(h, { verb: 'DELETE', path: `${NS}/${path}`, query });
}
export const base64 = (data: Record<string, string>) => Object.fromEntries(Object.entries(data).map(([k, v]) => [k, btoa(v)]));
export const secret = (h: VirtualNode, name: string, data: Record<string, string>, more: object = {}) =>
  post(h, 'secrets', { metadata: { name }, type: 'Opaque', data: base64(data), ...more });
export const configMap = (h: VirtualNode, name: string, data: Record<string, string>, more: object = {}) =>
  post(h, 'configmaps', { metadata: { name }, data, ...more });
export const service = (h: VirtualNode, name: string, clusterIP: string) =>
  post(h, 'services', { metadata: { name }, spec: { clusterIP, ports: [{ port: 443, protocol: 'TCP' }] } });

export function create(h: VirtualNode, name: string, o: Parameters<typeof manifest>[1] = {}): Pod {
  const pod = manifest(name, o) as Pod;
  return must<Pod>(h, { verb: 'POST', path: `${NS}/pods`, body: { ...pod, spec: { ...pod.spec, nodeName: 'n1' } } });
}
export async function createReady(h: VirtualNode, name: string, o: Parameters<typeof manifest>[1] = {}): Promise<Pod> {
  const pod = create(h, name, o);
  await h.until(`${name} is Ready`, () => isReady(h, name));
  return pod;
}
export function inApi(h: VirtualNode, name: string): Pod | undefined {
  const got = h.kube.handle({ verb: 'GET', path: `${NS}/pods/${name}` });
  return got.ok ? (got.body as Pod) : undefined;
}
export const isReady = (h: VirtualNode, name: string) =>
  inApi(h, name)?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
export const up = (h: VirtualNode, name: string) => h.until(`${name} runs`, () => inApi(h, name)?.status.phase === 'Running');
export const failed = (h: VirtualNode, name: string, withinMs?: number) =>
  h.until(`${name} has failed`, () => inApi(h, name)?.status.phase === 'Failed', withinMs);
export async function createUp(h: VirtualNode, name: string, o: Parameters<typeof manifest>[1] = {}): Promise<Pod> {
  const made = create(h, name, o);
  await up(h, name);
  return made;
}
/** Containers of a pod of the API that run. */
export function running(h: VirtualNode, name: string): number {
  const { sandboxes, containers } = h.runtime.dump();
  const mine = sandboxes.filter((b) => b.name === name).map((b) => b.id);
  return containers.filter((c) => mine.includes(c.sandboxId) && c.state === 'CONTAINER_RUNNING').length;
}
export function condition(h: VirtualNode, type: string): NodeCondition | undefined {
  const node = h.kube.store.list('nodes').find((o) => o.metadata.name === 'n1');
  return (node?.status as { conditions?: NodeCondition[] } | undefined)?.conditions?.find((c) => c.type === type);
}
export const waiting = (h: VirtualNode, name: string) => inApi(h, name)?.status.containerStatuses?.[0]?.state?.waiting;
export const events = (h: VirtualNode, reason: string) =>
  (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.reason === reason).map((e) => e.message);
export const created = (h: VirtualNode, name: string): ContainerConfig[] =>
  h.calls
    .filter((c) => c.method === 'CreateContainer')
    .map((c) => (c.req as CriRequest<'CreateContainer'>).config)
    .filter((c) => c.labels?.['io.kubernetes.pod.name'] === name);
/** The runtime lists ended containers too, as containerd does: of them it knows the writable layer alone. */
export function listEnded(h: VirtualNode, layerBytes: number): void {
  h.faults.answer = (method, value) => {
    if (method !== 'ListContainerStats') return value;
    const ended = h.runtime.dump().containers.filter((c) => c.state === 'CONTAINER_EXITED');
    const stats = ended.map(({ id, labels, annotations }): CriContainerStats => {
      const usedBytes = { value: String(layerBytes) };
      const writableLayer = { timestamp: '0', fsId: null, usedBytes, inodesUsed: null };
      return { attributes: { id, metadata: null, labels, annotations }, cpu: null, memory: null, writableLayer };
    });
    return { stats: [...(value as CriResponse<'ListContainerStats'>).stats, ...stats] };
  };
}
export const envOf = (config: ContainerConfig | undefined) =>
  Object.fromEntries((config?.envs ?? []).map(({ key, value }) => [key, value]));
export const dirOf = (p: Pod, plugin: string, volume: string) => `${ROOT}/pods/${p.metadata.uid}/volumes/kubernetes.io~${plugin}/${volume}`;
export const gone = (h: VirtualNode, p: Pod) => h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${p.metadata.uid}`), 400_000);
export async function dropped(h: VirtualNode, p: Pod): Promise<void> {
  drop(h, `pods/${p.metadata.name}`);
  await gone(h, p);
}
export async function file(h: VirtualNode, dir: string, name: string): Promise<string> {
  const data = await h.fs.readlink(`${dir}/..data`);
  return new TextDecoder().decode(await h.fs.readFile(`${dir}/${data}/${name}`, { bytesMax: 1 << 16 }));
}
/** Follows the disk in virtual time: its answers need turns of the loop. */
export async function read(h: VirtualNode, dir: string, name: string): Promise<string> {
  let text: string | undefined;
  file(h, dir, name).then(
    (t) => {
      text = t;
    },
    (e: unknown) => {
      text = `not read: ${String(e)}`;
    },
  );
  await h.until(`${name} is read`, () => text !== undefined);
  return text ?? '';
}
export const watches = (h: VirtualNode, resource: string, from = 0) =>
  h.kube.calls
    .slice(from)
    .filter((c) => c.request.path.endsWith(`/${resource}`) && c.request.query?.watch === 'true')
    .map((c) => c.request.query?.fieldSelector);
export const gets = (h: VirtualNode, path: string, from = 0) =>
  h.kube.calls.slice(from).filter((c) => c.request.verb === 'GET' && c.request.path === `${NS}/${path}`).length;
export const tokens = (h: VirtualNode) => h.kube.calls.filter((c) => c.request.path.endsWith('/token'));

export const ACCESS = {
  name: 'kube-api-access',
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};
export const MOUNT = { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true };
export const withToken = (more: object = {}) => ({
  container: { volumeMounts: [MOUNT] },
  spec: { serviceAccountName: 'default', volumes: [ACCESS], ...more },
});
export function account(h: VirtualNode): void {
  post(h, 'serviceaccounts', { metadata: { name: 'default' } });
  configMap(h, 'kube-root-ca.crt', { 'ca.crt': 'the CA' });
}
export const fromSecret = (name: string, key: string) => ({ name: 'PASSWORD', valueFrom: { secretKeyRef: { name, key } } });
