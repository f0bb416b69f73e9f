/** Volumes of drivers mounted with an SELinux label, on a whole node in virtual time (KEP-1710). */
import { describe, expect, it } from 'vitest';
import { driversView } from '../../../src/machines/services/plugins/messages.ts';
import type { PublishRequest, StageRequest } from '../../../src/machines/wire/csi.ts';
import { cluster, create, created, drop, events, isReady, NS, put } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const LABEL = 'system_u:object_r:container_file_t:s0:c1,c2';

async function node(modes: string[], o: { gate?: boolean; selinux?: boolean } = {}): Promise<VirtualNode> {
  const h = await cluster({
    drivers: true,
    ...(o.gate === true ? { config: { featureGates: { SELinuxMount: true } } } : {}),
  });
  await h.crash();
  if (o.selinux !== false) {
    for (const dir of ['/sys/fs/selinux', '/proc/self/attr', '/etc/selinux/targeted/contexts']) h.fs.makeDir(dir);
    h.fs.put('/sys/fs/selinux/enforce', '1');
    h.fs.put('/proc/self/attr/current', 'system_u:system_r:kubelet_t:s0\0');
    h.fs.put('/etc/selinux/config', 'SELINUX=enforcing\nSELINUXTYPE=targeted\n');
    const contexts = 'process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:container_file_t:s0"\n';
    h.fs.put('/etc/selinux/targeted/contexts/lxc_contexts', contexts);
  }
  await h.boot();
  h.drivers.add(SOCKET, { name: NAME });
  h.fs.makeSocket(SOCKET);
  await h.until('registered', () => h.tree.registry.read(driversView)?.value.has(NAME) === true);
  put(h, '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: { attachRequired: false, seLinuxMount: true } });
  const claim = { metadata: { name: 'data' }, spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } };
  const { uid } = put(h, `${NS}/persistentvolumeclaims`, claim).metadata;
  const csi = { driver: NAME, volumeHandle: 'vol-1' };
  put(h, '/api/v1/persistentvolumes', {
    metadata: { name: 'pv-1' },
    spec: { accessModes: modes, claimRef: { uid }, csi, mountOptions: ['noatime'] },
  });
  return h;
}
const pod = (level: string, more: object = {}) => ({
  container: { volumeMounts: [{ name: 'disk', mountPath: '/data' }] },
  spec: {
    securityContext: { seLinuxOptions: { level }, ...more },
    volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }],
  },
});
const flags = (h: VirtualNode, method: 'NodeStageVolume' | 'NodePublishVolume') =>
  h.drivers.calls
    .filter((c) => c.method === method)
    .map((c) => (c.request as StageRequest | PublishRequest).volumeCapability.mount?.mountFlags);
const relabels = (h: VirtualNode, name: string) => created(h, name)[0]?.mounts?.find((m) => m.containerPath === '/data')?.selinuxRelabel;
const ready = (h: VirtualNode, name: string) => h.until(`${name} is ready`, () => isReady(h, name));

describe('a volume whose pod asks for an SELinux label', () => {
  it('of ReadWriteOncePod is staged and published with it, and the runtime labels nothing, after a restart too', async () => {
    await using h = await node(['ReadWriteOncePod']);
    create(h, 'web', pod('s0:c1,c2'));
    await ready(h, 'web');
    const expected = ['noatime', `context="${LABEL}"`];
    expect([flags(h, 'NodeStageVolume'), flags(h, 'NodePublishVolume')]).toEqual([[expected], [expected]]);
    expect(relabels(h, 'web')).toBe(false);
    await h.restart();
    drop(h, 'pods/web');
    await h.until('the pod is gone', () => h.fs.below(`${ROOT}/pods`).length === 0, 200_000);
    expect(h.drivers.violations).toEqual([]);
  });

  it.each([
    ['of another access mode', ['ReadWriteOnce'], {}, {}],
    ['of a pod that wants its files labelled', ['ReadWriteOncePod'], { seLinuxChangePolicy: 'Recursive' }, {}],
    ['of a host without SELinux', ['ReadWriteOncePod'], {}, { selinux: false }],
  ])('%s is mounted without it', async (_, modes, context, host) => {
    await using h = await node(modes, host);
    create(h, 'web', pod('s0:c1,c2', context));
    await ready(h, 'web');
    expect(flags(h, 'NodePublishVolume')).toEqual([['noatime']]);
    expect(relabels(h, 'web')).toBe(true);
  });

  it('with the gate SELinuxMount keeps a pod with another label waiting until the first is gone', async () => {
    await using h = await node(['ReadWriteMany'], { gate: true });
    create(h, 'one', pod('s0:c1,c2'));
    await ready(h, 'one');
    create(h, 'two', pod('s0:c7,c8'));
    await h.until('it is told', () => events(h, 'FailedMount').length > 0);
    expect(events(h, 'FailedMount')[0]).toContain(
      `conflicting SELinux labels of volume disk: "${LABEL}" and "system_u:object_r:container_file_t:s0:c7,c8"`,
    );
    drop(h, 'pods/one', 1);
    await h.until('two is ready', () => isReady(h, 'two'), 200_000);
    expect(flags(h, 'NodePublishVolume').at(-1)).toEqual(['noatime', 'context="system_u:object_r:container_file_t:s0:c7,c8"']);
  });
});
