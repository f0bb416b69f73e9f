/** /etc/hosts of containers (resources and volumes 8.20, 11.2): whose it is, and when it is written. */
import { describe, expect, it } from 'vitest';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import { pod, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

const hostsOf = (h: VirtualNode, name: string) => `${ROOT}/pods/${h.uid(name)}/etc-hosts`;
const hostsMounts = (h: VirtualNode) =>
  h.calls
    .filter((c) => c.method === 'CreateContainer')
    .map((c) => (c.req as { config: ContainerConfig }).config.mounts?.filter((m) => m.containerPath === '/etc/hosts'));
/** The disk answers in virtual time only. */
async function text(h: VirtualNode, path: string): Promise<string> {
  let read: string | undefined;
  h.fs.readFile(path, { bytesMax: 1 << 16 }).then(
    (bytes) => {
      read = new TextDecoder().decode(bytes);
    },
    (error: unknown) => {
      read = String(error);
    },
  );
  await h.until(`${path} is read`, () => read !== undefined);
  return read ?? '';
}

describe('/etc/hosts', () => {
  it('is written anew for each container that is created (resources trap 61)', async () => {
    await using h = await virtualNode({ manifests: { web: pod('web', { life: 'run=30s,exit=1;run=forever' }) } });
    await h.until('web runs', () => h.running('web').length === 1);
    const before = await text(h, hostsOf(h, 'web'));
    expect(before).toMatch(/^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n[\s\S]*\n\S+\tweb-n1\n$/);
    h.fs.put(hostsOf(h, 'web'), 'edited by hand\n');
    await h.until('it was restarted', () => h.status('web')?.status.containerStatuses?.[0]?.restartCount === 1, 120_000);
    await h.until('web runs again', () => h.running('web').length === 1);
    expect(await text(h, hostsOf(h, 'web'))).toBe(before);
    const mount = { containerPath: '/etc/hosts', hostPath: hostsOf(h, 'web'), readonly: false, selinuxRelabel: true };
    expect(hostsMounts(h)).toEqual([[mount], [mount]]);
  });

  it('is left to a container that mounts one of its own (resources trap 61)', async () => {
    const manifest = pod('own', {
      container: { volumeMounts: [{ name: 'mine', mountPath: '/etc/hosts' }] },
      spec: { volumes: [{ name: 'mine', hostPath: { path: '/srv/hosts' } }] },
    });
    await using h = await virtualNode({ manifests: { own: manifest } });
    await h.until('own runs', () => h.running('own').length === 1);
    expect(hostsMounts(h)).toEqual([[expect.objectContaining({ hostPath: '/srv/hosts' })]]);
    expect(h.fs.has(hostsOf(h, 'own'))).toBe(false);
  });
});
