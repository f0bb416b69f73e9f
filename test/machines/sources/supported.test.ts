/**
 * The table of fields: that every field of a Pod's specification is decided upon, and that what a pod sets and this
 * node cannot honour is named with its path, and why.
 */
import { describe, expect, it } from 'vitest';
import { podShape } from '../../../src/machines/pods/sources/podTable.ts';
import { fieldRule, unsupportedFields } from '../../../src/machines/pods/sources/supported.ts';
import type { Shape } from '../../../src/machines/shape/shape.ts';
import { pod } from './pods.ts';

const API_ONLY = ' (only of a pod that came from an API server)';

describe('the table of supported fields', () => {
  it('accepts a plain pod and every field that goes to CRI', () => {
    const securityContext = {
      runAsUser: 1,
      runAsGroup: 1,
      runAsNonRoot: true,
      capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      procMount: 'Default',
      seccompProfile: { type: 'RuntimeDefault' },
      appArmorProfile: { type: 'Unconfined' },
      seLinuxOptions: { level: 's0' },
    };
    const p = pod(
      'web',
      {
        hostUsers: false,
        os: { name: 'linux' },
        nodeSelector: {},
        affinity: {},
        volumes: [
          { name: 'a', emptyDir: {} },
          { name: 'b', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          { name: 'b2', emptyDir: { sizeLimit: '1Mi' } },
          { name: 'c', hostPath: { path: '/p', type: 'DirectoryOrCreate' } },
          { name: 'd', downwardAPI: { defaultMode: 420, items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
          { name: 'e', projected: { sources: [{ downwardAPI: { items: [{ path: 'p', mode: 256 }] } }] } },
        ],
        serviceAccountName: 'default',
        securityContext: { fsGroup: 5, supplementalGroups: [1], sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }] },
        initContainers: [{ name: 'side', image: 'b', restartPolicy: 'Always' }],
      },
      {
        command: ['a'],
        env: [
          { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'B', value: '' },
          { name: 'C', valueFrom: { fileKeyRef: { volumeName: 'a', path: 'p', key: 'k', optional: true } } },
        ],
        resources: {
          limits: { cpu: 1, memory: '1Mi', 'hugepages-2Mi': '2Mi', 'ephemeral-storage': '2Gi' },
          requests: { 'ephemeral-storage': '1Gi' },
        },
        ports: [{ containerPort: 80 }],
        securityContext,
        volumeMounts: [{ name: 'a', mountPath: '/a', readOnly: true, mountPropagation: 'HostToContainer' }],
        stdin: true,
        startupProbe: { exec: { command: ['a'] }, failureThreshold: 30, periodSeconds: 1, terminationGracePeriodSeconds: 5 },
        livenessProbe: { grpc: { port: 1, service: 's' }, initialDelaySeconds: 3 },
        readinessProbe: {
          httpGet: { port: 'web', scheme: 'HTTPS', host: 'h', path: '/p', httpHeaders: [{ name: 'A', value: 'b' }] },
          successThreshold: 2,
        },
      },
    );
    expect(unsupportedFields(p)).toEqual([]);
  });

  it('says of every field of a specification whether it is honoured, ignored for a reason, or refused for one', () => {
    const undecided: string[] = [];
    const visit = (schema: Shape, path: string): void => {
      const rule = fieldRule(path);
      if (rule !== undefined) {
        if (rule.ignored !== undefined && rule.refused !== undefined) undecided.push(`${path} (both)`);
        return;
      }
      if (schema.t === 'list') visit(schema.of, `${path}[*]`);
      else if (schema.t === 'map') visit(schema.of, `${path}.*`);
      else if (schema.t === 'object') for (const [name, field] of Object.entries(schema.fields)) visit(field, `${path}.${name}`);
      else undecided.push(path);
    };
    visit(podShape.fields.spec, 'spec');
    expect(undecided).toEqual([]);
    expect(fieldRule('spec.containers[*].image')).toEqual({ path: 'spec.containers[*].image' });
    expect(fieldRule('spec.affinity.podAffinity.anything')?.ignored).toContain('scheduler');
    expect(fieldRule('spec.frobnicate')).toBeUndefined();
  });

  it('takes what ordinary pods of a cluster say about where they want to be', () => {
    const term = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }], matchFields: [] };
    const spec = {
      nodeSelector: { 'kubernetes.io/os': 'linux' },
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term }],
        },
        podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] },
        podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }] },
      },
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      readinessGates: [{ conditionType: 'example.org/lb' }],
      overhead: { cpu: '10m', memory: '10Mi' },
      preemptionPolicy: 'Never',
      schedulerName: 'mine',
      tolerations: [{ operator: 'Exists' }],
    };
    expect(unsupportedFields(pod('web', spec))).toEqual([]);
    const fromApi = { ...spec, runtimeClassName: 'sandboxed' };
    expect(unsupportedFields(pod('web', fromApi), { api: true })).toEqual([]);
  });

  it('accepts objects of the API where there is one', () => {
    const items = [{ key: 'a', path: 'b', mode: 256 }];
    const volumes = [
      { name: 'a', secret: { secretName: 's', items, defaultMode: 256, optional: true } },
      { name: 'b', configMap: { name: 'c', items, defaultMode: 256, optional: true } },
      {
        name: 'c',
        projected: {
          sources: [
            { secret: { name: 's', items } },
            { configMap: { name: 'c' } },
            { serviceAccountToken: { path: 't', audience: 'a', expirationSeconds: 600 } },
          ],
        },
      },
    ];
    expect(unsupportedFields(pod('web', { volumes }), { api: true })).toEqual([]);
    expect(unsupportedFields(pod('web', { volumes }))).toHaveLength(5);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    [
      'volumes that live on the API, and kinds without a plugin',
      {
        volumes: [
          { name: 'a', secret: { secretName: 's', optional: true } },
          { name: 'b', nfs: { server: 's', path: '/p' } },
          { name: 'c', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
        ],
      },
      {},
      [
        `spec.volumes[0].secret${API_ONLY}`,
        'spec.volumes[1].nfs (there is no plugin for this kind of volume)',
        `spec.volumes[2].projected.sources[0].serviceAccountToken${API_ONLY}`,
      ],
    ],
    [
      'an unknown part of a probe',
      {},
      { livenessProbe: { tcpSocket: { port: 1, proxy: 'x' } } },
      ['spec.containers[0].livenessProbe.tcpSocket.proxy (unknown field)'],
    ],
    [
      'handlers that are no hooks',
      {},
      { lifecycle: { preStop: { grpc: { port: 1 } } } },
      ['spec.containers[0].lifecycle.preStop.grpc (unknown field)'],
    ],
    ['envFrom', {}, { envFrom: [{ configMapRef: { name: 'a' } }] }, [`spec.containers[0].envFrom${API_ONLY}`]],
    [
      'secret keys',
      {},
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } }] },
      [`spec.containers[0].env[0].valueFrom.secretKeyRef${API_ONLY}`],
    ],
    [
      'devices',
      {},
      { resources: { limits: { 'example.com/gpu': 1 } } },
      ['limits', 'requests'].map((k) => `spec.containers[0].resources.${k}.example.com/gpu (this node has no such resource)`),
    ],
    ['another system', { os: { name: 'windows' } }, {}, ['spec.os.name (value "windows")']],
    [
      'resource claims, of a pod and of a container',
      { resourceClaims: [{ name: 'a' }] },
      { resources: { claims: [{ name: 'a' }] } },
      ['spec.resourceClaims', 'spec.containers[0].resources.claims'].map((path) => `${path} (there is no dynamic resource allocation)`),
    ],
    ['gates of a manifest', { schedulingGates: [{ name: 'a' }] }, {}, [`spec.schedulingGates${API_ONLY}`]],
    [
      'runtime classes and pull secrets',
      { runtimeClassName: 'x', imagePullSecrets: [{ name: 'a' }] },
      {},
      [`spec.runtimeClassName${API_ONLY}`, `spec.imagePullSecrets${API_ONLY}`],
    ],
    [
      'unknown fields',
      { frobnicate: 1 },
      { imagePullPolice: 'Never', securityContext: { runAsRoot: true } },
      [
        'spec.frobnicate (unknown field)',
        'spec.containers[0].imagePullPolice (unknown field)',
        'spec.containers[0].securityContext.runAsRoot (unknown field)',
      ],
    ],
  ])('names %s', (_, spec, container, paths) => {
    expect(unsupportedFields(pod('web', spec, container)).sort()).toEqual(paths.sort());
  });
});
