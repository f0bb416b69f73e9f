/** Validation of one container, app or init: what a node needs to be right before it runs it. Pure. */

import { own } from '../../../data/own.ts';
import { dnsLabel, envName, portName, qualifiedName, quantityValue } from '../../../kube/names.ts';
import type { Container, EnvVar, FileKeyRef } from '../../../kube/podTable.ts';
import type { Quantity } from '../../../kube/types.ts';
import {
  EXIT_CODE_OPERATORS,
  MOUNT_PROPAGATIONS,
  PORTS,
  PROTOCOLS,
  PULL_POLICIES,
  RECURSIVE_READ_ONLY,
  RESTART_POLICIES,
  RESTART_RULE_ACTIONS,
  TERMINATION_MESSAGE_POLICIES,
} from '../../../kube/words.ts';
import { SCRATCH_FIELDS } from '../../../pod/volumes/kinds.ts';
import { quoted } from '../../../text/errorList.ts';
import { validateProbes } from './probes.ts';
import type { Problems } from './problems.ts';
import { validateContainerSecurity } from './security.ts';

/** What the containers of one pod share while they are validated. */
export interface ContainerScope {
  kind: 'containers' | 'initContainers';
  hostNetwork: boolean;
  volumes: ReadonlySet<string>;
  /** Volumes among them that containers can write files of variables to. */
  scratch: ReadonlySet<string>;
  /** Names of all containers so far, of both kinds. */
  names: Set<string>;
  /** `protocol/hostIP/port` taken so far by containers that run at the same time. */
  hostPorts: Set<string>;
  /** The pod's grace period. */
  graceSeconds: number;
  /** `spec.os.name`; '' where it is not said. */
  os: string;
}

const FIELD_PATHS = new Set([
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]);
const FIELD_PATH_KEYED = /^metadata\.(labels|annotations)\['([^']+)'\]$/;
const STANDARD_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);
const RESOURCE_FIELD = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/;

function validatePorts(p: Problems, path: string, of: { container: Container; scope: ContainerScope }): void {
  const { container, scope } = of;
  const names = new Set<string>();
  container.ports?.forEach((port, i) => {
    const at = `${path}.ports[${i}]`;
    if (port.name) {
      p.check(`${at}.name`, portName(port.name));
      p.unique(`${at}.name`, port.name, names);
    }
    if (port.containerPort === undefined) p.add(`${at}.containerPort`, 'required');
    p.range(`${at}.containerPort`, port.containerPort, PORTS);
    p.oneOf(`${at}.protocol`, port.protocol, PROTOCOLS);
    if (!port.hostPort) return;
    p.range(`${at}.hostPort`, port.hostPort, PORTS);
    if (scope.hostNetwork && port.hostPort !== port.containerPort)
      p.add(`${at}.hostPort`, 'must equal containerPort when hostNetwork is true');
    p.unique(`${at}.hostPort`, `${port.protocol ?? 'TCP'}/${port.hostIP ?? ''}/${port.hostPort}`, scope.hostPorts);
  });
}

function validateEnvSource(p: Problems, path: string, from: NonNullable<EnvVar['valueFrom']>, scope: ContainerScope): void {
  const set = (['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'] as const).filter(
    (k) => from[k] !== undefined,
  );
  if (set.length !== 1) p.add(path, set.length === 0 ? 'must name a source' : `must name one source only, not ${set.join(' and ')}`);
  const field = from.fieldRef;
  if (field !== undefined) {
    const at = `${path}.fieldRef.fieldPath`;
    const keyed = FIELD_PATH_KEYED.exec(field.fieldPath ?? '');
    if (field.apiVersion !== undefined && field.apiVersion !== 'v1') p.add(`${path}.fieldRef.apiVersion`, 'must be v1');
    if (!field.fieldPath) p.add(at, 'required');
    else if (keyed !== null) p.check(at, qualifiedName(keyed[2] ?? ''));
    else if (!FIELD_PATHS.has(field.fieldPath))
      p.add(at, `${quoted(field.fieldPath)} is not a field that an environment variable can take`);
  }
  const resource = from.resourceFieldRef;
  if (resource !== undefined) {
    if (!RESOURCE_FIELD.test(resource.resource ?? '')) {
      p.add(
        `${path}.resourceFieldRef.resource`,
        'must be limits or requests of cpu, memory, ephemeral-storage or hugepages, such as limits.cpu',
      );
    }
    const divisor = quantityValue(resource.divisor ?? '0');
    if (divisor === null || divisor < 0)
      p.add(`${path}.resourceFieldRef.divisor`, `${quoted(resource.divisor)} is not a quantity of at least 0`);
  }
  for (const key of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const ref = from[key];
    if (ref === undefined) continue;
    p.required(`${path}.${key}.name`, ref.name);
    p.required(`${path}.${key}.key`, ref.key);
  }
  if (from.fileKeyRef !== undefined) validateFileKeyRef(p, `${path}.fileKeyRef`, from.fileKeyRef, scope);
}

