/**
 * Variants of real manifests, for a comparison with the kubelet: which of them become pods, and which pods. The variants come from
 * the manifests of `manifests/`, by seed. The kubelet's answers to the same variants are recorded in `manifests136.json`.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseManifest } from '../../src/actors/pods/sources/manifest.ts';
import { decodeManifest } from '../../src/machines/pods/sources/decode.ts';
import { quantityValue } from '../../src/machines/pods/sources/validation/names.ts';
import { podShape } from '../../src/machines/pods/sources/podTable.ts';
import type { Shape } from '../../src/machines/shape/shape.ts';
import { edits } from './textEdits.ts';

export interface Variant {
  id: string;
  text: string;
}
export const WHERE = { source: 'file', where: '/etc/kubernetes/manifests/a.yaml', nodeName: 'n1' } as const;
export const VARIANTS = 5_000;
const SEED = 136;

const folder = join(import.meta.dirname, 'manifests');
export const BASES: ReadonlyMap<string, string> = new Map(
  readdirSync(folder)
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
);

/** A small generator of numbers, the same everywhere. */
export function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0;
  return (sides) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % sides;
  };
}
export type Roll = ReturnType<typeof dice>;
export function pick<T>(list: readonly T[], roll: Roll): T {
  return list[roll(list.length)] as T;
}

/** Text that stands in the manifest as it is. */
class Raw extends String {}
type Doc = Record<string, unknown>;

const SCALARS = [
  ...['y', 'n', 'yes', 'No', 'on', 'OFF', 'true', 'False', '"true"', 'TRUE', '~', 'null', '""', "''", '[]', '{}', '[null]', '{a: null}'],
  ...['0', '1', '-1', '00', '0644', '0o644', '0x1F', '0b11', '1_000', '1.0', '1.5', '1e3', '.5', '1.', '+1', '-0', '089', '1:30', '65536'],
  ...['2147483648', '9223372036854775807', '9223372036854775808', '1e400', '.inf', '.nan', '2024-01-01', '2024-01-01T00:00:00Z', '!!str 1'],
  ...['!!int "1"', '!!binary aGk=', '!!bool yes', '!!null x', '!custom x', '"8080"', '8080', 'http', 'HTTP', 'Always', 'always', 'Never'],
  ...['100m', '"100m"', '0.1', '1Gi', '1gi', '128974848', '1e9', '-1Gi', '" 1Gi"', '1 Gi', '.5Gi', '0.0001', '1E', '1Ki', '1000Mi', '0.5m'],
  ...['a', 'A', 'a_b', 'a.b', '-a', 'a-', '"a b"', '/', '/a', '/a/../b', 'a/b', '127.0.0.1', '::1', '127.0.0.01', '256.1.1.1', 'localhost'],
  ...['Directory', 'directory', 'None', 'RuntimeDefault', 'Localhost', 'Exists', 'Equal', 'NoExecute', 'linux', 'windows', 'ClusterFirst'],
  ...['Default', 'File', 'Bidirectional', 'v1', 'v2', 'default', 'Pod', 'metadata.name', 'status.podIP', 'limits.memory', 'metadata.labels'],
  ...[`${'a'.repeat(63)}`, `${'a'.repeat(64)}`, `${'a'.repeat(254)}`, '"$(A)"', '"\\u0000"', '"\\t"', '"é"', '|\n  text\n', '>-\n  a\n  b'],
  ...['[a, 1]', '[1, true]', '{x: y}', '{x: 1}', '{name: a}', '[{name: a}]', '[a]', '[[]]', '[{}]', '- ', '*none', '&x 1', '@a', '%a', '`a`'],
] as const;

