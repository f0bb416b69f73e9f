/** A container's environment: expansion of `$(X)`, field and resource references (pod lifecycle 5.11). */

import { own } from '../../../data/own.ts';
import { type ApiObject, isConfigMap, type ObjectResult } from '../../../kube/objects.ts';
import type { Container, EnvVar } from '../../../kube/podTable.ts';
import { ceilDiv, isZeroQuantity, scaledCeil } from '../../../kube/quantity.ts';
import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { EXEC_STRING_BYTES_MAX, ExecRoom, expand } from '../../../pod/execLimits.ts';
import { podLevel } from '../../../pod/resources/podLevel.ts';
import { kindWord, type ObjectRef, refKey } from '../../../pod/volumes/references.ts';
import { type Built, built, refused } from '../../../result.ts';
import { onePerFamily, podAddresses } from '../../../text/addresses.ts';
import { goQuote } from '../../../text/go/goQuote.ts';
import type { KeyValue } from '../../../wire/cri.ts';
import { type EnvFiles, fileKeyValue } from './envFile.ts';

export interface EnvInput {
  pod: Pod;
  container: Container;
  /** Known at this start; empty before the sandbox has an address. */
  podIPs: readonly string[];
  facts: Pick<NodeFacts, 'nodeName' | 'hostIPs' | 'ipv6First' | 'allocatable'>;
  /** Absent: the node belongs to no cluster. */
  cluster?: EnvSources;
  /** Files that `fileKeyRef`s of the container name. */
  files?: EnvFiles;
}
/** What a container's environment takes from the cluster. */
export interface EnvSources {
  services: ReadonlyMap<string, string>;
  /** Secrets and config maps that the container names, by `refKey`. */
  objects: ReadonlyMap<string, ObjectResult<ApiObject>>;
}

/**
 * Variables in the order of their last definition, those of services last. A standalone node knows no services; what
 * refers to config maps and secrets is refused there, so that a missing check elsewhere never starts a container with
 * half its environment. `room`: what it takes of that is counted there.
 */
export function containerEnv(input: EnvInput, room: ExecRoom = new ExecRoom()): Built<KeyValue[]> {
  const result = new Map<string, string>();
  const container = `container "${input.container.name}"`;
  /** Refused before the next is made from it: each may double what there is. */
  const put = (name: string, value: string): { ok: false; message: string } | null => {
    const before = result.get(name);
    const why = room.take(`${name}=${value}`, before === undefined ? undefined : `${name}=${before}`);
    if (why !== null) return refused(`${container}: environment variable "${shortened(name)}" ${why}`);
    set(result, name, value);
    return null;
  };
  const services = new Map(input.cluster?.services);
  for (const source of envFromSources(input)) {
    if (!source.ok) return source;
    for (const [name, value] of source.value) {
      const full = put(name, value);
      if (full !== null) return full;
    }
  }
  for (const variable of input.container.env ?? []) {
    const value = envValue(variable, input, (name) => result.get(name) ?? services.get(name));
    if (!value.ok) {
      const from = variable.valueFrom;
      const fromObject = input.cluster !== undefined && (from?.configMapKeyRef ?? from?.secretKeyRef) !== undefined;
      const exact = fromObject || from?.fileKeyRef !== undefined;
      return exact ? value : refused(`${container}: env "${variable.name}": ${value.message}`);
    }
    // An optional one that is missing leaves what was there (trap 47).
    if (value.value === null) continue;
    services.delete(variable.name);
    const full = put(variable.name, value.value);
    if (full !== null) return full;
  }
  for (const [name, value] of services) {
    const full = result.has(name) ? null : put(name, value);
    if (full !== null) return full;
  }
  return built([...result].map(([key, value]) => ({ key, value })));
}

/** By name, for what is expanded beside the environment. `given`: of device plugins; variables of the pod win. */
export function envVariables(input: EnvInput, given: readonly KeyValue[]): Built<ReadonlyMap<string, string>> {
  const env = containerEnv(input);
  return env.ok ? built(byName([...given, ...env.value])) : env;
}

export function byName(variables: readonly KeyValue[]): ReadonlyMap<string, string> {
  return new Map(variables.map(({ key, value }) => [key, value]));
}

