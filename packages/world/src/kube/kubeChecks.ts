/** What the API server refuses to keep: objects that cannot be read as their kind (400), and those that make no sense (422). */
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import { KINDS } from '@actorlet/kubelet/machines/kube/read/kinds.ts';
import { readShape } from '@actorlet/kubelet/machines/kube/read/read.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { validatePod } from '@actorlet/kubelet/machines/pods/sources/validate.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { object } from '@actorlet/kubelet/machines/shape/shape.ts';
import { quoted } from '@actorlet/kubelet/machines/text/errorList.ts';
import { ApiFault } from './apiFault.ts';
import type { Resource } from './resource.ts';

/** Of a kind without a table: what all objects have. */
const ANY_OBJECT = KINDS.serviceaccounts?.shape ?? object({});

/** The object as it was given. @throws ApiFault 400 */
export function readable(r: Resource, given: unknown): Record<string, unknown> {
  if (!isRecord(given)) throw new ApiFault(400, 'BadRequest', 'the body is no object');
  const read = readShape(given, KINDS[r.name]?.shape ?? ANY_OBJECT);
  if (!read.ok)
    throw new ApiFault(400, 'BadRequest', `${r.kind} in version "${r.apiVersion}" cannot be handled as a ${r.kind}: ${read.problem}`);
  // A null in a list is an empty element; the rest stays as it was sent.
  return r.name === 'pods' ? { ...given, spec: (read.value as KubeObject).spec } : given;
}

/** What it says that it is. @throws ApiFault 400 */
export function checkKind(r: Resource, given: Readonly<Record<string, unknown>>): void {
  for (const [field, own] of [['kind', r.kind] as const, ['apiVersion', r.apiVersion] as const]) {
    const said = given[field];
    if (said !== undefined && said !== '' && said !== own)
      throw new ApiFault(400, 'BadRequest', `${field}: ${JSON.stringify(said)} does not match ${own}, which the URL names`);
  }
}

/** The name stands in paths. @throws ApiFault 422 */
export function checkName(r: Resource, name: string): void {
  if (name !== '.' && name !== '..' && !/[/%]/.test(name)) return;
  throw new ApiFault(422, 'Invalid', `${r.kind} ${quoted(name)} is invalid: metadata.name: may not be '.' or '..', nor contain '/' or '%'`);
}

/** Of a pod with its defaults. @throws ApiFault 422 */
export function checkPod(object: KubeObject): void {
  const problems = validatePod(object as unknown as Pod).list();
  if (problems.length > 0) throw new ApiFault(422, 'Invalid', `Pod ${quoted(object.metadata.name)} is invalid: ${problems.join('; ')}`);
}

const CHANGING = 'image, activeDeadlineSeconds, tolerations, terminationGracePeriodSeconds, schedulingGates';
/** What a subresource is there to change. */
const BY_SUBRESOURCE: Readonly<Record<string, string>> = {
  ephemeralcontainers: 'ephemeralContainers',
  resize: 'resources',
  binding: 'nodeName',
};

/** Most of what a pod is stays as it was made. Both with their defaults. @throws ApiFault 422 */
export function checkPodUpdate(before: KubeObject, next: KubeObject, sub: string): void {
  // They come to a pod that is there.
  checkPod(isRecord(next.spec) ? { ...next, spec: { ...next.spec, ephemeralContainers: [] } } : next);
  const free = new Set(CHANGING.split(', ').concat(BY_SUBRESOURCE[sub] ?? []));
  // A pod that is not let into the scheduler yet may say where it wants to go.
  if (isRecord(before.spec) && Array.isArray(before.spec.schedulingGates) && before.spec.schedulingGates.length > 0)
    for (const field of ['nodeSelector', 'affinity']) free.add(field);
  const fixedOf = (value: unknown): Record<string, unknown> =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).filter(([field]) => !free.has(field))) : {};
  const fixed = ({ spec }: KubeObject): Record<string, unknown> => {
    const own = fixedOf(spec);
    const each = (of: unknown): unknown => (Array.isArray(of) ? of.map(fixedOf) : undefined);
    return { ...own, containers: each(own.containers), initContainers: each(own.initContainers) };
  };
  if (sameData(fixed(before), fixed(next))) return;
  const why = `spec: Forbidden: pod updates may not change fields other than ${CHANGING}`;
  throw new ApiFault(422, 'Invalid', `Pod ${quoted(next.metadata.name)} is invalid: ${why}`);
}