/** Fields that real Pods have, to be put where they belong and where they do not. */
const FIELDS = [
  ...['name: a', 'hostNetwork: true', 'hostNetwork: y', 'restartPolicy: Never', 'privileged: true', 'readOnly: true', 'nodeName: other'],
  ...['serviceAccount: a', 'serviceAccountName: default', 'securityContext: {runAsUser: 0}', 'securityContext: null', 'labels: {a: b}'],
  ...['namespace: other', 'generateName: a-', 'uid: abc', 'resourceVersion: "1"', 'creationTimestamp: null', 'creationTimestamp: ""'],
  ...['finalizers: [a/b]', 'ownerReferences: []', 'managedFields: []', 'deletionTimestamp: 2024-01-01T00:00:00Z', 'generation: 1', 'selfLink: /a'],
  ...['annotations: {a: b}', 'annotations: {a: null}', 'annotations: {scheduler.alpha.kubernetes.io/critical-pod: ""}', 'hostPID: on'],
  ...['terminationGracePeriodSeconds: -5', 'terminationGracePeriodSeconds: 0', 'schedulingGates: [{name: a}]', 'schedulingGroup: {name: a}'],
  ...['ephemeralContainers: []', 'initContainers: []', 'initContainers: null', 'volumes: null', 'volumes: []', 'tolerations: null', 'env: null'],
  ...['imagePullSecrets: [{name: a}]', 'imagePullSecrets: [{}]', 'imagePullSecrets: []', 'runtimeClassName: a', 'hostUsers: false', 'hostUsers: true'],
  ...['envFrom: [{configMapRef: {name: a}}]', 'envFrom: []', 'lifecycle: {}', 'lifecycle: {preStop: {}}', 'livenessProbe: {}', 'resources: null'],
  ...['livenessProbe: {exec: {command: [a]}}', 'livenessProbe: {exec: {}}', 'startupProbe: {httpGet: {port: 80}}', 'resources: {}', 'os: null'],
  ...['readinessProbe: {httpGet: {port: 0}}', 'readinessProbe: {successThreshold: 2, tcpSocket: {port: http}}', 'affinity: {}', 'dnsConfig: {}'],
  ...['resources: {requests: {cpu: 2}, limits: {cpu: 1}}', 'resources: {limits: {example.com/gpu: 1}}', 'resources: {limits: {gpu: 1}}'],
  ...['resources: {limits: {nvidia.com/gpu: "1"}}', 'resources: {limits: {hugepages-2Mi: 4Mi}}', 'resources: {requests: {memory: 0.5}}'],
  ...['emptyDir: {}', 'hostPath: {path: /x}', 'secret: {secretName: a}', 'configMap: {name: a}', 'nfs: {server: a, path: /}', 'emptydir: {}'],
  ...['persistentVolumeClaim: {claimName: a}', 'gitRepo: {repository: a}', 'image: {reference: a}', 'csi: {driver: a}', 'cephfs: {monitors: [a]}'],
  ...['ports: [{containerPort: 80}, {containerPort: 80}]', 'ports: [{hostPort: 80}]', 'ports: [{containerPort: 80, name: A}]', 'ports: [{}]'],
  ...['command: []', 'command: [null]', 'args: [1]', 'args: ["1"]', 'stdin: yes', 'workingDir: a', 'imagePullPolicy: ""', 'imagePullPolicy: always'],
  ...['image: " a"', 'image: ""', 'image: a:b:c', 'volumeDevices: []', 'volumeMounts: [{}]', 'subPath: ../a', 'subPath: /a', 'mountPropagation: ""'],
  ...['topologySpreadConstraints: []', 'priority: 5', 'preemptionPolicy: ""', 'enableServiceLinks: null', 'hostname: A', 'hostname: a.b'],
  ...['setHostnameAsFQDN: true', 'hostnameOverride: a', 'containers: []', 'containers: null', 'spec: {}', 'metadata: {}', 'kind: Pod', 'Kind: Pod'],
  ...['apiVersion: v1', 'status: {phase: Running}', 'status: running', 'template: {}', 'unknownField: 1', 'Name: a', 'y: 1', '1: a', '"": a', '<<: {}'],
  ...['allowPrivilegeEscalation: false', 'capabilities: {add: [CAP_SYS_ADMIN]}', 'seccompProfile: {type: Localhost}', 'runAsNonRoot: true'],
  ...['appArmorProfile: {type: RuntimeDefault}', 'annotations: {container.apparmor.security.beta.kubernetes.io/a: unconfined}', 'tty: true'],
  ...['annotations: {seccomp.security.alpha.kubernetes.io/pod: runtime/default}', 'windowsOptions: {}', 'seLinuxOptions: {}', 'procMount: ""'],
  ...['tolerations: [{}]', 'tolerations: [{operator: Exists}]', 'tolerations: [{key: a}]', 'nodeSelector: {a: null}', 'nodeSelector: {a b: c}'],
  ...['restartPolicyRules: []', 'resizePolicy: []', 'resourceClaims: []', 'resources: {claims: [{name: a}]}', 'stopSignal: SIGTERM'],
] as const;