function validateFileKeyRef(p: Problems, path: string, ref: FileKeyRef, { volumes, scratch }: ContainerScope): void {
  const { volumeName = '', key = '', path: file = '' } = ref;
  p.required(`${path}.volumeName`, volumeName);
  if (volumeName && !volumes.has(volumeName)) p.add(`${path}.volumeName`, `no volume is named ${quoted(volumeName)}`);
  else if (volumeName && !scratch.has(volumeName)) p.add(`${path}.volumeName`, `must name a volume of type ${SCRATCH_FIELDS.join(' or ')}`);
  p.required(`${path}.path`, file);
  if (file.split('/').includes('..')) p.add(`${path}.path`, "must not contain '..'");
  p.required(`${path}.key`, key);
  if (key) p.check(`${path}.key`, envName(key));
}

function validateEnv(p: Problems, path: string, { container: c, scope }: { container: Container; scope: ContainerScope }): void {
  c.env?.forEach((env, i) => {
    const at = `${path}.env[${i}]`;
    p.check(`${at}.name`, envName(env.name ?? ''));
    if (env.valueFrom === undefined) return;
    if (env.value) p.add(`${at}.valueFrom`, 'must not be set beside value');
    validateEnvSource(p, `${at}.valueFrom`, env.valueFrom, scope);
  });
  c.envFrom?.forEach((from, i) => {
    const at = `${path}.envFrom[${i}]`;
    const refs = [from.configMapRef, from.secretRef].filter((r) => r !== undefined);
    if (refs.length !== 1) p.add(at, 'must name one of configMapRef and secretRef');
    if (from.prefix) p.check(`${at}.prefix`, envName(from.prefix));
  });
}

function validateResources(p: Problems, path: string, c: Container): void {
  const limits = c.resources?.limits ?? {};
  const requests = c.resources?.requests ?? {};
  const amounts = (where: string, list: Record<string, Quantity>) => {
    for (const [name, q] of Object.entries(list)) {
      const at = `${path}.resources.${where}.${name}`;
      const value = quantityValue(q);
      if (value === null) p.add(at, `${quoted(q)} is not a quantity such as 500m or 1Gi`);
      else if (value < 0) p.add(at, 'must not be negative');
      if (!STANDARD_RESOURCES.has(name) && !name.startsWith('hugepages-') && !name.includes('/')) {
        p.add(
          at,
          'is not a resource a container can have; other than cpu, memory, ephemeral-storage and hugepages-* need a domain, such as example.com/name',
        );
      } else if (name.includes('/')) {
        p.check(at, qualifiedName(name));
        if (own(limits, name) === undefined) p.add(at, 'a limit is required for an extended resource');
      }
    }
  };
  amounts('limits', limits);
  // A request that is its limit came of it, or has the same fault: it is said once.
  const others = Object.entries(requests).filter(([name, q]) => own(limits, name) !== q);
  amounts('requests', Object.fromEntries(others));
  for (const [name, q] of Object.entries(requests)) {
    const limit = own(limits, name);
    if (limit === undefined) continue;
    const [asked, most] = [quantityValue(q), quantityValue(limit)];
    if (asked === null || most === null) continue;
    const mustEqual = name.startsWith('hugepages-') || name.includes('/');
    if (asked > most) p.add(`${path}.resources.requests.${name}`, `${q} must be at most the limit ${limit}`);
    else if (mustEqual && asked !== most) p.add(`${path}.resources.requests.${name}`, `${q} must equal the limit ${limit}`);
  }
  const all = [...Object.keys(limits), ...Object.keys(requests)];
  if (all.some((n) => n.startsWith('hugepages-')) && !all.some((n) => n === 'cpu' || n === 'memory')) {
    p.add(`${path}.resources`, 'huge pages need cpu or memory beside them');
  }
}

