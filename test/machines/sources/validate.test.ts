import { describe, expect, it } from 'vitest';
import { isIPv6, quantityValue } from '../../../src/machines/kube/names.ts';
import { decodeManifest } from '../../../src/machines/pods/sources/decode.ts';
import { errorsOf, inFile, manifest } from './pods.ts';

const TERM = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]';
type Part = Record<string, unknown>;
const specErrors = (spec: Part) => errorsOf(decodeManifest(manifest('web', spec), inFile()));
const containerErrors = (c: Part) => errorsOf(decodeManifest(manifest('web', {}, c), inFile()));
const sidecar = (stopSignal: string) => ({ name: 's', image: 'b', restartPolicy: 'Always', lifecycle: { stopSignal } });
const initErrors = (c: Part) => specErrors({ initContainers: [{ name: 'init', image: 'b', ...c }] });

describe('pod validation', () => {
  it('finds nothing wrong with a full, good pod', () => {
    const spec = {
      os: { name: 'linux' },
      hostname: 'web',
      subdomain: 'sub',
      terminationGracePeriodSeconds: 0,
      activeDeadlineSeconds: 5,
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['10.0.0.1', 'fd00::1'], searches: ['a.b.', '_x.y', '.'], options: [{ name: 'ndots', value: '2' }] },
      hostAliases: [{ ip: '1.2.3.4', hostnames: ['a.b'] }],
      tolerations: [{ key: 'a/b', operator: 'Equal', value: 'v', effect: 'NoExecute', tolerationSeconds: 5 }],
      securityContext: {
        runAsUser: 0,
        sysctls: [{ name: 'net.ipv4.tcp_syncookies', value: '1' }],
        seccompProfile: { type: 'RuntimeDefault' },
      },
      initContainers: [
        { name: 'side', image: 'b', restartPolicy: 'Always', readinessProbe: { exec: { command: ['true'] } } },
        { name: 'init', image: 'b', ports: [{ containerPort: 1, hostPort: 80 }] },
      ],
      volumes: [
        { name: 'v', hostPath: { path: '/x' } },
        { name: 'e', emptyDir: {} },
      ],
    };
    const container = {
      ports: [{ name: 'http', containerPort: 80, hostPort: 80 }],
      env: [
        { name: 'A B', value: '1' },
        { name: 'L', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
        { name: 'R', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
        { name: 'F', valueFrom: { fileKeyRef: { volumeName: 'e', path: 'a/b.env', key: 'K' } } },
      ],
      resources: { limits: { cpu: '1', memory: '1Gi', 'hugepages-2Mi': '4Mi' }, requests: { cpu: '500m' } },
      volumeMounts: [{ name: 'v', mountPath: '/v' }],
      livenessProbe: { tcpSocket: { port: 'http' }, terminationGracePeriodSeconds: 1 },
      lifecycle: { preStop: { sleep: { seconds: 0 } }, stopSignal: 'SIGRTMIN+3' },
    };
    expect(errorsOf(decodeManifest(manifest('web', spec, container), inFile()))).toEqual([]);
  });

  it.each<[string, string[], string[]]>([
    ['metadata.name', errorsOf(decodeManifest(manifest('Web_1'), inFile())), ['metadata.name']],
    [
      'a UID that would leave its directory',
      errorsOf(decodeManifest({ ...manifest(), metadata: { name: 'a', uid: '../../etc' } }, inFile())),
      ['metadata.uid'],
    ],
    [
      'a label',
      errorsOf(decodeManifest({ ...manifest(), metadata: { name: 'a', labels: { '-x': 'ok', ok: '-x' } } }, inFile())),
      ['metadata.labels[-x]', 'metadata.labels[ok]'],
    ],
    [
      'required node affinity',
      specErrors({
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                {
                  matchExpressions: [
                    { key: 'disk', operator: 'In', values: ['ssd'] },
                    { key: 'free', operator: 'Exists' },
                    { key: 'cores', operator: 'Gt', values: ['4'] },
                    { key: '-', operator: 'In', values: ['a'] },
                    { key: 'a', operator: 'Like', values: ['a'] },
                    { key: 'a', operator: 'NotIn' },
                    { key: 'a', operator: 'DoesNotExist', values: ['a'] },
                    { key: 'a', operator: 'Lt', values: ['many'] },
                  ],
                  matchFields: [
                    { key: 'metadata.name', operator: 'In', values: ['n1'] },
                    { key: 'spec.unschedulable', operator: 'Exists', values: ['a', 'b'] },
                  ],
                },
              ],
            },
          },
        },
      }),
      [
        ...['[3].key', '[4].operator', '[5].values', '[6].values', '[7].values'].map((at) => `${TERM}.matchExpressions${at}`),
        ...['key', 'operator', 'values', 'values'].map((at) => `${TERM}.matchFields[1].${at}`),
      ],
    ],
    [
      'node affinity without a term',
      specErrors({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } }),
      [TERM.slice(0, -3)],
    ],
    ['names doubled across both kinds', initErrors({ name: 'main' }), ['spec.initContainers[0].name']],
    ['no image', containerErrors({ image: '' }), ['spec.containers[0].image']],
    ['white space around an image', containerErrors({ image: ' a' }), ['spec.containers[0].image']],
    ['a port out of range', containerErrors({ ports: [{ containerPort: 70000 }] }), ['spec.containers[0].ports[0].containerPort']],
    [
      'a port name doubled',
      containerErrors({
        ports: [
          { name: 'a', containerPort: 1 },
          { name: 'a', containerPort: 2 },
        ],
      }),
      ['spec.containers[0].ports[1].name'],
    ],
    [
      'a host port doubled',
      containerErrors({
        ports: [
          { hostPort: 9, containerPort: 1 },
          { hostPort: 9, containerPort: 2 },
        ],
      }),
      ['spec.containers[0].ports[1].hostPort'],
    ],
    ['a protocol', containerErrors({ ports: [{ containerPort: 1, protocol: 'tcp' }] }), ['spec.containers[0].ports[0].protocol']],
    [
      'an environment name',
      containerErrors({ env: [{ name: 'A=B' }, { value: 'x' }] }),
      ['spec.containers[0].env[0].name', 'spec.containers[0].env[1].name'],
    ],
    [
      'files of variables',
      specErrors({
        volumes: [{ name: 'v', hostPath: { path: '/x' } }],
        containers: [
          { volumeName: 'v', path: '/a', key: 'k' },
          { volumeName: 'none', path: 'a/../b', key: 'a=b' },
          { key: 'k'.repeat(129) },
        ].map((fileKeyRef, i) => ({ name: `c${i}`, image: 'b', env: [{ name: 'A', valueFrom: { fileKeyRef } }] })),
      }),
      [
        'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName',
        'spec.containers[1].env[0].valueFrom.fileKeyRef.volumeName',
        'spec.containers[1].env[0].valueFrom.fileKeyRef.path',
        'spec.containers[1].env[0].valueFrom.fileKeyRef.key',
        'spec.containers[2].env[0].valueFrom.fileKeyRef.volumeName',
        'spec.containers[2].env[0].valueFrom.fileKeyRef.path',
      ],
    ],
    [
      'value and valueFrom',
      containerErrors({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } }] }),
      ['spec.containers[0].env[0].valueFrom'],
    ],
    [
      'an unknown field path',
      containerErrors({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } }] }),
      ['spec.containers[0].env[0].valueFrom.fieldRef.fieldPath'],
    ],
    [
      'restart policies',
      [
        ...specErrors({ restartPolicy: 'Sometimes' }),
        ...containerErrors({ restartPolicy: 'Now' }),
        ...initErrors({ restartPolicy: 'Later' }),
      ],
      ['spec.restartPolicy', 'spec.containers[0].restartPolicy', 'spec.initContainers[0].restartPolicy'],
    ],
    [
      'restart rules',
      [
        ...containerErrors({ restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }] }),
        ...containerErrors({ restartPolicy: 'Never', restartPolicyRules: [{ action: 'Stop', exitCodes: { operator: 'Is', values: [] } }] }),
        ...containerErrors({ restartPolicy: 'Never', restartPolicyRules: [{ action: 'Restart' }] }),
        ...containerErrors({
          restartPolicy: 'Never',
          restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'NotIn', values: [1, 2, 1] } }],
        }),
        ...containerErrors({
          restartPolicy: 'Never',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: Array.from({ length: 256 }, (_, i) => i) } }],
        }),
        ...initErrors({
          restartPolicy: 'Always',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }],
        }),
        ...containerErrors({
          restartPolicy: 'OnFailure',
          restartPolicyRules: Array.from({ length: 21 }, () => ({ action: 'Restart', exitCodes: { operator: 'In', values: [1] } })),
        }),
      ],
      [
        'spec.containers[0].restartPolicy',
        'spec.containers[0].restartPolicyRules[0].action',
        'spec.containers[0].restartPolicyRules[0].exitCodes.operator',
        'spec.containers[0].restartPolicyRules[0].exitCodes',
        'spec.containers[0].restartPolicyRules[0].exitCodes.values',
        'spec.containers[0].restartPolicyRules',
      ],
    ],
    [
      'hooks',
      [
        ...containerErrors({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
        ...containerErrors({ lifecycle: { postStart: { exec: { command: [] } }, stopSignal: 'SIGTERM' } }),
        ...specErrors({ os: { name: 'linux' }, initContainers: [sidecar('SIGNOPE')] }),
        ...specErrors({ os: { name: 'windows' }, initContainers: [sidecar('SIGHUP')] }),
        ...containerErrors({ lifecycle: { postStart: {} } }),
      ],
      [
        'spec.containers[0].lifecycle.preStop.sleep.seconds',
        'spec.containers[0].lifecycle.postStart.exec.command',
        'spec.containers[0].lifecycle.stopSignal',
        'spec.initContainers[0].lifecycle.stopSignal',
        'spec.initContainers[0].lifecycle.stopSignal',
        'spec.containers[0].lifecycle.postStart',
      ],
    ],
    ['a probe without handler', containerErrors({ livenessProbe: {} }), ['spec.containers[0].livenessProbe']],
    [
      'a probe with two',
      containerErrors({ livenessProbe: { exec: { command: ['a'] }, tcpSocket: { port: 1 } } }),
      ['spec.containers[0].livenessProbe'],
    ],
    [
      'liveness successThreshold',
      containerErrors({ livenessProbe: { exec: { command: ['a'] }, successThreshold: 2, periodSeconds: -1 } }),
      ['spec.containers[0].livenessProbe.periodSeconds', 'spec.containers[0].livenessProbe.successThreshold'],
    ],
    [
      'a probe on a plain init container',
      initErrors({ livenessProbe: { exec: { command: ['a'] } } }),
      ['spec.initContainers[0].livenessProbe'],
    ],
    ['volumes doubled', specErrors({ volumes: [{ name: 'a' }, { name: 'a' }] }), ['spec.volumes[1].name']],
    ['a volume of two sources', specErrors({ volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/x' } }] }), ['spec.volumes[0]']],
    ['mounts', containerErrors({ volumeMounts: [{ name: 'x', mountPath: 'rel' }] }), ['spec.containers[0].volumeMounts[0].name']],
    [
      'requests over limits',
      containerErrors({ resources: { limits: { cpu: '1' }, requests: { cpu: '1500m' } } }),
      ['spec.containers[0].resources.requests.cpu'],
    ],
    [
      'no quantity',
      containerErrors({ resources: { limits: { cpu: 'one', memory: '-1' } } }),
      ['spec.containers[0].resources.limits.cpu', 'spec.containers[0].resources.limits.memory'],
    ],
    ['a resource without domain', containerErrors({ resources: { limits: { gpu: 1 } } }), ['spec.containers[0].resources.limits.gpu']],
    ['grace and deadline', specErrors({ terminationGracePeriodSeconds: -1, activeDeadlineSeconds: 0 }), ['spec.activeDeadlineSeconds']],
    [
      'ids out of range',
      specErrors({ securityContext: { runAsUser: -1, supplementalGroups: [2 ** 31] } }),
      ['spec.securityContext.runAsUser', 'spec.securityContext.supplementalGroups[0]'],
    ],
    [
      'a localhost profile without file',
      containerErrors({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
      ['spec.containers[0].securityContext.seccompProfile.localhostProfile'],
    ],
    [
      'privilege against itself',
      containerErrors({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
      ['spec.containers[0].securityContext.allowPrivilegeEscalation'],
    ],
    ['dnsPolicy None without servers', specErrors({ dnsPolicy: 'None' }), ['spec.dnsConfig.nameservers']],
    ['a toleration', specErrors({ tolerations: [{ operator: 'Equal' }] }), ['spec.tolerations[0].operator']],
    ['process namespaces shared twice', specErrors({ shareProcessNamespace: true, hostPID: true }), ['spec.shareProcessNamespace']],
    [
      'host port beside the host network',
      specErrors({ hostNetwork: true, containers: [{ name: 'a', image: 'b', ports: [{ containerPort: 80, hostPort: 81 }] }] }),
      ['spec.containers[0].ports[0].hostPort'],
    ],
    ['an empty list of containers', specErrors({ containers: [] }), ['spec.containers']],
  ])('names the path of: %s', (_, errors, paths) => {
    expect(errors.map((e) => e.slice(0, e.indexOf(': ')))).toEqual(paths);
  });

  it('refuses users of its own beside namespaces of the host, in words of the API server', () => {
    const refusal = (kind: string) => expect.stringMatching(new RegExp(`spec\\.${kind}: Forbidden: when \`hostUsers\` is false$`));
    const hosts = { hostNetwork: true, hostPID: true, hostIPC: true };
    expect(specErrors({ hostUsers: false, ...hosts })).toEqual(Object.keys(hosts).map(refusal));
    expect(specErrors({ hostUsers: true, ...hosts })).toEqual([]);
    expect(specErrors({ hostUsers: false })).toEqual([]);
    const disks = {
      volumes: [{ name: 'v', hostPath: { path: '/x' } }],
      containers: [{ name: 'a', image: 'b', volumeDevices: [{ name: 'v', devicePath: '/dev/x' }] }],
    };
    expect(specErrors({ hostUsers: false, ...disks })).toEqual([refusal('containers\\[0\\]\\.volumeDevices')]);
  });

  it('refuses a stop signal without the name of the operating system', () => {
    expect(containerErrors({ lifecycle: { stopSignal: 'SIGTERM' } })).toEqual([
      expect.stringMatching(/spec\.containers\[0\]\.lifecycle\.stopSignal: must not be set without spec\.os\.name$/),
    ]);
    const on = (name: string) => specErrors({ os: { name }, initContainers: [sidecar('SIGTERM')] });
    expect([on('linux'), on('windows')]).toEqual([[], []]);
  });

  it('refuses a name of its own that is none, is too long, or meets other ways to be named', () => {
    const of = (more: Part) => specErrors({ hostnameOverride: 'mail.example.org', ...more });
    expect(of({ hostname: 'db-0', subdomain: 'db' })).toEqual([]);
    expect(of({ hostNetwork: true, setHostnameAsFQDN: true })).toHaveLength(2);
    for (const wrong of ['', 'Mail', `${'d'.repeat(62)}.dd`])
      expect(of({ hostnameOverride: wrong })).toEqual([expect.stringContaining('spec.hostnameOverride: ')]);
  });

  it('lists violations of several parts together', () => {
    expect(
      errorsOf(decodeManifest(manifest('web', { hostname: 'A', dnsPolicy: 'x' }, { image: '', ports: [{ containerPort: 0 }] }), inFile())),
    ).toHaveLength(4);
  });
});

describe('formats', () => {
  it.each([
    ['500m', 0.5],
    ['1Gi', 2 ** 30],
    ['1e3', 1000],
    ['1E', 1e18],
    ['.5', 0.5],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['5x', null],
    ['', null],
    ['1 Gi', null],
  ])('quantity %s', (q, v) => {
    expect(quantityValue(q)).toBe(v);
  });
  it.each([
    ['::', true],
    ['::1', true],
    ['fe80::1', true],
    ['1:2:3:4:5:6:7:8', true],
    ['1:2:3:4:5:6:7', false],
    ['::ffff:1.2.3.4', true],
    ['1::2::3', false],
    ['g::', false],
    [':::', false],
  ])('IPv6 %s: %s', (ip, ok) => {
    expect(isIPv6(ip)).toBe(ok);
  });
});
