/**
 * Full create validation of a pod, as far as a node can judge: every violation with its path, none skipped because of
 * another. Runs after defaulting. Pure.
 */

import {
  dnsLabel,
  dnsSubdomain,
  ipAddress,
  KERNEL_HOSTNAME_CHARS_MAX,
  labelValue,
  qualifiedName,
  quantityValue,
} from '../../kube/names.ts';
import type { PodSpec } from '../../kube/podTable.ts';
import { compareQuantity } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { VOLUME_SOURCES } from '../../kube/volumeTable.ts';
import {
  DNS_POLICIES,
  OPERATING_SYSTEMS,
  PREEMPTION_POLICIES,
  RESTART_POLICIES,
  SELECTOR_VALUES,
  TAINT_EFFECTS,
  TOLERATION_OPERATORS,
} from '../../kube/words.ts';
import { beyondBounds } from '../../pod/bounds.ts';
import { containersTotal, isPodLevel } from '../../pod/resources/podLevel.ts';
import { isScratch, kindOfField } from '../../pod/volumes/kinds.ts';
import { isRecord } from '../../shape/conform.ts';
import { ErrorList, quoted } from '../../text/errorList.ts';
import { type ContainerScope, validateContainer } from './validation/container.ts';
import { Problems } from './validation/problems.ts';
import { validatePodSecurity } from './validation/security.ts';

const INT32_MAX = 2_147_483_647;
/** What the API server gives a pod that says nothing. */
const DEFAULT_GRACE_SECONDS = 30;
/** All keys and values of the annotations together. */
const ANNOTATIONS_BYTES_MAX = 256 * 1024;
const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCHES_CHARS_MAX = 2048;

function validateMetadata(p: Problems, pod: Pod): void {
  const m = pod.metadata;
  p.check('metadata.name', dnsSubdomain(m.name));
  p.check('metadata.namespace', dnsLabel(m.namespace));
  // The UID names directories, cgroups and log paths.
  if (!/^[A-Za-z0-9][-A-Za-z0-9._]{0,127}$/.test(m.uid) || m.uid.includes('..')) {
    p.add('metadata.uid', `${quoted(m.uid)} must be letters, digits, '-', '_' and '.', at most 128 characters`);
  }
  for (const [key, value] of Object.entries(m.labels ?? {})) {
    p.check(`metadata.labels[${key}]`, qualifiedName(key));
    p.check(`metadata.labels[${key}]`, labelValue(value));
  }
  let size = 0;
  for (const [key, value] of Object.entries(m.annotations ?? {})) {
    p.check(`metadata.annotations[${key}]`, qualifiedName(key.toLowerCase()));
    size += key.length + value.length;
  }
  if (size > ANNOTATIONS_BYTES_MAX) p.add('metadata.annotations', `must be at most ${ANNOTATIONS_BYTES_MAX} bytes together`);
  p.range('metadata.deletionGracePeriodSeconds', m.deletionGracePeriodSeconds, { min: 0 });
}

function validatePodResources(p: Problems, pod: Pod): void {
  const { requests = {}, limits = {} } = pod.spec.resources ?? {};
  const at = 'spec.resources';
  for (const [kind, list] of Object.entries({ requests, limits })) {
    for (const [name, q] of Object.entries(list)) {
      const value = quantityValue(q);
      if (value === null) p.add(`${at}.${kind}.${name}`, `${quoted(q)} is not a quantity such as 500m or 1Gi`);
      else if (value < 0) p.add(`${at}.${kind}.${name}`, 'must not be negative');
      if (!isPodLevel(name)) p.add(`${at}.${kind}.${name}`, 'a pod as a whole has cpu, memory and hugepages-* only');
    }
  }
  for (const [name, q] of Object.entries(requests)) {
    if (!isPodLevel(name) || quantityValue(q) === null) continue;
    const limit = limits[name];
    if (limit !== undefined && quantityValue(limit) !== null && compareQuantity(q, limit) > 0)
      p.add(`${at}.requests.${name}`, `${q} must be at most the limit ${limit}`);
    const containers = containersTotal(pod, 'requests', name);
    if (containers !== undefined && compareQuantity(containers, q) > 0)
      p.add(`${at}.requests.${name}`, `${q} must be at least what the containers ask for together, ${containers}`);
  }
  for (const [name, limit] of Object.entries(limits)) {
    if (!isPodLevel(name) || quantityValue(limit) === null) continue;
    for (const c of [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]) {
      const own = c.resources?.limits?.[name];
      if (own !== undefined && quantityValue(own) !== null && compareQuantity(own, limit) > 0)
        p.add(`${at}.limits.${name}`, `${limit} must be at least the limit of container ${c.name}, ${own}`);
    }
  }
}