function validateMounts(p: Problems, path: string, of: { container: Container; scope: ContainerScope }): void {
  const { container: c, scope } = of;
  const paths = new Set<string>();
  c.volumeMounts?.forEach((m, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    if (!m.name) p.add(`${at}.name`, 'required');
    else if (!scope.volumes.has(m.name)) p.add(`${at}.name`, `no volume is named ${quoted(m.name)}`);
    if (!m.mountPath) p.add(`${at}.mountPath`, 'required');
    else p.unique(`${at}.mountPath`, m.mountPath, paths);
    for (const key of ['subPath', 'subPathExpr'] as const) {
      const sub = m[key];
      if (sub && (sub.startsWith('/') || sub.split('/').includes('..'))) p.add(`${at}.${key}`, "must be a relative path without '..'");
    }
    if (m.subPath && m.subPathExpr) p.add(`${at}.subPathExpr`, 'must not be set beside subPath');
    p.oneOf(`${at}.mountPropagation`, m.mountPropagation, MOUNT_PROPAGATIONS);
    if (m.mountPropagation === 'Bidirectional' && c.securityContext?.privileged !== true) {
      p.add(`${at}.mountPropagation`, 'Bidirectional needs a privileged container');
    }
    p.oneOf(`${at}.recursiveReadOnly`, m.recursiveReadOnly, RECURSIVE_READ_ONLY);
  });
  c.volumeDevices?.forEach((d, i) => {
    const at = `${path}.volumeDevices[${i}]`;
    if (!scope.volumes.has(d.name ?? '')) p.add(`${at}.name`, `no volume is named ${quoted(d.name)}`);
    p.required(`${at}.devicePath`, d.devicePath);
    if (d.devicePath) p.unique(`${at}.devicePath`, d.devicePath, paths);
  });
}

const RESTART_RULES_MAX = 20;
const EXIT_CODES_MAX = 255;

function validateRestart(p: Problems, path: string, { restartPolicy, restartPolicyRules: rules = [] }: Container): void {
  p.oneOf(`${path}.restartPolicy`, restartPolicy, RESTART_POLICIES);
  if (rules.length === 0) return;
  const at = `${path}.restartPolicyRules`;
  if (restartPolicy === undefined) p.add(`${path}.restartPolicy`, 'required where there are restartPolicyRules');
  if (rules.length > RESTART_RULES_MAX) p.add(at, `at most ${RESTART_RULES_MAX} rules`);
  rules.forEach(({ action, exitCodes }, i) => {
    p.required(`${at}[${i}].action`, action);
    if (action) p.oneOf(`${at}[${i}].action`, action, RESTART_RULE_ACTIONS);
    if (exitCodes === undefined) {
      p.add(`${at}[${i}].exitCodes`, 'required');
      return;
    }
    p.required(`${at}[${i}].exitCodes.operator`, exitCodes.operator);
    if (exitCodes.operator) p.oneOf(`${at}[${i}].exitCodes.operator`, exitCodes.operator, EXIT_CODE_OPERATORS);
    if ((exitCodes.values ?? []).length > EXIT_CODES_MAX) p.add(`${at}[${i}].exitCodes.values`, `at most ${EXIT_CODES_MAX} exit codes`);
  });
}

export function validateContainer(p: Problems, path: string, of: { container: Container; scope: ContainerScope }): void {
  const { container: c, scope } = of;
  const init = scope.kind === 'initContainers';
  const sidecar = init && c.restartPolicy === 'Always';
  p.check(`${path}.name`, dnsLabel(c.name ?? ''));
  if (c.name) p.unique(`${path}.name`, c.name, scope.names);
  const image = c.image ?? '';
  if (image === '') p.add(`${path}.image`, 'required');
  else if (image !== image.trim()) p.add(`${path}.image`, 'must not begin or end with white space');
  validateRestart(p, path, c);
  p.oneOf(`${path}.imagePullPolicy`, c.imagePullPolicy, PULL_POLICIES);
  p.oneOf(`${path}.terminationMessagePolicy`, c.terminationMessagePolicy, TERMINATION_MESSAGE_POLICIES);
  // Plain init containers run one after the other, so only within one of them can host ports conflict.
  const hostPorts = init && !sidecar ? new Set<string>() : scope.hostPorts;
  validatePorts(p, path, { container: c, scope: { ...scope, hostPorts } });
  validateEnv(p, path, of);
  validateResources(p, path, c);
  validateMounts(p, path, of);
  validateProbes(p, path, { container: c, allowed: !init || sidecar, graceSeconds: scope.graceSeconds, os: scope.os });
  validateContainerSecurity(p, `${path}.securityContext`, c.securityContext);
}
