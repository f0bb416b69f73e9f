/** A container's environment: expansion of `$(X)`, field and resource references (pod lifecycle 5.11). */
import type { KeyValue } from '../../cri.ts';
import type { Container, EnvVar, Pod } from '../../k8s.ts';
import { ceilDiv, isZeroQuantity, scaledCeil } from '../quantity.ts';
import type { NodeFacts } from '../types.ts';
import { onePerFamily } from './addresses.ts';
import { type Built, built, refused } from './result.ts';

/**
 * Replaces `$(NAME)` by its value; an unknown name and an unclosed reference stay as written, `$$` is one `$`. What was
 * put in is not looked at again.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = '';
  let i = 0;
  while (i < text.length) {
    const c = text[i];
    const next = text[i + 1];
    if (c !== '$' || next === undefined) {
      out += c;
      i += 1;
    } else if (next === '$') {
      out += '$';
      i += 2;
    } else if (next === '(') {
      const end = text.indexOf(')', i + 2);
      if (end < 0) {
        out += '$(';
        i += 2;
      } else {
        const name = text.slice(i + 2, end);
        out += lookup(name) ?? `$(${name})`;
        i = end + 1;
      }
    } else {
      out += `$${next}`;
      i += 2;
    }
  }
  return out;
}

export interface EnvInput {
  pod: Pod;
  container: Container;
  /** Known at this start; empty before the sandbox has an address. */
  podIPs: readonly string[];
  facts: Pick<NodeFacts, 'nodeName' | 'hostIPs' | 'allocatable'>;
}

/**
 * Variables in the order of their last definition. A standalone node knows no services. References to config maps and
 * secrets are refused here too, so that a missing check elsewhere never starts a container with half its environment.
 */
export function containerEnv(input: EnvInput): Built<KeyValue[]> {
  const result = new Map<string, string>();
  if ((input.container.envFrom ?? []).length > 0) {
    return refused(`container "${input.container.name}": envFrom needs config maps and secrets, which this node does not have`);
  }
  for (const variable of input.container.env ?? []) {
    const value = envValue(variable, input, result);
    if (!value.ok) return refused(`container "${input.container.name}": env "${variable.name}": ${value.message}`);
    result.delete(variable.name);
    result.set(variable.name, value.value);
  }
  return built([...result].map(([key, value]) => ({ key, value })));
}

function envValue(variable: EnvVar, input: EnvInput, result: ReadonlyMap<string, string>): Built<string> {
  if (variable.value) return built(expand(variable.value, (name) => result.get(name)));
  const from = variable.valueFrom;
  if (from === undefined || from === null) return built('');
  if (from.fieldRef !== undefined) return fieldValue(from.fieldRef.fieldPath, input);
  if (from.resourceFieldRef !== undefined) return resourceValue(from.resourceFieldRef, input);
  const source = Object.keys(from)[0] ?? 'nothing';
  return refused(`valueFrom.${source} is not supported by this node`);
}

/** `key="value"` lines, sorted by key: how a whole map reads. */
function mapText(map: Record<string, string> | undefined): string {
  const quote = (text: string): string => JSON.stringify(text);
  return Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${quote(value)}`)
    .join('\n');
}

export function fieldValue(path: string, input: EnvInput): Built<string> {
  const { metadata, spec } = input.pod;
  const member = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (member !== null) {
    const map = member[1] === 'labels' ? metadata.labels : metadata.annotations;
    return built(map?.[member[2] ?? ''] ?? '');
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
      return built(input.facts.hostIPs[0] ?? '');
    case 'status.hostIPs':
      return built(onePerFamily(input.facts.hostIPs).join(','));
    case 'status.podIP':
      return built(input.podIPs[0] ?? '');
    case 'status.podIPs':
      return built(input.podIPs.join(','));
    default:
      return refused(`fieldRef.fieldPath "${path}" cannot be resolved`);
  }
}

/** Limits that default to what the node can give. */
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
  let amount = list?.[name];
  if (match[1] === 'limits' && DEFAULTED.has(name) && isZeroQuantity(amount)) amount = input.facts.allocatable[name];
  const scale = name === 'cpu' ? -3 : 0;
  const divisor = isZeroQuantity(ref.divisor) ? '1' : ref.divisor;
  const by = scaledCeil(divisor, scale);
  if (by === undefined || by <= 0n) return refused(`resourceFieldRef.divisor "${String(ref.divisor)}" is not a positive quantity`);
  return built(String(ceilDiv(scaledCeil(amount, scale) ?? 0n, by)));
}