const NAME_CHARS_SHOWN = 64;
function shortened(name: string): string {
  return name.length <= NAME_CHARS_SHOWN ? name : `${name.slice(0, NAME_CHARS_SHOWN)}...`;
}

function set(map: Map<string, string>, key: string, value: string): void {
  map.delete(key);
  map.set(key, value);
}

/** Keys that one container takes with `envFrom`: it may name a config map of 60,000 of them hundreds of times. */
const ENV_FROM_KEYS_MAX = 200_000;

/** Sources are read one after the other: a caller that stops at a refusal does not pay for the rest. */
function* envFromSources(input: EnvInput): Generator<Built<[string, string][]>> {
  let keys = 0;
  for (const from of input.container.envFrom ?? []) {
    const read = envFromSource(input, from);
    if (read.ok) keys += read.value.length;
    if (keys > ENV_FROM_KEYS_MAX) {
      yield refused(`container "${input.container.name}": envFrom names more than ${ENV_FROM_KEYS_MAX} keys in all`);
      return;
    }
    yield read;
  }
}

/** Every key is a variable: the API server checks prefixes (printable ASCII without `=`) and keys. */
function envFromSource(
  { container, pod, cluster }: EnvInput,
  { prefix, configMapRef, secretRef }: NonNullable<Container['envFrom']>[number],
): Built<[string, string][]> {
  const source = configMapRef ?? secretRef;
  if (cluster === undefined) {
    return refused(`container "${container.name}": envFrom needs config maps and secrets, which this node does not have`);
  }
  const kind = configMapRef === undefined ? 'secret' : 'configMap';
  const ref: ObjectRef = { kind, namespace: pod.metadata.namespace, name: source?.name ?? '' };
  const found = objectOf(ref, source?.optional === true, cluster);
  if (!found.ok) return found;
  const object = found.value;
  const variables: [string, string][] = [];
  if (object === null) return built(variables);
  for (const key of Object.keys(object.data).sort()) variables.push([`${prefix ?? ''}${key}`, textOf(key, object) ?? '']);
  return built(variables);
}

/** The object that a variable names. Null: the object is optional and not there. */
function objectOf(ref: ObjectRef, optional: boolean, cluster: EnvSources): Built<ApiObject | null> {
  const result = cluster.objects.get(refKey(ref));
  if (result === undefined) return refused(`object "${ref.namespace}"/"${ref.name}" not registered`);
  if (result.kind === 'found') return built(result.value);
  if (result.kind === 'failed') return refused(result.message);
  return optional ? built(null) : refused(result.message ?? `${kindWord(ref.kind)} "${ref.name}" not found`);
}

/** Null: there is no such key. Bytes of a Secret that are no UTF-8 become U+FFFD, as in the JSON that runtimes start a process from. */
function textOf(key: string, object: ApiObject): string | null {
  if (!Object.hasOwn(object.data, key)) return null;
  return isConfigMap(object) ? (object.data[key] ?? '') : new TextDecoder('utf-8', { ignoreBOM: true }).decode(object.data[key]);
}

/** A variable's value. Null: what it names is optional and not there. */
function envValue(variable: EnvVar, input: EnvInput, lookup: (name: string) => string | undefined): Built<string | null> {
  if (variable.value) {
    const value = expand(variable.value, lookup);
    return value === null ? refused(`longer than the ${EXEC_STRING_BYTES_MAX} bytes that Linux takes as one string`) : built(value);
  }
  const from = variable.valueFrom;
  if (from === undefined || from === null) return built('');
  if (from.fieldRef !== undefined) return fieldValue(from.fieldRef.fieldPath, input);
  if (from.resourceFieldRef !== undefined) return resourceValue(from.resourceFieldRef, input);
  if (from.fileKeyRef !== undefined) return fileKeyValue(from.fileKeyRef, input.files ?? new Map());
  const { cluster } = input;
  const keyRef = from.configMapKeyRef ?? from.secretKeyRef;
  // The kubelet leaves a variable empty whose source it does not know.
  if (keyRef === undefined) return built('');
  if (cluster !== undefined) {
    const kind = from.configMapKeyRef === undefined ? 'secret' : 'configMap';
    const ref: ObjectRef = { kind, namespace: input.pod.metadata.namespace, name: keyRef.name ?? '' };
    return keyValue({ ref, key: keyRef.key, optional: keyRef.optional === true }, cluster);
  }
  const source = from.configMapKeyRef === undefined ? 'secretKeyRef' : 'configMapKeyRef';
  return refused(`valueFrom.${source} is not supported by this node`);
}

