/**
 * Encodes container fields byte for byte as Go's encoding/json does for the Kubernetes types: field order, which empty values are left out,
 * escapes, canonical quantities. Needed only for hashes and annotations that other nodes wrote or will read.
 */
import type { Container, ContainerPort, LifecycleHandler } from '../kube/podTable.ts';
import { canonicalQuantity } from '../kube/quantity.ts';
import { isRecord } from '../shape/conform.ts';

/**
 * How a Go field is encoded.
 * - `omit`: left out when it is the zero value (empty text, 0, false, empty list or map).
 * - `ptr`: left out only when absent; a zero behind a pointer is written.
 * - `text` / `number`: always written, with its zero value when absent.
 * - `quantity`: always written, `"0"` when absent.
 */
type Kind = 'omit' | 'ptr' | 'text' | 'number' | 'quantity' | { ptr: Struct } | { always: Struct } | { list: Struct } | { map: 'quantity' };
/** Fields in the order in which Go writes them. */
interface Struct {
  readonly [name: string]: Kind;
}

const EXEC: Struct = { command: 'omit' };
const HEADER: Struct = { name: 'text', value: 'text' };
const HTTP: Struct = { path: 'omit', port: 'number', host: 'omit', scheme: 'omit', httpHeaders: { list: HEADER } };
const TCP: Struct = { port: 'number', host: 'omit' };
const HANDLER: Struct = { exec: { ptr: EXEC }, httpGet: { ptr: HTTP }, tcpSocket: { ptr: TCP }, sleep: { ptr: { seconds: 'number' } } };
const PROBE: Struct = {
  exec: { ptr: EXEC },
  httpGet: { ptr: HTTP },
  tcpSocket: { ptr: TCP },
  grpc: { ptr: { port: 'number', service: 'text' } },
  initialDelaySeconds: 'omit',
  timeoutSeconds: 'omit',
  periodSeconds: 'omit',
  successThreshold: 'omit',
  failureThreshold: 'omit',
  terminationGracePeriodSeconds: 'ptr',
};
const PORT: Struct = { name: 'omit', hostPort: 'omit', containerPort: 'number', protocol: 'omit', hostIP: 'omit' };
const OBJECT_REF: Struct = { name: 'omit', optional: 'ptr' };
const KEY_REF: Struct = { name: 'omit', key: 'text', optional: 'ptr' };
const VALUE_FROM: Struct = {
  fieldRef: { ptr: { apiVersion: 'omit', fieldPath: 'text' } },
  resourceFieldRef: { ptr: { containerName: 'omit', resource: 'text', divisor: 'quantity' } },
  configMapKeyRef: { ptr: KEY_REF },
  secretKeyRef: { ptr: KEY_REF },
};
const PROFILE: Struct = { type: 'text', localhostProfile: 'ptr' };
const SECURITY: Struct = {
  capabilities: { ptr: { add: 'omit', drop: 'omit' } },
  privileged: 'ptr',
  seLinuxOptions: { ptr: { user: 'omit', role: 'omit', type: 'omit', level: 'omit' } },
  windowsOptions: { ptr: { gmsaCredentialSpecName: 'ptr', gmsaCredentialSpec: 'ptr', runAsUserName: 'ptr', hostProcess: 'ptr' } },
  runAsUser: 'ptr',
  runAsGroup: 'ptr',
  runAsNonRoot: 'ptr',
  readOnlyRootFilesystem: 'ptr',
  allowPrivilegeEscalation: 'ptr',
  procMount: 'ptr',
  seccompProfile: { ptr: PROFILE },
  appArmorProfile: { ptr: PROFILE },
};
const MOUNT: Struct = {
  name: 'text',
  readOnly: 'omit',
  recursiveReadOnly: 'ptr',
  mountPath: 'text',
  subPath: 'omit',
  mountPropagation: 'ptr',
  subPathExpr: 'omit',
};
const CONTAINER: Struct = {
  name: 'text',
  image: 'omit',
  command: 'omit',
  args: 'omit',
  workingDir: 'omit',
  ports: { list: PORT },
  envFrom: { list: { prefix: 'omit', configMapRef: { ptr: OBJECT_REF }, secretRef: { ptr: OBJECT_REF } } },
  env: { list: { name: 'text', value: 'omit', valueFrom: { ptr: VALUE_FROM } } },
  resources: {
    always: { limits: { map: 'quantity' }, requests: { map: 'quantity' }, claims: { list: { name: 'text', request: 'omit' } } },
  },
  resizePolicy: { list: { resourceName: 'text', restartPolicy: 'text' } },
  restartPolicy: 'ptr',
  volumeMounts: { list: MOUNT },
  volumeDevices: { list: { name: 'text', devicePath: 'text' } },
  livenessProbe: { ptr: PROBE },
  readinessProbe: { ptr: PROBE },
  startupProbe: { ptr: PROBE },
  lifecycle: { ptr: { postStart: { ptr: HANDLER }, preStop: { ptr: HANDLER }, stopSignal: 'ptr' } },
  terminationMessagePath: 'omit',
  terminationMessagePolicy: 'omit',
  imagePullPolicy: 'omit',
  securityContext: { ptr: SECURITY },
  stdin: 'omit',
  stdinOnce: 'omit',
  tty: 'omit',
};