function validateVolumes(p: Problems, spec: PodSpec): Set<string> {
  const names = new Set<string>();
  spec.volumes?.forEach((v, i) => {
    const at = `spec.volumes[${i}]`;
    p.check(`${at}.name`, dnsLabel(v.name ?? ''));
    if (v.name) p.unique(`${at}.name`, v.name, names);
    const sources = Object.keys(v).filter((k) => VOLUME_SOURCES.includes(k));
    if (sources.length > 1) p.add(at, `must have one source only, not ${sources.join(' and ')}`);
    for (const [kind, content] of Object.entries(v)) {
      const problems = isRecord(content) ? kindOfField(kind)?.problems?.(content) : undefined;
      for (const { field, what } of problems ?? []) p.add(`${at}.${kind}.${field}`, what);
    }
  });
  return names;
}

function validateDns(p: Problems, spec: PodSpec): void {
  p.oneOf('spec.dnsPolicy', spec.dnsPolicy, DNS_POLICIES);
  const dns = spec.dnsConfig;
  const servers = dns?.nameservers ?? [];
  if (spec.dnsPolicy === 'None' && servers.length === 0)
    p.add('spec.dnsConfig.nameservers', 'at least one is required when dnsPolicy is None');
  if (servers.length > NAMESERVERS_MAX) p.add('spec.dnsConfig.nameservers', `must be at most ${NAMESERVERS_MAX}`);
  servers.forEach((ip, i) => {
    p.check(`spec.dnsConfig.nameservers[${i}]`, ipAddress(ip));
  });
  const searches = dns?.searches ?? [];
  if (searches.length > SEARCHES_MAX) p.add('spec.dnsConfig.searches', `must be at most ${SEARCHES_MAX}`);
  if (searches.join(' ').length > SEARCHES_CHARS_MAX)
    p.add('spec.dnsConfig.searches', `must be at most ${SEARCHES_CHARS_MAX} characters together`);
  searches.forEach((s, i) => {
    // A trailing dot, the lone dot and underscores are allowed in search domains.
    if (s !== '.') p.check(`spec.dnsConfig.searches[${i}]`, dnsSubdomain(s.replace(/\.$/, '').replaceAll('_', 'x')));
  });
  dns?.options?.forEach((o, i) => {
    p.required(`spec.dnsConfig.options[${i}].name`, o.name);
  });
}

function validateTolerations(p: Problems, spec: PodSpec): void {
  spec.tolerations?.forEach((t, i) => {
    const at = `spec.tolerations[${i}]`;
    if (t.key) p.check(`${at}.key`, qualifiedName(t.key));
    if (!t.key && t.operator !== 'Exists') p.add(`${at}.operator`, 'must be Exists when key is empty');
    if (t.operator) p.oneOf(`${at}.operator`, t.operator, TOLERATION_OPERATORS);
    if (t.operator === 'Exists' && t.value) p.add(`${at}.value`, 'must be empty when operator is Exists');
    if (t.operator !== 'Exists' && t.value) p.check(`${at}.value`, labelValue(t.value));
    if (t.effect) p.oneOf(`${at}.effect`, t.effect, TAINT_EFFECTS);
    if (t.tolerationSeconds !== undefined && t.effect !== 'NoExecute')
      p.add(`${at}.effect`, 'must be NoExecute when tolerationSeconds is set');
  });
}

