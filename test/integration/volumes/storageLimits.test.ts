/** Pods that write more to the disk than their own limits allow, on a whole node in virtual time that is short of nothing. */
import { describe, expect } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { DiskUsage } from '../../../src/ports/machine/diskUsage.ts';
import { cluster, create, createUp, dirOf, events, failed, inApi, listEnded, up } from '../cluster/clusterPods.ts';
import { itOnCluster as it } from '../onNode.ts';
import { pod as manifest, type VirtualNode } from '../virtualNode.ts';

const MIB = 1024 ** 2;
/** A look every minute, and some time to end the pod. */
const LOOKS_MS = 150_000;

const volume = (sizeLimit: string) => ({
  spec: { volumes: [{ name: 'scratch', emptyDir: { sizeLimit } }] },
  container: { volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] },
});
const limit = (amount: string) => ({ container: { resources: { limits: { 'ephemeral-storage': amount } } } });
const logged = (h: VirtualNode, { metadata: { namespace, name, uid } }: Pod, bytes: number) =>
  h.fs.put(`${h.node.facts.podLogsDir}/${namespace}_${name}_${uid}/main/0.log`, 'x'.repeat(bytes));
const filled = (h: VirtualNode, pod: Pod, bytes: number) => h.fs.put(`${dirOf(pod, 'empty-dir', 'scratch')}/file`, 'x'.repeat(bytes));

