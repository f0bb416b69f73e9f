/** What objects that pods name look like in the API, and where they are there. */
import { quantityToInteger } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { type KubeObject, kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import { CLAIMED } from '@actorlet/world/src/paths.ts';
import { DRIVER } from '@actorlet/world/src/plugins/machineDrivers.ts';
import { DRIVER_CLAIM, dataOf } from './objects.ts';
import { type SimObject, versionText } from './subjects.ts';

const NAMESPACE = 'default';
/** As the secrets of the simulation call the registry that its images come from. */
const REGISTRY = 'https://index.docker.io/v1/';
/** One in so many versions of a claim is not bound, beginning with the first. */
const UNBOUND_EVERY = 3;

export type Named = Pick<SimObject, 'kind' | 'name'>;

export function objectPath({ kind, name }: Named): string {
  if (kind === 'claim') return kubePath.claim(NAMESPACE, name);
  if (kind === 'resourceClaim') return kubePath.resourceClaim(NAMESPACE, name);
  return kind === 'configMap' ? kubePath.configMap(NAMESPACE, name) : kubePath.secret(NAMESPACE, name);
}

/** `bound` whatever its version: what pods wait for is there in the end. */
export function bodyOf(object: SimObject, bound = false): object {
  const { kind, name, immutable, rev } = object;
  const metadata = { name, namespace: NAMESPACE };
  const fixed = immutable ? { immutable } : {};
  const encoded = (data: Record<string, string>) => Object.fromEntries(Object.entries(data).map(([key, value]) => [key, btoa(value)]));
  switch (kind) {
    case 'configMap':
      return { metadata, data: dataOf(object), ...fixed };
    case 'secret':
      return { metadata, data: encoded(dataOf(object)), ...fixed };
    case 'pullSecret': {
      const auths = { [REGISTRY]: { auth: btoa(`puller:${versionText(object)}`) } };
      return {
        metadata,
        type: 'kubernetes.io/dockerconfigjson',
        data: encoded({ '.dockerconfigjson': JSON.stringify({ auths }) }),
        ...fixed,
      };
    }
    case 'resourceClaim':
      return { metadata, spec: {} };
    case 'claim': {
      const phase = bound || rev % UNBOUND_EVERY !== 0 ? 'Bound' : 'Pending';
      const storage = sizeOf(object);
      return {
        metadata,
        spec: { volumeName: volumeOf(name), resources: { requests: { storage } } },
        status: { phase, capacity: { storage } },
      };
    }
  }
}

/** Each version of the claim that a driver serves asks for more than the one before. */
function sizeOf({ name, rev }: SimObject): string {
  return name.startsWith(DRIVER_CLAIM) ? `${1 + rev}Gi` : '1Gi';
}
interface ClaimBody {
  spec: { resources: { requests: { storage: string } } };
  status: { phase: string; capacity: { storage: string } };
}
/** A claim that was there goes on with what it was given. A controller has made its volume larger by now, and never smaller. */
export function grownBody(body: KubeObject, before: KubeObject): KubeObject {
  const [wanted, was] = [body as unknown as ClaimBody, before as unknown as ClaimBody];
  const { phase } = wanted.status;
  const { storage } = wanted.spec.resources.requests;
  const grows = quantityToInteger(storage) > quantityToInteger(was.spec.resources.requests.storage);
  const steps = grows ? { allocatedResources: { storage }, allocatedResourceStatuses: { storage: 'NodeResizePending' } } : {};
  return { ...body, spec: grows ? wanted.spec : was.spec, status: { ...was.status, phase, ...steps } };
}
/** Name of the PersistentVolume of a claim. */
export function volumeOf(claim: string): string {
  return `pv-${claim}`;
}
/** Where the content of a claim lies on its node. */
export function claimedPath(claim: string): string {
  return `${CLAIMED}/${claim.slice(0, claim.indexOf('-'))}`;
}

/** What the driver calls the volume of a claim. */
export function handleOf(claim: string): string {
  return `vol-${claim}`;
}
function sourceOf(claim: string): object {
  if (claim.startsWith(DRIVER_CLAIM)) return { accessModes: ['ReadWriteMany'], csi: { driver: DRIVER, volumeHandle: handleOf(claim) } };
  const path = claimedPath(claim);
  return claim.startsWith('data0') ? { local: { path } } : { hostPath: { path, type: 'Directory' } };
}

/** What the cluster says of the driver of its nodes. */
export function makeDriverObject(kube: SimKube, { attachRequired }: { attachRequired: boolean }): void {
  const spec = { attachRequired, podInfoOnMount: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
  const made = kube.handle({ verb: 'POST', path: '/apis/storage.k8s.io/v1/csidrivers', body: { metadata: { name: DRIVER }, spec } });
  if (!made.ok) throw new Error(`the object of driver ${DRIVER} cannot be made: ${made.failure.message}`);
}

/** The volume of a claim belongs to the claim that is there now. */
export function bindVolume(kube: SimKube, claim: KubeObject): void {
  const { name, uid } = claim.metadata;
  const { resources } = claim.spec as { resources: { requests: { storage: string } } };
  const path = kubePath.persistentVolume(volumeOf(name));
  const body = {
    metadata: { name: volumeOf(name) },
    spec: { claimRef: { name, namespace: NAMESPACE, uid }, capacity: resources.requests, ...sourceOf(name) },
  };
  const there = kube.handle({ verb: 'GET', path }).ok;
  const done = kube.handle(there ? { verb: 'PUT', path, body } : { verb: 'POST', path: path.slice(0, path.lastIndexOf('/')), body });
  if (!done.ok) throw new Error(`the volume of claim ${name} cannot be written: ${done.failure.message}`);
}
