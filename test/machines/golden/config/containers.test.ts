/** What a container is told (pod lifecycle 5.10): a row for each line. */
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { oomScoreAdj } from '../../../../src/machines/pod/resources/oomScore.ts';
import { containerResources, cpuQuotaUs, cpuShares } from '../../../../src/machines/pod/resources/resources.ts';
import { hashNameAndImage, hashWholeSpec } from '../../../../src/machines/pod/runtime/containerHash.ts';
import {
  type ContainerConfigInput,
  generateContainerConfig,
  type ImageUser,
} from '../../../../src/machines/pods/workers/config/containerConfig.ts';
import { effectiveSecurity, verifyRunAsNonRoot } from '../../../../src/machines/pods/workers/config/security.ts';
import { container, FACTS, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const made = (c: Container, more: Partial<ContainerConfigInput> = {}, spec: Partial<Pod['spec']> = {}, metadata = {}) =>
  generateContainerConfig({
    pod: pod({ containers: [c], ...spec }, { metadata }),
    container: c,
    kind: 'regular',
    restartCount: 2,
    imageRef: 'sha256:abc',
    imageUser: { uid: null, username: '' },
    podIPs: ['10.0.0.5'],
    facts: FACTS,
    mounts: [],
    ...more,
  });
const config = (...of: Parameters<typeof made>) => {
  const result = made(...of);
  if (!result.ok) throw new Error(result.message);
  return result.config;
};
const security = (
  own: Container['securityContext'],
  outer: Pod['spec']['securityContext'] = undefined,
  user: ImageUser | null = { uid: null, username: '' },
) => {
  const result = made(
    container('web', own === undefined ? {} : { securityContext: own }),
    { imageUser: user },
    outer === undefined ? {} : { securityContext: outer },
  );
  return result.ok ? result.config.linux?.securityContext : result.message;
};
const field = <K extends string>(of: ReturnType<typeof security>, ...keys: K[]) =>
  typeof of === 'object' ? Object.fromEntries(keys.map((k) => [k, (of as unknown as Record<string, unknown>)[k]])) : of;
const nonRoot = (runAsUser: number | undefined, user: ImageUser | null) => {
  const result = verifyRunAsNonRoot({ runAsNonRoot: true, ...(runAsUser === undefined ? {} : { runAsUser }) }, user, 'container "web"');
  return result.ok ? 'ok' : result.message;
};
const armored = (value: string) =>
  field(
    (() => {
      const result = made(container('web'), {}, {}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': value } });
      return result.ok ? result.config.linux?.securityContext : result.message;
    })(),
    'apparmor',
  );
const debug = (targetContainerId?: string, spec: Partial<Pod['spec']> = {}) => {
  const result = made(
    { ...container('debug'), targetContainerName: 'web' } as Container,
    targetContainerId === undefined ? {} : { targetContainerId },
    spec,
  );
  return result.ok ? result.config.linux?.securityContext?.namespaceOptions : result.message;
};
const resources = (r: NonNullable<Container['resources']>, facts: Partial<typeof FACTS> = {}) =>
  containerResources(pod(), container('web', { resources: r }), { ...FACTS, ...facts });
const GI = 1024 ** 3;
const score = (r: NonNullable<Container['resources']>, spec: Partial<Pod['spec']> = {}, source = 'api') =>
  oomScoreAdj(pod({ containers: [container('web', { resources: r })], ...spec }, { source }), container('web', { resources: r }), 4 * GI);

const hook = { lifecycle: { preStop: { exec: { command: ['bye'] } } } };

goldenTable('what a container is told is as recorded', 'config/containers', {
  '5.10 all of a plain container': () => config(container('web')),
  '5.10 command and arguments': () => {
    const { command, args, workingDir, stdin, stdinOnce, tty } = config(
      container('web', {
        command: ['run', '$(A)'],
        args: ['$(B)'],
        env: [{ name: 'A', value: 'x' }],
        workingDir: '/w',
        stdin: true,
        stdinOnce: true,
        tty: true,
      }),
    );
    return { command, args, workingDir, stdin, stdinOnce, tty };
  },
  '5.10 annotations: of a deleted pod, with a hook and ports': () =>
    config(container('web', { ...hook, ports: [{ containerPort: 80 }] }), {}, {}, { deletionGracePeriodSeconds: 3 }).annotations,
  '5.10 hash: name and image': () => hashNameAndImage(container('test_container', { image: 'foo/image:v1' })),
  '5.10 hash: whole definition': () => hashWholeSpec({ name: 'c1', image: 'busybox:1.36' }),

  '5.10 security: of the container over that of the pod': () =>
    effectiveSecurity(
      pod({ securityContext: { runAsUser: 1, runAsGroup: 2, runAsNonRoot: true, seLinuxOptions: { level: 'pod' } } }),
      container('web', { securityContext: { runAsUser: 7, privileged: true, readOnlyRootFilesystem: true } }),
    ),
  '5.10 user: of the container, of the pod': () =>
    [security({ runAsUser: 0 }, { runAsUser: 7 }), security(undefined, { runAsUser: 7 })].map((s) => field(s, 'runAsUser')),
  '5.10 user: number, name, none of the image; not known': () =>
    ([{ uid: 9, username: '' }, { uid: null, username: 'www' }, { uid: null, username: '' }, null] as const).map((u) =>
      field(security(undefined, undefined, u), 'runAsUser', 'runAsUsername'),
    ),
  '5.10 groups': () =>
    field(security(undefined, { fsGroup: 1, supplementalGroups: [2, 3], runAsGroup: 4 }), 'supplementalGroups', 'runAsGroup'),
  '5.10 no new privileges: only where escalation is forbidden': () =>
    [undefined, true, false].map((v) => field(security(v === undefined ? {} : { allowPrivilegeEscalation: v }), 'noNewPrivs')),
  '5.10 masked paths: by default, Unmasked': () =>
    [security({}), security({ procMount: 'Unmasked' })].map((s) => field(s, 'maskedPaths', 'readonlyPaths')),
  '5.10 seccomp: none': () => field(security({}), 'seccomp'),
  '5.10 seccomp: of the container, of the pod': () =>
    [
      security({ seccompProfile: { type: 'Unconfined' } }, { seccompProfile: { type: 'RuntimeDefault' } }),
      security({}, { seccompProfile: { type: 'RuntimeDefault' } }),
    ].map((s) => field(s, 'seccomp')),
  '5.10 seccomp: Localhost, with and without a path': () =>
    [
      security({ seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } }),
      security({ seccompProfile: { type: 'Localhost' } }),
      // Of a newer API server.
      security({ seccompProfile: { type: 'OCI' as never } }),
    ].map((s) => field(s, 'seccomp')),
  '5.10 seccomp: the default of the node': () => {
    const result = made(container('web'), { facts: { ...FACTS, seccompDefault: true } });
    return result.ok ? result.config.linux?.securityContext?.seccomp : result.message;
  },
  '5.10 AppArmor: fields': () =>
    (['RuntimeDefault', 'Unconfined', 'Localhost'] as const).map((type) =>
      field(security({ appArmorProfile: { type, ...(type === 'Localhost' ? { localhostProfile: 'mine' } : {}) } }), 'apparmor'),
    ),
  '5.10 AppArmor: Localhost without a name': () => security({ appArmorProfile: { type: 'Localhost' } }),
  '5.10 AppArmor: annotation': () => ['runtime/default', 'localhost/mine', 'unconfined', 'odd'].map(armored),
  '5.10 capabilities': () => field(security({ capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } }), 'capabilities'),
  '5.10 privileged and read-only root': () =>
    field(security({ privileged: true, readOnlyRootFilesystem: true }), 'privileged', 'readonlyRootfs'),
  '5.10 ephemeral: its target': () => debug('web-1'),
  '5.10 ephemeral: its target, processes are shared': () => debug('web-1', { shareProcessNamespace: true }),
  '5.10 ephemeral: its target has no instance': () => debug(),
  '5.10 runAsNonRoot: user 0': () => nonRoot(0, { uid: 5, username: '' }),
  '5.10 runAsNonRoot: user 5': () => nonRoot(5, { uid: 0, username: '' }),
  '5.10 runAsNonRoot: image 0': () => nonRoot(undefined, { uid: 0, username: '' }),
  '5.10 runAsNonRoot: image without a user': () => nonRoot(undefined, { uid: null, username: '' }),
  '5.10 runAsNonRoot: image with a name': () => nonRoot(undefined, { uid: null, username: 'www' }),
  '5.10 runAsNonRoot: image 5': () => nonRoot(undefined, { uid: 5, username: '' }),
  '5.10 runAsNonRoot: image 2^32': () => nonRoot(undefined, { uid: 2 ** 32, username: '' }),
  '5.10 runAsNonRoot: image -1': () => nonRoot(undefined, { uid: -1, username: '' }),
  '5.10 runAsNonRoot: image not known': () => nonRoot(undefined, null),

  '5.10 shares': () => Object.fromEntries([0, 1, 2, 100, 1_000, 256_000, 300_000].map((m) => [m, cpuShares(m)])),
  '5.10 quota': () => Object.fromEntries([0, 1, 10, 500, 1_500].map((m) => [m, cpuQuotaUs(m, 100_000)])),
  '5.10 resources: none': () => resources({}),
  '5.10 resources: requests': () => resources({ requests: { cpu: '500m', memory: '1Gi' } }),
  '5.10 resources: limits only': () => resources({ limits: { cpu: '2', memory: '1Gi' } }),
  '5.10 resources: without quota': () => resources({ limits: { cpu: '2' } }, { cpuCFSQuota: false }),
  '5.10 resources: another period': () => resources({ limits: { cpu: '2' } }, { cpuCFSQuotaPeriodMs: 10 }),
  '5.10 resources: pages of the host': () => resources({ limits: { 'hugepages-2Mi': '4Mi' } }, { hugePageSizes: ['2MB', '1GB'] }),
  '5.10 OOM: node-critical': () => score({}, { priority: 2_000_001_000, priorityClassName: 'system-node-critical' }),
  '5.10 OOM: node-critical by its class alone, as a manifest may say': () =>
    score({}, { priorityClassName: 'system-node-critical' }, 'file'),
  '5.10 OOM: that class, of a pod of the API without its priority': () => score({}, { priorityClassName: 'system-node-critical' }),
  '5.10 OOM: critical to the cluster only': () => score({}, { priority: 2_000_000_000 }),
  '5.10 OOM: Guaranteed': () => score({ limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } }),
  '5.10 OOM: BestEffort': () => score({}),
  '5.10 OOM: Burstable, a quarter': () => score({ requests: { memory: '1Gi' } }),
  '5.10 OOM: Burstable, nothing': () => score({ requests: { cpu: '1' } }),
  '5.10 OOM: Burstable, all': () => score({ requests: { memory: '4Gi' } }),
  '5.10 OOM: a sidecar is no worse off than those it serves': () => {
    const s = sidecar('s', { resources: { requests: { memory: '1Mi' } } });
    return oomScoreAdj(
      pod({ containers: [container('web', { resources: { requests: { memory: '2Gi' } } })], initContainers: [s] }),
      s,
      4 * GI,
    );
  },
});
