/**
 * The shape of the v1 Pod API as one table: which fields exist and of which type each is. Decoding checks types
 * against it, and the table of supported fields uses it to tell an unsupported field from an unknown one.
 */

import type { ErrorList } from '../../text/errorList.ts';

export type Schema =
  | { readonly t: 'string' | 'integer' | 'boolean' | 'quantity' | 'intOrString' | 'any' }
  | { readonly t: 'list'; readonly of: Schema }
  | { readonly t: 'map'; readonly of: Schema }
  | { readonly t: 'object'; readonly fields: Readonly<Record<string, Schema>> };

const str: Schema = { t: 'string' };
const int: Schema = { t: 'integer' };
const bool: Schema = { t: 'boolean' };
const any: Schema = { t: 'any' };
const quantity: Schema = { t: 'quantity' };
const intOrString: Schema = { t: 'intOrString' };
const list = (of: Schema): Schema => ({ t: 'list', of });
const map = (of: Schema): Schema => ({ t: 'map', of });
const obj = (fields: Record<string, Schema>): Schema => ({ t: 'object', fields });

const seLinuxOptions = obj({ user: str, role: str, type: str, level: str });
const profile = obj({ type: str, localhostProfile: str });
const windowsOptions = obj({ gmsaCredentialSpecName: str, gmsaCredentialSpec: str, runAsUserName: str, hostProcess: bool });
const keyRef = obj({ name: str, key: str, optional: bool });
const localRef = obj({ name: str });
const fieldRef = obj({ apiVersion: str, fieldPath: str });
const resourceFieldRef = obj({ containerName: str, resource: str, divisor: quantity });
const keyItems = list(obj({ key: str, path: str, mode: int }));
const downwardItems = list(obj({ path: str, fieldRef, resourceFieldRef, mode: int }));
const labelSelector = obj({
  matchLabels: map(str),
  matchExpressions: list(obj({ key: str, operator: str, values: list(str) })),
});

const requirements = list(obj({ key: str, operator: str, values: list(str) }));
const nodeSelector = obj({ nodeSelectorTerms: list(obj({ matchExpressions: requirements, matchFields: requirements })) });

const httpGet = obj({ path: str, port: intOrString, host: str, scheme: str, httpHeaders: list(obj({ name: str, value: str })) });
const handlerFields = { exec: obj({ command: list(str) }), httpGet, tcpSocket: obj({ port: intOrString, host: str }) };
const lifecycleHandler = obj({ ...handlerFields, sleep: obj({ seconds: int }) });
const probe = obj({
  ...handlerFields,
  grpc: obj({ port: int, service: str }),
  initialDelaySeconds: int,
  timeoutSeconds: int,
  periodSeconds: int,
  successThreshold: int,
  failureThreshold: int,
  terminationGracePeriodSeconds: int,
});

const claims = list(obj({ name: str, request: str }));
const resources = obj({ limits: map(quantity), requests: map(quantity), claims });

const containerFields: Record<string, Schema> = {
  name: str,
  image: str,
  command: list(str),
  args: list(str),
  workingDir: str,
  ports: list(obj({ name: str, hostPort: int, containerPort: int, protocol: str, hostIP: str })),
  envFrom: list(obj({ prefix: str, configMapRef: obj({ name: str, optional: bool }), secretRef: obj({ name: str, optional: bool }) })),
  env: list(
    obj({
      name: str,
      value: str,
      valueFrom: obj({
        fieldRef,
        resourceFieldRef,
        configMapKeyRef: keyRef,
        secretKeyRef: keyRef,
        fileKeyRef: obj({ volumeName: str, path: str, key: str, optional: bool }),
      }),
    }),
  ),
  resources,
  resizePolicy: list(obj({ resourceName: str, restartPolicy: str })),
  restartPolicy: str,
  restartPolicyRules: list(obj({ action: str, exitCodes: obj({ operator: str, values: list(int) }) })),
  volumeMounts: list(
    obj({
      name: str,
      mountPath: str,
      readOnly: bool,
      recursiveReadOnly: str,
      subPath: str,
      subPathExpr: str,
      mountPropagation: str,
    }),
  ),
  volumeDevices: list(obj({ name: str, devicePath: str })),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  lifecycle: obj({ postStart: lifecycleHandler, preStop: lifecycleHandler, stopSignal: str }),
  terminationMessagePath: str,
  terminationMessagePolicy: str,
  imagePullPolicy: str,
  securityContext: obj({
    allowPrivilegeEscalation: bool,
    appArmorProfile: profile,
    capabilities: obj({ add: list(str), drop: list(str) }),
    privileged: bool,
    procMount: str,
    readOnlyRootFilesystem: bool,
    runAsGroup: int,
    runAsNonRoot: bool,
    runAsUser: int,
    seLinuxOptions,
    seccompProfile: profile,
    windowsOptions,
  }),
  stdin: bool,
  stdinOnce: bool,
  tty: bool,
};