const isMap = (v: unknown): v is Doc => typeof v === 'object' && v !== null && !Array.isArray(v) && !(v instanceof Raw);
const isNode = (v: unknown): v is Doc | unknown[] => isMap(v) || Array.isArray(v);

/** Every place of a document: what holds it, and its key. */
function places(node: Doc | unknown[], found: [Doc | unknown[], string | number][] = []): [Doc | unknown[], string | number][] {
  for (const key of Array.isArray(node) ? node.keys() : Object.keys(node)) {
    found.push([node, key]);
    const value = (node as Record<string | number, unknown>)[key];
    if (isNode(value)) places(value, found);
  }
  return found;
}

function change(doc: Doc, roll: Roll): void {
  const all = places(doc);
  const [holder, key] = pick(all, roll);
  const at = holder as Record<string | number, unknown>;
  switch (roll(9)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete at[key];
      return;
    case 1: {
      // The same field, spelled otherwise.
      if (Array.isArray(holder)) return;
      const name = String(key);
      const other = pick([name.toLowerCase(), name.toUpperCase(), `${name}s`, name.replace(/s$/, ''), name.replaceAll(/[A-Z]/g, '_$&')], roll);
      const value = at[key];
      delete at[key];
      at[other] = value;
      return;
    }
    case 2: {
      // To somewhere else.
      const [target, name] = pick(all, roll);
      const copy = at[key] instanceof Raw ? at[key] : structuredClone(at[key]);
      if (!Array.isArray(target)) target[String(key)] = copy;
      else target[Number(name)] = copy;
      return;
    }
    case 3:
    case 4: {
      const map = pick([doc, ...all.map(([h, k]) => (h as Doc)[k]).filter(isMap)], roll);
      const field = pick(FIELDS, roll);
      const colon = field.startsWith('"') ? field.indexOf('":') + 1 : field.indexOf(':');
      map[field.slice(0, colon)] = new Raw(field.slice(colon + 1).trim());
      return;
    }
    case 5:
      at[key] = Array.isArray(at[key]) ? (at[key] as unknown[])[0] : [at[key]];
      return;
    default:
      at[key] = new Raw(pick(SCALARS, roll));
  }
}

const PLAIN = /^[A-Za-z/][A-Za-z0-9/._-]*$/;
function scalar(value: unknown): string {
  if (value instanceof Raw) return String(value);
  if (typeof value === 'string' && PLAIN.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/i.test(value)) return value;
  return JSON.stringify(value) ?? 'null';
}
function write(value: unknown, indent: string): string {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((v: unknown) => `\n${indent}- ${write(v, `${indent}  `).trimStart()}`).join('');
  }
  if (isMap(value) && Object.keys(value).length > 0) {
    const keys = Object.entries(value);
    return keys.map(([k, v]) => `\n${indent}${PLAIN.test(k) || /^("|<<|1)/.test(k) ? k : JSON.stringify(k)}:${spaced(write(v, `${indent}  `))}`).join('');
  }
  return scalar(value);
}
const spaced = (text: string): string => (text.startsWith('\n') ? text : ` ${text}`);

function asJson(value: unknown): string {
  if (value instanceof Raw) return String(value);
  if (Array.isArray(value)) return `[${value.map(asJson).join(', ')}]`;
  if (isMap(value)) return `{${Object.entries(value).map(([k, v]) => `${k.startsWith('"') ? k : JSON.stringify(k)}: ${asJson(v)}`).join(', ')}}`;
  return JSON.stringify(value) ?? 'null';
}