function validateHostnameOverride(p: Problems, { hostnameOverride: name, hostNetwork, setHostnameAsFQDN }: PodSpec): void {
  if (name === undefined) return;
  const at = 'spec.hostnameOverride';
  p.check(at, dnsSubdomain(name));
  if (name.length > KERNEL_HOSTNAME_CHARS_MAX) p.add(at, `must be at most ${KERNEL_HOSTNAME_CHARS_MAX} characters`);
  if (hostNetwork === true) p.add(at, 'must not be set with hostNetwork: true');
  if (setHostnameAsFQDN === true) p.add(at, 'must not be set with setHostnameAsFQDN: true');
}

function validateNaming(p: Problems, spec: PodSpec): void {
  if (spec.hostname) p.check('spec.hostname', dnsLabel(spec.hostname));
  if (spec.subdomain) p.check('spec.subdomain', dnsLabel(spec.subdomain));
  validateHostnameOverride(p, spec);
  if (spec.serviceAccountName) p.check('spec.serviceAccountName', dnsSubdomain(spec.serviceAccountName));
  if (spec.priorityClassName) p.check('spec.priorityClassName', dnsSubdomain(spec.priorityClassName));
  if (spec.runtimeClassName) p.check('spec.runtimeClassName', dnsSubdomain(spec.runtimeClassName));
  spec.hostAliases?.forEach((a, i) => {
    p.check(`spec.hostAliases[${i}].ip`, ipAddress(a.ip ?? ''));
    a.hostnames?.forEach((h, j) => {
      p.check(`spec.hostAliases[${i}].hostnames[${j}]`, dnsSubdomain(h));
    });
  });
  spec.imagePullSecrets?.forEach((s, i) => {
    p.required(`spec.imagePullSecrets[${i}].name`, s.name);
  });
  spec.readinessGates?.forEach((g, i) => {
    p.check(`spec.readinessGates[${i}].conditionType`, qualifiedName(g.conditionType ?? ''));
  });
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) {
    p.check(`spec.nodeSelector[${key}]`, qualifiedName(key));
    p.check(`spec.nodeSelector[${key}]`, labelValue(value));
  }
  validateNodeAffinity(p, spec);
}

const NODE_FIELD = 'metadata.name';

function validateNodeAffinity(p: Problems, spec: PodSpec): void {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined || required === null) return;
  const root = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  if ((required.nodeSelectorTerms ?? []).length === 0) p.add(root, 'must have at least one term');
  required.nodeSelectorTerms?.forEach((term, i) => {
    term.matchExpressions?.forEach((r, j) => {
      const at = `${root}[${i}].matchExpressions[${j}]`;
      p.check(`${at}.key`, qualifiedName(r.key ?? ''));
      validateRequirement(p, at, { ...r, operators: Object.keys(SELECTOR_VALUES) });
    });
    term.matchFields?.forEach((r, j) => {
      const at = `${root}[${i}].matchFields[${j}]`;
      p.oneOf(`${at}.key`, r.key ?? '', [NODE_FIELD]);
      validateRequirement(p, at, { ...r, operators: ['In', 'NotIn'] });
      if (r.values?.length !== 1) p.add(`${at}.values`, 'must have exactly one value');
    });
  });
}

function validateRequirement(p: Problems, at: string, r: { operator: string; values?: string[]; operators: readonly string[] }): void {
  p.oneOf(`${at}.operator`, r.operator ?? '', r.operators);
  const count = r.values?.length ?? 0;
  const takes = SELECTOR_VALUES[r.operator as keyof typeof SELECTOR_VALUES];
  if (takes === 'some' && count === 0) p.add(`${at}.values`, `must have a value where operator is ${r.operator}`);
  if (takes === 'none' && count > 0) p.add(`${at}.values`, `must be empty where operator is ${r.operator}`);
  if (takes === 'number' && (count !== 1 || !/^[+-]?\d+$/.test(r.values?.[0] ?? '')))
    p.add(`${at}.values`, `must be exactly one integer where operator is ${r.operator}`);
}