/** Volume sources. The rare in-tree ones are only named: their inside is not looked at. */
const volumeSources: Record<string, Schema> = {
  hostPath: obj({ path: str, type: str }),
  emptyDir: obj({ medium: str, sizeLimit: quantity }),
  configMap: obj({ name: str, items: keyItems, defaultMode: int, optional: bool }),
  secret: obj({ secretName: str, items: keyItems, defaultMode: int, optional: bool }),
  downwardAPI: obj({ items: downwardItems, defaultMode: int }),
  projected: obj({
    defaultMode: int,
    sources: list(
      obj({
        secret: obj({ name: str, items: keyItems, optional: bool }),
        configMap: obj({ name: str, items: keyItems, optional: bool }),
        downwardAPI: obj({ items: downwardItems }),
        serviceAccountToken: obj({ audience: str, expirationSeconds: int, path: str }),
        clusterTrustBundle: obj({ name: str, signerName: str, labelSelector, optional: bool, path: str }),
        podCertificate: any,
      }),
    ),
  }),
  persistentVolumeClaim: obj({ claimName: str, readOnly: bool }),
  image: obj({ reference: str, pullPolicy: str }),
  csi: obj({ driver: str, readOnly: bool, fsType: str, volumeAttributes: map(str), nodePublishSecretRef: obj({ name: str }) }),
  ephemeral: obj({ volumeClaimTemplate: any }),
  nfs: any,
  iscsi: any,
  fc: any,
  flexVolume: any,
  awsElasticBlockStore: any,
  azureDisk: any,
  azureFile: any,
  cephfs: any,
  cinder: any,
  flocker: any,
  gcePersistentDisk: any,
  gitRepo: any,
  glusterfs: any,
  photonPersistentDisk: any,
  portworxVolume: any,
  quobyte: any,
  rbd: any,
  scaleIO: any,
  storageos: any,
  vsphereVolume: any,
};
export const VOLUME_SOURCES: readonly string[] = Object.keys(volumeSources);

const metadata = obj({
  name: str,
  generateName: str,
  namespace: str,
  uid: str,
  selfLink: str,
  resourceVersion: str,
  generation: int,
  creationTimestamp: str,
  deletionTimestamp: str,
  deletionGracePeriodSeconds: int,
  labels: map(str),
  annotations: map(str),
  finalizers: list(str),
  ownerReferences: list(obj({ apiVersion: str, kind: str, name: str, uid: str, controller: bool, blockOwnerDeletion: bool })),
  managedFields: any,
});