/** All variants, always the same ones. */
export function variants(seed = SEED): Variant[] {
  const roll = dice(seed);
  const names = [...BASES.keys()];
  const docs = new Map([...BASES].map(([name, text]) => [name, parse(text, { version: '1.1' }) as Doc]));
  const made: Variant[] = [...BASES].map(([name, text]) => ({ id: name, text }));
  while (made.length < VARIANTS) {
    const name = pick(names, roll);
    const id = `${name} ${made.length}`;
    if (roll(3) === 0) {
      made.push({ id, text: edits(BASES.get(name) ?? '', roll) });
      continue;
    }
    const doc = structuredClone(docs.get(name)) ?? {};
    for (let n = roll(4) === 0 ? 2 : 1; n > 0; n -= 1) change(doc, roll);
    made.push({ id, text: roll(5) === 0 ? asJson(doc) : `${write(doc, '').trimStart()}\n` });
  }
  return made;
}

/** Of the texts: answers are to these ones. */
export function digestOf(list: readonly Variant[]): string {
  const hash = createHash('sha256');
  for (const { text } of list) hash.update(`${text.length} ${text}`);
  return hash.digest('hex').slice(0, 16);
}

/** Numbers and booleans that are not the same as nothing when they are zero or false. */
const POINTERS = new Set([
  ...['runAsUser', 'runAsGroup', 'fsGroup', 'terminationGracePeriodSeconds', 'tolerationSeconds', 'defaultMode', 'mode', 'priority'],
  ...['activeDeadlineSeconds', 'allowPrivilegeEscalation', 'privileged', 'readOnlyRootFilesystem', 'runAsNonRoot', 'optional', 'hostUsers'],
  ...['automountServiceAccountToken', 'enableServiceLinks', 'shareProcessNamespace', 'setHostnameAsFQDN', 'emptyDir', 'downwardAPI'],
]);
/** The kubelet leaves the first two out. */
const NOT_COMPARED = new Set(['apiVersion', 'kind', 'status']);
const MADE_HERE = new Set(['kubernetes.io/config.hash', 'kubernetes.io/config.source', 'kubernetes.io/config.seen']);

/** What of a pod is compared: every field that a Pod has, quantities by value; nothing for what is empty. */
export function comparable(value: unknown, schema: Shape, key = ''): unknown {
  if (value === null || value === undefined || value === '') return undefined;
  // The inside of fields that this program does not read.
  if (schema.t === 'any') return typeof value === 'object' && Object.keys(value).length === 0 ? undefined : true;
  if (schema.t === 'quantity') return typeof value === 'object' ? undefined : (quantityValue(value as string | number) ?? String(value));
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    return value.map((v: unknown) => comparable(v, schema.t === 'list' ? schema.of : { t: 'any' }) ?? null);
  }
  if (typeof value === 'object') {
    const parts = Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([k, v]) => {
        const field = schema.t === 'object' ? schema.fields[k] : schema.t === 'map' ? schema.of : undefined;
        if (field === undefined || MADE_HERE.has(k) || (key === 'metadata' && k === 'uid') || (key === '' && NOT_COMPARED.has(k))) return [];
        const part = schema.t === 'map' && v === '' ? '' : comparable(v, field, k);
        return part === undefined ? [] : [[k, part] as const];
      });
    return parts.length === 0 && !POINTERS.has(key) ? undefined : Object.fromEntries(parts);
  }
  return (value === 0 || value === false) && !POINTERS.has(key) ? undefined : value;
}

/** Refused, or a digest of the pod. */
export const REFUSED = 'no';
export function answerOf(pod: unknown): string {
  return createHash('sha256').update(JSON.stringify(comparable(pod, podShape))).digest('hex').slice(0, 6);
}

/** What this program makes of it. */
export function decodeHere(text: string, gates: { preventApiReferences: boolean } = { preventApiReferences: true }): { pod?: unknown; errors: string[]; notes: readonly string[] } {
  const parsed = parseManifest(Buffer.from(text));
  if (!parsed.ok) return { errors: [parsed.message], notes: [] };
  const decoded = decodeManifest(parsed.value, { ...WHERE, ...gates, notes: parsed.notes, md5Hex: (s) => createHash('md5').update(s).digest('hex') });
  return decoded.ok ? { pod: decoded.pods[0], errors: [], notes: decoded.notes } : { errors: decoded.errors, notes: [] };
}
