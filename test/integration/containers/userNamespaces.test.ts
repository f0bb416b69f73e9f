/**
 * Pods with users of their own (`hostUsers: false`) on a whole node in virtual time: which ids they get, that no two get
 * the same, that a pod keeps its ids over restarts of the daemon, and what becomes of them where the runtime cannot.
 */
import { describe, expect, it } from 'vitest';
import type { UserNamespace } from '../../../src/machines/wire/cri.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { cluster, create, created, createReady, drop, events, inApi, isReady } from '../cluster/clusterPods.ts';
import { ROOT, type VirtualNode } from '../virtualNode.ts';

const CLAIMS = `${ROOT}/user-namespaces`;
const OWN_USERS = { spec: { hostUsers: false } };
const CAN = {
  features: { runtimeHandlers: [{ name: '', features: { recursiveReadOnlyMounts: false, userNamespaces: true } }] },
};
const CANNOT = "can't set `spec.hostUsers: false`, runtime does not support user namespaces";

const from = (hostId: number): UserNamespace => {
  const mapping = { hostId, containerId: 0, length: 65_536 };
  return { mode: 'POD', uids: [mapping], gids: [mapping] };
};
const sandboxes = (h: VirtualNode, name: string) =>
  h.calls
    .filter((c) => c.method === 'RunPodSandbox')
    .map((c) => (c.req as CriRequest<'RunPodSandbox'>).config)
    .filter((c) => c.metadata.name === name);
const idsOf = (h: VirtualNode, name: string) =>
  sandboxes(h, name).map((s) => s.linux?.securityContext?.namespaceOptions?.usernsOptions?.uids[0]?.hostId);
function killSandbox(h: VirtualNode, name: string): void {
  const [sandbox] = h.runtime.dump().sandboxes.filter((s) => s.name === name);
  const call = { timeoutMs: null, signal: new AbortController().signal };
  void h.runtime.connect().call('StopPodSandbox', { podSandboxId: sandbox?.id ?? '' }, call);
}
const names = async (h: VirtualNode, dir: string) => {
  let found: string[] | undefined;
  h.fs.readdir(dir).then(
    (list) => {
      found = list;
    },
    () => {
      found = [];
    },
  );
  await h.until('listed', () => found !== undefined);
  return found ?? [];
};