const spec = obj({
  activeDeadlineSeconds: int,
  affinity: obj({
    nodeAffinity: obj({
      requiredDuringSchedulingIgnoredDuringExecution: nodeSelector,
      preferredDuringSchedulingIgnoredDuringExecution: any,
    }),
    podAffinity: any,
    podAntiAffinity: any,
  }),
  automountServiceAccountToken: bool,
  containers: list(obj(containerFields)),
  dnsConfig: obj({ nameservers: list(str), searches: list(str), options: list(obj({ name: str, value: str })) }),
  dnsPolicy: str,
  enableServiceLinks: bool,
  ephemeralContainers: list(obj({ ...containerFields, targetContainerName: str })),
  hostAliases: list(obj({ ip: str, hostnames: list(str) })),
  hostIPC: bool,
  hostNetwork: bool,
  hostPID: bool,
  hostUsers: bool,
  hostname: str,
  hostnameOverride: str,
  imagePullSecrets: list(localRef),
  initContainers: list(obj(containerFields)),
  nodeName: str,
  nodeSelector: map(str),
  os: obj({ name: str }),
  overhead: map(quantity),
  preemptionPolicy: str,
  priority: int,
  priorityClassName: str,
  readinessGates: list(obj({ conditionType: str })),
  resourceClaims: list(obj({ name: str, resourceClaimName: str, resourceClaimTemplateName: str })),
  resources,
  restartPolicy: str,
  runtimeClassName: str,
  schedulerName: str,
  schedulingGates: list(localRef),
  securityContext: obj({
    appArmorProfile: profile,
    fsGroup: int,
    fsGroupChangePolicy: str,
    runAsGroup: int,
    runAsNonRoot: bool,
    runAsUser: int,
    seLinuxChangePolicy: str,
    seLinuxOptions,
    seccompProfile: profile,
    supplementalGroups: list(int),
    supplementalGroupsPolicy: str,
    sysctls: list(obj({ name: str, value: str })),
    windowsOptions,
  }),
  serviceAccount: str,
  serviceAccountName: str,
  setHostnameAsFQDN: bool,
  shareProcessNamespace: bool,
  subdomain: str,
  terminationGracePeriodSeconds: int,
  tolerations: list(obj({ key: str, operator: str, value: str, effect: str, tolerationSeconds: int })),
  topologySpreadConstraints: any,
  volumes: list(obj({ name: str, ...volumeSources })),
});

/** A Pod manifest. What a manifest says under `status` is not read: status is made here. */
export const podSchema: Schema = obj({ apiVersion: str, kind: str, metadata, spec, status: any });

export function isRecord(v: unknown): v is Record<string, unknown> {
  return typeof v === 'object' && v !== null && !Array.isArray(v);
}

function describe(v: unknown): string {
  if (v === null) return 'null';
  if (Array.isArray(v)) return 'a list';
  if (typeof v === 'object') return 'a mapping';
  return `a ${typeof v}`;
}

const wanted: Record<Schema['t'], string> = {
  string: 'a string',
  integer: 'an integer',
  boolean: 'true or false',
  quantity: 'a quantity (a string such as 500m or 1Gi, or a number)',
  intOrString: 'an integer or a string',
  any: 'anything',
  list: 'a list',
  map: 'a mapping',
  object: 'a mapping',
};

/**
 * Checks `value` against the schema and gives a copy without nulls (null is the same as absent). Fields that the
 * schema does not name are kept as they are. Every mismatch is appended to `errors` as `path: what is wrong`.
 */
export function conform(value: unknown, at: { schema: Schema; path: string }, errors: ErrorList): unknown {
  const { schema, path } = at;
  const wrong = () => {
    const quote = schema.t === 'string' && (typeof value === 'number' || typeof value === 'boolean') ? ' (put it in quotes)' : '';
    errors.add(`${path}: must be ${wanted[schema.t]}, not ${describe(value)}${quote}`);
    return undefined;
  };
  switch (schema.t) {
    case 'any':
      return structuredClone(value);
    case 'string':
      return typeof value === 'string' ? value : wrong();
    case 'boolean':
      return typeof value === 'boolean' ? value : wrong();
    case 'integer':
      return Number.isSafeInteger(value) ? value : wrong();
    case 'intOrString':
      return typeof value === 'string' || Number.isSafeInteger(value) ? value : wrong();
    case 'quantity':
      return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)) ? value : wrong();
    case 'list': {
      if (!Array.isArray(value)) return wrong();
      return value.map((v: unknown, i) => conform(v, { schema: schema.of, path: `${path}[${i}]` }, errors));
    }
    case 'map':
    case 'object': {
      if (!isRecord(value)) return wrong();
      const out: Record<string, unknown> = {};
      for (const [key, v] of Object.entries(value)) {
        if (v === null || v === undefined) continue;
        const field = schema.t === 'map' ? schema.of : Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
        const copy =
          field === undefined ? structuredClone(v) : conform(v, { schema: field, path: path === '' ? key : `${path}.${key}` }, errors);
        // A plain assignment would treat a key named __proto__ as the prototype.
        Object.defineProperty(out, key, { value: copy, enumerable: true, writable: true, configurable: true });
      }
      return out;
    }
  }
}