describe('a pod that writes more than it may', () => {
  it('resources trap 12: to a volume with a limit is evicted at the next look, not at once; others are left alone', async () => {
    // No threshold is set: its own limits hold all the same.
    await using h = await cluster({ config: { evictionHard: {} } });
    const [full, half] = [create(h, 'full', volume('1Mi')), create(h, 'half', volume('1Mi'))];
    await up(h, 'full');
    await up(h, 'half');
    await h.advance(5_000);
    filled(h, full, 2 * MIB);
    filled(h, half, MIB / 2);
    await h.advance(5_000);
    expect(inApi(h, 'full')?.status.phase).toBe('Running');
    await failed(h, 'full', LOOKS_MS);
    const message = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ';
    expect(inApi(h, 'full')?.status).toMatchObject({ reason: 'Evicted', message });
    // It is to blame itself: its controller counts the failure.
    expect(inApi(h, 'full')?.status.conditions?.filter((c) => c.type === 'DisruptionTarget')).toEqual([]);
    expect(events(h, 'Evicted')).toEqual([message]);
    expect(h.running('full')).toEqual([]);
    expect(inApi(h, 'half')?.status.phase).toBe('Running');
    expect(await h.metrics.render()).toMatch(/^kubelet_evictions\{eviction_signal="emptydirfs.limit"\} 1$/m);
  });

  it('to its logs is evicted by the limit of the pod, several at a time', async ({ h }) => {
    const pods = ['a', 'b', 'c'].map((name) => create(h, name, limit('1Mi')));
    for (const { metadata } of pods) await up(h, metadata.name);
    for (const pod of pods.slice(0, 2)) logged(h, pod, 2 * MIB);
    for (const name of ['a', 'b']) await failed(h, name, LOOKS_MS);
    const message = 'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ';
    for (const name of ['a', 'b']) expect(inApi(h, name)?.status).toMatchObject({ reason: 'Evicted', message });
    expect(events(h, 'Evicted')).toEqual([message, message]);
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'c')?.status.phase).toBe('Running');
  });

  it('is told of with ExceededGracePeriod when the runtime does not end it', async () => {
    await using h = await cluster({ config: { evictionHard: {} } });
    const full = await createUp(h, 'full', volume('1Mi'));
    const ends = new Set(['StopContainer', 'StopPodSandbox']);
    h.faults.fault = (method) => (ends.has(method) ? { kind: 'refuse', code: 2, details: 'cannot be stopped' } : undefined);
    filled(h, full, 2 * MIB);
    await h.until('evicted', () => events(h, 'Evicted').length > 0, LOOKS_MS);
    expect(events(h, 'ExceededGracePeriod')).toEqual([]);
    const message = 'Container runtime did not kill the pod within specified grace period.';
    await h.until('told of', () => events(h, 'ExceededGracePeriod').includes(message), 15_000);
    h.faults.fault = () => undefined;
    await failed(h, 'full', LOOKS_MS);
    expect(events(h, 'ExceededGracePeriod')).toEqual([message]);
  });

  it('is not held to what its ended containers wrote', async ({ h }) => {
    listEnded(h, MIB);
    const lives = { 'init-0': 'run=1s,exit=0', main: `run=1s,exit=1;run=forever,writes=${MIB / 2}` };
    await createUp(h, 'a', { ...limit('1Mi'), inits: [{}], lives });
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'a')?.status.phase).toBe('Running');
    expect(events(h, 'Evicted')).toEqual([]);
  });

  it('is not evicted when it is static or critical, nor where the feature is switched off', async ({ h }) => {
    const critical = create(h, 'critical', { ...limit('1Mi'), spec: { priority: 2_000_000_000 } });
    h.write('static', manifest('static', limit('1Mi')));
    await up(h, 'critical');
    await h.until('static runs', () => h.phase('static') === 'Running');
    logged(h, critical, 2 * MIB);
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'critical')?.status.phase).toBe('Running');
    expect(events(h, 'Evicted')).toEqual([]);
    await using off = await cluster({ config: { localStorageCapacityIsolation: false } });
    const free = create(off, 'free', limit('1Mi'));
    await up(off, 'free');
    logged(off, free, 2 * MIB);
    await off.advance(LOOKS_MS);
    expect(inApi(off, 'free')?.status.phase).toBe('Running');
  });

  it('is held to what its files take of the disk: holes take nothing, and a file of two names counts once', async ({ h }) => {
    const [sparse, linked] = [create(h, 'sparse', volume('1Mi')), create(h, 'linked', volume('1Mi'))];
    for (const name of ['sparse', 'linked']) await up(h, name);
    filled(h, sparse, 2 * MIB);
    const names = ['one', 'two'].map((name) => `${dirOf(linked, 'empty-dir', 'scratch')}/${name}`);
    for (const path of names) h.fs.put(path, 'x'.repeat(0.75 * MIB));
    const { lstat } = h.fs;
    h.fs.lstat = async (path) => {
      const info = await lstat(path);
      if (names.includes(path)) return { ...info, links: 2, ino: 7 };
      return path === `${dirOf(sparse, 'empty-dir', 'scratch')}/file` ? { ...info, diskBytes: 4096 } : info;
    };
    await h.advance(LOOKS_MS);
    expect(['sparse', 'linked'].map((name) => inApi(h, name)?.status.phase)).toEqual(['Running', 'Running']);
  });

  it('is held to all its files, however many there are', async () => {
    const figures = { bytesTotal: 0, bytesAvailable: 0, inodesTotal: 0, inodesFree: 0, bytesUsed: 2 * MIB, inodesUsed: 40_000 };
    const asked: string[] = [];
    const diskUsage: DiskUsage = {
      measure: async (path) => {
        asked.push(path);
        return figures;
      },
    };
    await using h = await cluster({ ports: (ports) => ({ ...ports, diskUsage }) });
    const [many, few] = [create(h, 'many', volume('1Mi')), create(h, 'few', volume('1Mi'))];
    for (const name of ['many', 'few']) await up(h, name);
    filled(h, few, 1);
    const dir = dirOf(many, 'empty-dir', 'scratch');
    for (let i = 0; i < 20_000; i += 1) h.fs.put(`${dir}/${i}`, '');
    await failed(h, 'many', LOOKS_MS);
    expect(inApi(h, 'few')?.status.phase).toBe('Running');
    expect(new Set(asked)).toEqual(new Set([dir]));
  });

  it('beside what a dead server serves inside its volume is measured without a look at that', async ({ h }) => {
    const pod = await createUp(h, 'a', volume('1Mi'));
    // A look at it would hold a thread for as long as the server is dead.
    const served = `${dirOf(pod, 'empty-dir', 'scratch')}/served`;
    h.fs.makeDir(served);
    h.mounts.put({ path: served, type: 'nfs4', source: 'files:/e' });
    const { lstat, readdir } = h.fs;
    const touched: string[] = [];
    const unless = async <T>(path: string, act: () => Promise<T>): Promise<T> => {
      if (path.startsWith(served)) touched.push(path);
      return path.startsWith(served) ? new Promise<T>(() => {}) : act();
    };
    h.fs.lstat = (path) => unless(path, () => lstat(path));
    h.fs.readdir = (path) => unless(path, () => readdir(path));
    filled(h, pod, 2 * MIB);
    await h.until('it is evicted', () => events(h, 'Evicted').length === 1, LOOKS_MS);
    // Nothing below it is removed before it is gone.
    expect(touched).toEqual([]);
    Object.assign(h.fs, { lstat, readdir });
    h.mounts.take(served);
    await failed(h, 'a', LOOKS_MS);
  });

  it('by what the runtime tells of pods with PodAndContainerStatsFromCRI, and of containers where it refuses that', async () => {
    await using h = await cluster({ config: { featureGates: { PodAndContainerStatsFromCRI: true } } });
    const asked = () => new Set(h.calls.map((c) => c.method).filter((m) => m.startsWith('List') && m.endsWith('Stats')));
    for (const name of ['a', 'b']) {
      const pod = create(h, name, limit('1Mi'));
      await up(h, name);
      logged(h, pod, 2 * MIB);
      await failed(h, name, LOOKS_MS);
      if (name === 'a') expect([...asked()]).toEqual(['ListPodSandboxStats']);
      h.faults.fault = (method) => (method === 'ListPodSandboxStats' ? { kind: 'refuse', code: 12, details: 'unknown method' } : undefined);
    }
    expect([...asked()]).toEqual(['ListPodSandboxStats', 'ListContainerStats']);
  });

  it('waits for a runtime that does not say what containers wrote, and the node goes on', async ({ h }) => {
    const pod = await createUp(h, 'a', limit('1Mi'));
    h.faults.fault = (method) => (method === 'ListContainerStats' ? { kind: 'refuse', code: 2, details: 'no figures' } : undefined);
    logged(h, pod, 2 * MIB);
    await h.advance(LOOKS_MS);
    expect(inApi(h, 'a')?.status.phase).toBe('Running');
    h.faults.fault = () => undefined;
    await failed(h, 'a', LOOKS_MS);
  });
});