describe('a pod with users of its own', () => {
  it('gets ids that the host does not use, for its sandbox, its containers and what they mount', async () => {
    await using h = await cluster({ hollow: CAN });
    create(h, 'own', {
      spec: { hostUsers: false, volumes: [{ name: 'v', emptyDir: {} }] },
      container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    });
    create(h, 'shared');
    await h.until('Ready', () => isReady(h, 'own') && isReady(h, 'shared'));
    expect(sandboxes(h, 'own')[0]?.linux?.securityContext?.namespaceOptions?.usernsOptions).toEqual(from(65_536));
    const [container] = created(h, 'own');
    expect(container?.linux?.securityContext?.namespaceOptions?.usernsOptions).toEqual(from(65_536));
    const { uids, gids } = from(65_536);
    expect(container?.mounts?.length).toBeGreaterThan(1);
    for (const mount of container?.mounts ?? []) expect(mount).toMatchObject({ uidMappings: uids, gidMappings: gids });
    expect(sandboxes(h, 'shared')[0]?.linux?.securityContext?.namespaceOptions).not.toHaveProperty('usernsOptions');
    for (const mount of created(h, 'shared')[0]?.mounts ?? []) expect(mount).not.toHaveProperty('uidMappings');
    const node = h.kube.handle({ verb: 'GET', path: '/api/v1/nodes/n1' });
    expect(node).toMatchObject({ body: { status: { runtimeHandlers: [{ name: '', features: { userNamespaces: true } }] } } });
  });

  it('shares them with nobody, also among many that come at once', async () => {
    await using h = await cluster({ hollow: CAN });
    const all = Array.from({ length: 12 }, (_, i) => `p${i}`);
    for (const name of all) create(h, name, OWN_USERS);
    await h.until('Ready', () => all.every((name) => isReady(h, name)));
    const ids = all.flatMap((name) => idsOf(h, name));
    expect(new Set(ids).size).toBe(all.length);
    expect(ids.every((id) => id !== undefined && id >= 65_536 && id % 65_536 === 0)).toBe(true);
  });

  it('keeps them over a restart of the daemon and a new sandbox, and others do not get them', async () => {
    await using h = await cluster({ hollow: CAN });
    await createReady(h, 'own', OWN_USERS);
    await h.restart();
    await createReady(h, 'other', OWN_USERS);
    killSandbox(h, 'own');
    await h.until('a new sandbox', () => idsOf(h, 'own').length === 2 && isReady(h, 'own'));
    expect(idsOf(h, 'own')).toEqual([65_536, 65_536]);
    expect(idsOf(h, 'other')).toEqual([131_072]);
  });

  it('keeps those that the kubelet gave it, which writes them in the directory of the pod alone', async () => {
    await using h = await cluster({ hollow: CAN });
    await createReady(h, 'own', OWN_USERS);
    await h.crash();
    for (const path of h.fs.below(CLAIMS)) h.fs.drop(path);
    await h.boot();
    await createReady(h, 'other', OWN_USERS);
    expect(idsOf(h, 'other')).toEqual([131_072]);
    killSandbox(h, 'own');
    await h.until('a new sandbox', () => idsOf(h, 'own').length === 2 && isReady(h, 'own'));
    expect(idsOf(h, 'own')).toEqual([65_536, 65_536]);
  });

  it('keeps those that the kubelet drew from all there are', async () => {
    await using h = await cluster({ hollow: CAN });
    const pod = await createReady(h, 'own', OWN_USERS);
    await h.crash();
    for (const path of h.fs.below(CLAIMS)) h.fs.drop(path);
    const mapping = { hostId: 1_653_080_064, containerId: 0, length: 65_536 };
    h.fs.put(`${ROOT}/pods/${pod.metadata.uid}/userns`, JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] }));
    await h.boot();
    killSandbox(h, 'own');
    await h.until('a new sandbox', () => idsOf(h, 'own').length === 2 && isReady(h, 'own'));
    expect(idsOf(h, 'own')).toEqual([65_536, mapping.hostId]);
  });

  it('gets none of those that another pod has by a run of another length', async () => {
    await using h = await cluster({ hollow: CAN });
    const pod = await createReady(h, 'old');
    const mapping = { hostId: 98_304, containerId: 0, length: 65_536 };
    h.fs.put(`${ROOT}/pods/${pod.metadata.uid}/userns`, JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] }));
    await createReady(h, 'own', OWN_USERS);
    expect(idsOf(h, 'own')).toEqual([196_608]);
  });

  it('keeps them for its next container, also when what was written in its directory is gone', async () => {
    await using h = await cluster({ hollow: CAN });
    const pod = await createReady(h, 'own', OWN_USERS);
    h.fs.drop(`${ROOT}/pods/${pod.metadata.uid}/userns`);
    const [running] = h.running();
    h.runtime.exit(running?.id ?? '', { exitCode: 1 });
    await h.until('another container', () => created(h, 'own').length === 2 && isReady(h, 'own'));
    expect(created(h, 'own')[1]?.linux?.securityContext?.namespaceOptions?.usernsOptions).toEqual(from(65_536));
    expect(idsOf(h, 'own')).toEqual([65_536]);
  });

  it('releases them when its directory is gone', async () => {
    await using h = await cluster({ hollow: CAN });
    await createReady(h, 'own', OWN_USERS);
    expect(await names(h, CLAIMS)).toEqual(['65536']);
    drop(h, 'pods/own', 1);
    await h.until('gone', () => inApi(h, 'own') === undefined);
    await h.advance(70_000);
    expect(await names(h, CLAIMS)).toEqual([]);
    await createReady(h, 'next', OWN_USERS);
    expect(idsOf(h, 'next')).toEqual([65_536]);
  });

  it('releases them when it has ended, though it is not deleted', async () => {
    // As many runs of ids as pods.
    await using h = await cluster({ hollow: CAN, config: { maxPods: 1 } });
    create(h, 'job', { life: 'run=1s,exit=0', spec: { hostUsers: false, restartPolicy: 'Never' } });
    await h.until('it has ended', () => inApi(h, 'job')?.status.phase === 'Succeeded');
    create(h, 'next', OWN_USERS);
    await h.until('Ready', () => isReady(h, 'next'), 60_000);
    expect([idsOf(h, 'job'), idsOf(h, 'next')]).toEqual([[65_536], [65_536]]);
    await h.restart();
    await h.advance(60_000);
    expect([inApi(h, 'job')?.status.phase, isReady(h, 'next')]).toEqual(['Succeeded', true]);
    expect(await names(h, CLAIMS)).toEqual(['65536']);
  });

  it('CRI trap 12: fails closed where the runtime does not say that it can, and starts once it does', async () => {
    await using h = await cluster();
    create(h, 'own', OWN_USERS);
    create(h, 'shared');
    await h.until('said', () => events(h, 'FailedCreatePodSandBox').length > 0 && isReady(h, 'shared'));
    expect(events(h, 'FailedCreatePodSandBox')).toEqual([`Failed to create pod sandbox: ${CANNOT}`]);
    expect(sandboxes(h, 'own')).toEqual([]);
    expect(inApi(h, 'own')?.status.phase).toBe('Pending');
    h.faults.answer = (method, value) => (method === 'Status' ? { ...(value as object), ...CAN.features } : value);
    await h.until('Ready', () => isReady(h, 'own'), 120_000);
  });

  it('fails closed where what was written of it cannot be its own, and runs when that is put right', async () => {
    await using h = await cluster({ hollow: CAN });
    const pod = await createReady(h, 'own', OWN_USERS);
    const mapping = { hostId: 0, containerId: 0, length: 65_536 };
    const path = `${ROOT}/pods/${pod.metadata.uid}/userns`;
    h.fs.put(path, JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] }));
    killSandbox(h, 'own');
    await h.until('said', () => events(h, 'FailedCreatePodSandBox').length > 0);
    expect(events(h, 'FailedCreatePodSandBox')[0]).toBe(
      "Failed to create pod sandbox: user namespace: invalid user namespace configuration: id 0 of the host is not one where a pod's ids begin",
    );
    expect(idsOf(h, 'own')).toEqual([65_536]);
    h.fs.drop(path);
    await h.until('Ready', () => idsOf(h, 'own').length === 2 && isReady(h, 'own'), 120_000);
    expect(idsOf(h, 'own')).toEqual([65_536, 65_536]);
  });
});