function validateContainers(p: Problems, spec: PodSpec, volumes: ReadonlySet<string>): void {
  const names = new Set<string>();
  const hostPorts = new Set<string>();
  const scratch = new Set((spec.volumes ?? []).flatMap((v) => (isScratch(v) ? [v.name] : [])));
  const scope = (kind: ContainerScope['kind']): ContainerScope => ({
    kind,
    hostNetwork: spec.hostNetwork === true,
    volumes,
    scratch,
    names,
    hostPorts,
    graceSeconds: spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS,
    os: spec.os?.name ?? '',
  });
  if (spec.containers.length === 0) p.add('spec.containers', 'at least one container is required');
  spec.containers.forEach((container, i) => {
    validateContainer(p, `spec.containers[${i}]`, { container, scope: scope('containers') });
  });
  spec.initContainers?.forEach((container, i) => {
    validateContainer(p, `spec.initContainers[${i}]`, { container, scope: scope('initContainers') });
  });
  if ((spec.ephemeralContainers ?? []).length > 0) p.add('spec.ephemeralContainers', 'cannot be part of a new pod');
}

/** What is wrong with the pod, each as `path: what`; empty when nothing is. */
export function validatePod(pod: Pod): ErrorList {
  // What is out of bounds is not looked at further: the checks below compare parts of a pod with each other.
  const beyond = new ErrorList();
  for (const what of beyondBounds(pod)) beyond.add(what);
  if (beyond.count > 0) return beyond;
  const p = new Problems();
  const { spec } = pod;
  validateMetadata(p, pod);
  const volumes = validateVolumes(p, spec);
  validateContainers(p, spec, volumes);
  validatePodResources(p, pod);
  p.oneOf('spec.restartPolicy', spec.restartPolicy, RESTART_POLICIES);
  p.range('spec.terminationGracePeriodSeconds', spec.terminationGracePeriodSeconds, { min: 0 });
  p.range('spec.activeDeadlineSeconds', spec.activeDeadlineSeconds, { min: 1, max: INT32_MAX });
  p.range('spec.priority', spec.priority, { min: -INT32_MAX - 1, max: INT32_MAX });
  if (spec.preemptionPolicy) p.oneOf('spec.preemptionPolicy', spec.preemptionPolicy, PREEMPTION_POLICIES);
  if (spec.os !== undefined) p.oneOf('spec.os.name', spec.os.name ?? '', OPERATING_SYSTEMS);
  for (const [name, q] of Object.entries(spec.overhead ?? {})) {
    const value = quantityValue(q);
    if (value === null || value < 0) p.add(`spec.overhead.${name}`, `${quoted(q)} is not a quantity of at least 0`);
  }
  validateDns(p, spec);
  validateTolerations(p, spec);
  validateNaming(p, spec);
  validatePodSecurity(p, 'spec.securityContext', spec.securityContext);
  if (spec.shareProcessNamespace === true && spec.hostPID === true) p.add('spec.shareProcessNamespace', 'must not be true beside hostPID');
  if (spec.hostUsers === false) validateOwnUsers(p, spec);
  return p.found;
}

/** What cannot be had with users of its own, in words of the API server. */
function validateOwnUsers(p: Problems, spec: PodSpec): void {
  const forbid = (path: string): void => p.add(path, 'Forbidden: when `hostUsers` is false');
  for (const key of ['hostNetwork', 'hostPID', 'hostIPC'] as const) if (spec[key] === true) forbid(`spec.${key}`);
  for (const kind of ['initContainers', 'containers'] as const) {
    spec[kind]?.forEach((c, i) => {
      if ((c.volumeDevices ?? []).length > 0) forbid(`spec.${kind}[${i}].volumeDevices`);
    });
  }
}
