/** ResourceClaims of pods in the API server of a virtual node, and drivers beside it: in few words. */
import type { SimDraDriver } from '@actorlet/world/src/plugins/dra.ts';
import { decodeClaims } from '../../../src/machines/allocation/claims/checkpoint.ts';
import { claimsView, draDriversView } from '../../../src/machines/allocation/claims/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { must, NS } from '../cluster/clusterPods.ts';
import { pod as manifest, ROOT, type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';

export const CLAIMS = 'node/allocation/claims';
export const DRIVER = 'gpu.example.com';
export const SOCKET = `${ROOT}/plugins_registry/${DRIVER}-reg.sock`;
export const STATE = `${ROOT}/dra_manager_state`;
const GROUP = '/apis/resource.k8s.io/v1';

export const claimNode = (o: VirtualNodeOptions = {}) => virtualNode({ cluster: true, drivers: true, dra: true, ...o });

/** A driver that registers, as a plugin and as what prepares. */
export function driver(
  h: VirtualNode,
  o: Partial<SimDraDriver> & { socket?: string; versions?: string[]; endpoint?: string } = {},
): SimDraDriver {
  const { socket = SOCKET, versions = ['v1.DRAPlugin'], name = DRIVER, endpoint = '', ...rest } = o;
  h.drivers.add(socket, { name, type: 'DRAPlugin', versions, endpoint });
  h.fs.makeSocket(socket);
  return h.dra.add(socket, { name, ...rest });
}
export const registered = (h: VirtualNode) =>
  h.until('the driver is registered', () => h.tree.registry.read(draDriversView)?.value.size === 1);
export async function driven(h: VirtualNode): Promise<void> {
  driver(h);
  await registered(h);
}
export function unplug(h: VirtualNode, socket = SOCKET): void {
  h.dra.die(socket);
  h.drivers.sockets.delete(socket);
  void h.fs.unlink(socket);
}

/** A pod that is not bound yet. */
export function unbound(h: VirtualNode, name: string, o: Parameters<typeof manifest>[1] = {}): Pod {
  return must(h, { verb: 'POST', path: `${NS}/pods`, body: manifest(name, o) }) as unknown as Pod;
}
export function setStatus(h: VirtualNode, path: string, status: object): void {
  must(h, { verb: 'PATCH', path: `${path}/status`, patchType: 'merge', body: { status } });
}
export function bind(h: VirtualNode, name: string): void {
  must(h, { verb: 'PATCH', path: `${NS}/pods/${name}`, patchType: 'merge', body: { spec: { nodeName: 'n1' } } });
}
export const claimPath = (name: string) => `${GROUP}/namespaces/default/resourceclaims/${name}`;
/** A claim that is allocated and reserved. */
export function claim(
  h: VirtualNode,
  name: string,
  o: { pods?: readonly Pod[]; drivers?: string[]; owner?: Pod; allocated?: boolean } = {},
): string {
  const { pods = [], drivers = [DRIVER], owner, allocated = true } = o;
  const ownerReferences =
    owner === undefined ? [] : [{ uid: owner.metadata.uid, controller: true, kind: 'Pod', name: owner.metadata.name, apiVersion: 'v1' }];
  const path = `${GROUP}/namespaces/default/resourceclaims`;
  const { metadata } = must(h, { verb: 'POST', path, body: { metadata: { name, ownerReferences }, spec: {} } });
  setStatus(h, claimPath(name), {
    reservedFor: pods.map((p) => ({ resource: 'pods', name: p.metadata.name, uid: p.metadata.uid })),
    ...(allocated
      ? { allocation: { devices: { results: drivers.map((d) => ({ driver: d, pool: 'node', device: 'a', request: 'r' })) } } }
      : {}),
  });
  return metadata.uid;
}
export function reserve(h: VirtualNode, name: string, pods: readonly Pod[]): void {
  setStatus(h, claimPath(name), { reservedFor: pods.map((p) => ({ resource: 'pods', name: p.metadata.name, uid: p.metadata.uid })) });
}
export function slice(h: VirtualNode, name: string, o: { driver?: string; node?: string } = {}): void {
  const spec = { nodeName: o.node ?? 'n1', driver: o.driver ?? DRIVER };
  must(h, { verb: 'POST', path: `${GROUP}/resourceslices`, body: { metadata: { name }, spec } });
}
export const slices = (h: VirtualNode) => h.kube.store.list('resourceslices').map((s) => s.metadata.name);

/** Names a claim for the pod, and uses it in its container. */
export const using = (claimName: string, more: { request?: string } = {}) => ({
  container: { resources: { claims: [{ name: 'gpu', ...more }] } },
  spec: { resourceClaims: [{ name: 'gpu', resourceClaimName: claimName }] },
});
/** A pod with a claim of its own, bound. */
export function withClaim(h: VirtualNode, name: string, claimName = `${name}-gpu`): { pod: Pod; uid: string } {
  const pod = unbound(h, name, using(claimName));
  const uid = claim(h, claimName, { pods: [pod] });
  bind(h, name);
  return { pod, uid };
}

export async function onDisk(h: VirtualNode): Promise<string[]> {
  const text = new TextDecoder().decode(await h.fs.readFile(STATE, { bytesMax: 1 << 24 }));
  return [...decodeClaims(text).keys()];
}
/** '' where there is none yet. */
export function onDiskNow(h: VirtualNode): string[] {
  const text = h.fs.textOf(STATE);
  return text === undefined ? [] : [...decodeClaims(text).keys()];
}
export const known = (h: VirtualNode) => [...(h.tree.registry.read(claimsView)?.value ?? new Map()).keys()];
/** The state of a claim's chart, '' where there is none. */
export const chart = (h: VirtualNode, key: string): string => h.charts(CLAIMS, `${key}#`)[0] ?? '';