function keyValue(o: { ref: ObjectRef; key: string; optional: boolean }, cluster: EnvSources): Built<string | null> {
  const object = objectOf(o.ref, o.optional, cluster);
  if (!object.ok) return object;
  if (object.value === null) return built(null);
  const value = textOf(o.key, object.value);
  if (value !== null || o.optional) return built(value);
  const kind = o.ref.kind === 'secret' ? 'Secret' : 'ConfigMap';
  return refused(`couldn't find key ${o.key} in ${kind} ${o.ref.namespace}/${o.ref.name}`);
}

/** `key="value"` lines, sorted by key: how a whole map reads. */
function mapText(map: Record<string, string> | undefined): string {
  return Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${goQuote(value)}`)
    .join('\n');
}

export function fieldValue(path: string, input: EnvInput): Built<string> {
  const { metadata, spec } = input.pod;
  const member = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (member !== null) {
    const map = member[1] === 'labels' ? metadata.labels : metadata.annotations;
    return built(own(map, member[2] ?? '') ?? '');
  }
  switch (path) {
    case 'metadata.name':
      return built(metadata.name);
    case 'metadata.namespace':
      return built(metadata.namespace);
    case 'metadata.uid':
      return built(metadata.uid);
    case 'metadata.labels':
      return built(mapText(metadata.labels));
    case 'metadata.annotations':
      return built(mapText(metadata.annotations));
    case 'spec.nodeName':
    case 'spec.host':
      return built(spec.nodeName ?? input.facts.nodeName);
    case 'spec.serviceAccountName':
      return built(spec.serviceAccountName ?? '');
    case 'status.hostIP':
      return hostAddresses(input, (ips) => ips[0] ?? '');
    case 'status.hostIPs':
      return hostAddresses(input, (ips) => ips.join(','));
    case 'status.podIP':
      return built(podAddresses(input.podIPs, input.facts)[0] ?? '');
    case 'status.podIPs':
      return built(podAddresses(input.podIPs, input.facts).join(','));
    default:
      return refused(`fieldRef.fieldPath "${path}" cannot be resolved`);
  }
}

/** A node in a cloud may have none yet: the container waits for it. */
function hostAddresses({ facts }: EnvInput, shown: (ips: readonly string[]) => string): Built<string> {
  const ips = onePerFamily(facts.hostIPs);
  return ips.length === 0 ? refused('host IP unknown: the node has no address yet') : built(shown(ips));
}

/** Limits that default to those of the pod as a whole, else to what the node can give. */
const DEFAULTED = new Set(['cpu', 'memory', 'ephemeral-storage']);

/** Rounded up: a limit of 1500m cpu with divisor 1 reads 2 (trap 50). */
export function resourceValue(
  ref: { containerName?: string; resource: string; divisor?: string | number },
  input: EnvInput,
): Built<string> {
  const { spec } = input.pod;
  const container = ref.containerName
    ? [...spec.containers, ...(spec.initContainers ?? [])].find((c) => c.name === ref.containerName)
    : input.container;
  if (container === undefined) return refused(`resourceFieldRef.containerName "${ref.containerName}" is not a container of this pod`);
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(ref.resource);
  if (match === null) return refused(`resourceFieldRef.resource "${ref.resource}" is not a resource a container can read`);
  const list = match[1] === 'limits' ? container.resources?.limits : container.resources?.requests;
  const name = match[2] ?? '';
  let amount = own(list, name);
  if (match[1] === 'limits' && DEFAULTED.has(name) && isZeroQuantity(amount))
    amount = podLevel(input.pod, 'limits', name) ?? own(input.facts.allocatable, name);
  const scale = name === 'cpu' ? -3 : 0;
  const divisor = isZeroQuantity(ref.divisor) ? '1' : ref.divisor;
  const by = scaledCeil(divisor, scale);
  if (by === undefined || by <= 0n) return refused(`resourceFieldRef.divisor "${String(ref.divisor)}" is not a positive quantity`);
  return built(String(ceilDiv(scaledCeil(amount, scale) ?? 0n, by)));
}