/** A JSON string with the extra escapes of Go's default encoder (HTML characters and the two line separators). */
export function goString(text: string): string {
  return JSON.stringify(text).replace(/\\.|[<>&\u2028\u2029]/g, (found) => {
    if (found === '\\b') return '\\u0008';
    if (found === '\\f') return '\\u000c';
    return found.startsWith('\\') ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

function goPlain(value: unknown): string {
  if (typeof value === 'string') return goString(value);
  if (Array.isArray(value)) return `[${value.map(goPlain).join(',')}]`;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'null';
}

function isZero(value: unknown): boolean {
  return (
    value === undefined || value === null || value === '' || value === 0 || value === false || (Array.isArray(value) && value.length === 0)
  );
}

/** Undefined: the field is left out. */
function encodeField(value: unknown, kind: Kind): string | undefined {
  if (kind === 'omit') return isZero(value) ? undefined : goPlain(value);
  if (kind === 'ptr') return value === undefined || value === null ? undefined : goPlain(value);
  if (kind === 'text') return goPlain(value ?? '');
  if (kind === 'number') return goPlain(value ?? 0);
  if (kind === 'quantity') return quantity(value ?? '0');
  if ('ptr' in kind) return isRecord(value) ? encodeStruct(value, kind.ptr) : undefined;
  if ('always' in kind) return encodeStruct(isRecord(value) ? value : {}, kind.always);
  if ('list' in kind) {
    if (!Array.isArray(value) || value.length === 0) return undefined;
    return `[${value.map((item: unknown) => encodeStruct(isRecord(item) ? item : {}, kind.list)).join(',')}]`;
  }
  if (!isRecord(value) || Object.keys(value).length === 0) return undefined;
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${goString(key)}:${quantity(value[key])}`).join(',')}}`;
}

function quantity(value: unknown): string {
  return goString(typeof value === 'string' || typeof value === 'number' ? canonicalQuantity(value) : '0');
}

function encodeStruct(value: Record<string, unknown>, struct: Struct): string {
  const parts: string[] = [];
  for (const [name, kind] of Object.entries(struct)) {
    const text = encodeField(value[name], kind);
    if (text !== undefined) parts.push(`"${name}":${text}`);
  }
  return `{${parts.join(',')}}`;
}

/** The whole container definition, as nodes before 1.31 hashed it. */
export function encodeContainer(container: Container): string {
  return encodeStruct({ ...container }, CONTAINER);
}

/** A lifecycle handler, as the preStop annotation holds it. */
export function encodeHandler(handler: LifecycleHandler): string {
  return encodeStruct({ ...handler }, HANDLER);
}

/** A port list, as the ports annotation holds it. */
export function encodePorts(ports: readonly ContainerPort[]): string {
  return `[${ports.map((port) => encodeStruct({ ...port }, PORT)).join(',')}]`;
}
