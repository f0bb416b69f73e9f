/**
 * The table of fields: that every field of a Pod's specification is decided upon, and that what a pod sets and this
 * node cannot honour is named with its path, and why.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { podShape } from '../../../src/machines/kube/podTable.ts';
import { FIELD_TABLE } from '../../../src/machines/pods/admission/fieldTable.ts';
import { fieldRule, podFields } from '../../../src/machines/pods/admission/supported.ts';
import type { Shape } from '../../../src/machines/shape/shape.ts';
import { pod } from './pods.ts';

const refusedFields = (...of: Parameters<typeof podFields>): string[] => podFields(...of).refused;
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
    expect(refusedFields(p)).toEqual([]);
  });

  it('says of every field of a specification whether it is honoured, ignored for a reason, or refused for one', () => {
    const undecided: string[] = [];
    const visit = (schema: Shape, path: string): void => {
      const rule = fieldRule(path);
      if (rule !== undefined) {
        if ([rule.ignored, rule.leftAlone, rule.refused].filter((why) => why !== undefined).length > 1) undecided.push(`${path} (both)`);
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
    expect(refusedFields(pod('web', spec))).toEqual([]);
    const fromApi = { ...spec, runtimeClassName: 'sandboxed' };
    expect(refusedFields(pod('web', fromApi), { api: true })).toEqual([]);
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
    expect(refusedFields(pod('web', { volumes }), { api: true })).toEqual([]);
    expect(refusedFields(pod('web', { volumes }))).toHaveLength(5);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    [
      'volumes that live on the API, and kinds without a plugin',
      {
        volumes: [
          { name: 'a', secret: { secretName: 's', optional: true } },
          { name: 'b', quobyte: { registry: 's', volume: 'x' } },
          { name: 'c', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
        ],
      },
      {},
      [
        `spec.volumes[0].secret${API_ONLY}`,
        'spec.volumes[1].quobyte (there is no plugin for this kind of volume)',
        `spec.volumes[2].projected.sources[0].serviceAccountToken${API_ONLY}`,
      ],
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
    ['another system', { os: { name: 'windows' } }, {}, ['spec.os.name (value "windows": this node runs Linux)']],
    [
      'resource claims, of a pod and of a container',
      { resourceClaims: [{ name: 'a' }] },
      { resources: { claims: [{ name: 'a' }] } },
      ['spec.resourceClaims', 'spec.containers[0].resources.claims'].map((path) => `${path}${API_ONLY}`),
    ],
    ['runtime classes', { runtimeClassName: 'x' }, {}, [`spec.runtimeClassName${API_ONLY}`]],
  ])('names %s', (_, spec, container, paths) => {
    expect(refusedFields(pod('web', spec, container)).sort()).toEqual(paths.sort());
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string[]]>([
    [
      'fields that no pod has, with the name that was meant',
      { schedulingGroup: { podGroupName: 'g' }, workloadRef: null, restartPolcy: 'Never' },
      { imagePullPolice: 'Never', livenessProbe: { tcpSocket: { port: 1, proxy: 'x' } }, lifecycle: { preStop: { grpc: { port: 1 } } } },
      [
        'spec.schedulingGroup (unknown field) (did you mean schedulingGates?)',
        'spec.restartPolcy (unknown field) (did you mean restartPolicy?)',
        'spec.containers[0].imagePullPolice (unknown field) (did you mean imagePullPolicy?)',
        'spec.containers[0].livenessProbe.tcpSocket.proxy (unknown field)',
        'spec.containers[0].lifecycle.preStop.grpc (unknown field)',
      ],
    ],
    [
      'what has no effect here',
      { securityContext: { windowsOptions: { runAsUserName: 'a' } } },
      { securityContext: { windowsOptions: { hostProcess: true } } },
      [
        'spec.securityContext.windowsOptions (it is for Windows, and this node runs Linux)',
        'spec.containers[0].securityContext.windowsOptions (it is for Windows, and this node runs Linux)',
      ],
    ],
    [
      'pull secrets of a manifest, which the kubelet runs without too',
      { imagePullSecrets: [{ name: 'a' }], schedulingGates: [{ name: 'a' }] },
      {},
      ['spec.imagePullSecrets (only the API server has secrets; images are pulled without)'],
    ],
  ])('leaves alone %s', (_, spec, container, paths) => {
    const { refused, leftAlone } = podFields(pod('web', spec, container));
    expect(refused).toEqual([]);
    expect([...leftAlone].sort()).toEqual([...paths].sort());
  });

  it('finds unknown fields at every level, and counts what it does not list', () => {
    const odd = { ...pod('web'), sepc: {}, metadata: { name: 'web', namespace: 'default', uid: 'u', lables: {} } };
    expect(podFields(odd).leftAlone).toEqual([
      'sepc (unknown field) (did you mean spec?)',
      'metadata.lables (unknown field) (did you mean labels?)',
    ]);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x${i}`, i]));
    const { leftAlone } = podFields(pod('web', many));
    expect(leftAlone).toHaveLength(11);
    expect(leftAlone.at(-1)).toBe('and 990 more');
  });

  it('is written down: each field that refuses a pod stands in docs/features.md with its reason', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/features.md'), 'utf8');
    const [, table = ''] = /## Refused pods\n([\s\S]*?)\n## /.exec(page) ?? [];
    const rows = [...table.matchAll(/^\| (`.*?) \| (.*?) \| .* \|$/gm)].flatMap(([, paths = '', why = '']) =>
      [...paths.matchAll(/`([^`]+)`/g)].map(([, path]) => `${path}: ${why}`),
    );
    const short = (path: string) => path.replace(/^spec\./, '').replace(/^(initC|ephemeralC|c)ontainers/, 'containers');
    const refused = FIELD_TABLE.flatMap((rule) => (rule.refused === undefined ? [] : [`${short(rule.path)}: ${rule.refused}`]));
    expect(rows.sort()).toEqual([...new Set(refused)].sort());
  });
});
