/** What volumes of pods use: files that are counted, drivers that are asked, how often, and what one that hangs holds up. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { volumeUsage } from '../../src/actors/services/client.ts';
import { createClock, createEntropy } from '../../src/boot/dependencies/clock.ts';
import { createGrpcCsi } from '../../src/boot/dependencies/csi/grpcCsi.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { createDiskUsage, readFigures } from '../../src/boot/dependencies/machine/diskUsage.ts';
import type { EventsEvent } from '../../src/machines/foundation/messages.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { podRef } from '../../src/machines/pod/names.ts';
import { pathName } from '../../src/machines/pod/pathName.ts';
import { peerViews } from '../../src/machines/pod/peers/peers.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { type CsiDriver, driversView } from '../../src/machines/services/plugins/messages.ts';
import { type VolumeSummary, volumesView } from '../../src/machines/services/volumes/messages.ts';
import type { DiskUsage } from '../../src/ports/machine/diskUsage.ts';
import { eachFolder } from '../eachFolder.ts';
import { views } from '../edge/harness.ts';
import { pod, record, viewOfPods } from '../edge/metrics/samples.ts';
import { fakePorts } from '../supervision/fakePorts.ts';
import { type DriverOptions, startDriver, type TestDriver } from './csiDriver.ts';

const NAME = 'csi.example.com';
const MINUTE_MS = 60_000;
const UID = 'uid-web';

let dir: string;
let gone: AbortController;
const drivers: TestDriver[] = [];
eachFolder((made) => {
  dir = made;
  gone = new AbortController();
});
afterEach(async () => {
  gone.abort();
  for (const driver of drivers.splice(0)) await driver.stop();
});

const summary = (plugin: string, name: string, state = 'mounted'): VolumeSummary => ({
  plugin,
  name,
  state,
  message: '',
  sinceMs: 0,
  servedBy: plugin,
});
const web = (volumes: Pod['spec']['volumes']): Pod => {
  const made = pod('web');
  return { ...made, spec: { ...made.spec, ...(volumes === undefined ? {} : { volumes }) } };
};
function place(plugin: string, name: string, files: Record<string, string>): void {
  const at = join(dir, 'pods', UID, 'volumes', plugin, name);
  mkdirSync(at, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(at, file), text);
}
function dataOf(name: string, driver: string, handle = 'vol-1'): void {
  const data = { driverName: driver, volumeHandle: handle, specVolID: name, volumeLifecycleMode: 'Persistent' };
  place('kubernetes.io~csi', name, { 'vol_data.json': JSON.stringify(data) });
}

/** Its clock is turned by hand; disks are those of the machine unless a fake is given. */
type Source = {
  volumes?: readonly VolumeSummary[];
  of?: Pod;
  periodMs?: number;
  health?: boolean;
  silent?: boolean;
  diskUsage?: DiskUsage;
};
function source(o: Source = {}) {
  const ports = fakePorts({
    fs: createHostFs(),
    entropy: createEntropy(),
    diskUsage: o.diskUsage ?? createDiskUsage({ clock: createClock() }),
    csi: createGrpcCsi({ clock: createClock() }),
  });
  const registry = views();
  registry.set(podsView, viewOfPods([record(o.of ?? web([]))]));
  registry.set(volumesView, new Map([[UID, o.volumes ?? []]]));
  const events: EventsEvent['event'][] = [];
  registry.send = (_, e) => {
    events.push((e as unknown as EventsEvent).event);
    return 'delivered';
  };
  const ctx = { ports, registry, log: ports.log, signal: gone.signal, publish: registry.set.bind(registry) };
  const read = volumeUsage(ctx, { rootDir: dir, periodMs: o.periodMs ?? MINUTE_MS, health: o.health ?? false, silent: o.silent ?? false });
  /** What the pod's volumes use, by name, with those that count as its own use of the disk. */
  const told = async () => {
    const mine = (await read()).get(UID);
    return { volumes: new Map((mine?.all ?? []).map((s) => [s.name, s])), ephemeral: (mine?.ephemeral ?? []).map((s) => s.name) };
  };
  return { ports, registry, read, told, events };
}
async function driver(o: Partial<DriverOptions> = {}): Promise<{ driver: TestDriver; registered: Map<string, CsiDriver> }> {
  const socket = join(dir, `${drivers.length}.sock`);
  const started = await startDriver({ name: NAME, socket, capabilities: ['GET_VOLUME_STATS'], ...o });
  drivers.push(started);
  const registered: CsiDriver = { name: NAME, socket, endpoint: socket, version: '1.0.0', nodeId: 'n', volumesMax: 0, topology: {} };
  return { driver: started, registered: new Map([[NAME, registered]]) };
}
const ANSWER = {
  usage: [
    { unit: 'BYTES', available: '70', total: '100', used: '30' },
    { unit: 'INODES', available: '7', total: '10', used: '3' },
  ],
};

describe('volumes of our own', () => {
  it('are counted file by file, with the room of the file system they lie on', async () => {
    place('kubernetes.io~empty-dir', 'scratch', { a: 'x'.repeat(64 * 1024), b: 'y' });
    place('kubernetes.io~secret', 'keys', { key: 'k' });
    const volumes = [summary('kubernetes.io~empty-dir', 'scratch'), summary('kubernetes.io~secret', 'keys')];
    const s = source({
      volumes,
      of: web([
        { name: 'scratch', emptyDir: {} },
        { name: 'keys', secret: { secretName: 'k' } },
      ]),
    });
    const { volumes: found, ephemeral } = await vi.waitFor(async () => {
      const answer = await s.told();
      expect([...answer.volumes.keys()].sort()).toEqual(['keys', 'scratch']);
      return answer;
    }, 30_000);
    const scratch = found.get('scratch');
    expect(scratch?.inodesUsed).toBe(3);
    expect(scratch?.usedBytes).toBeGreaterThanOrEqual(65 * 1024);
    expect(scratch?.capacityBytes).toBeGreaterThan(scratch?.usedBytes ?? Number.NaN);
    expect(found.get('keys')?.inodesUsed).toBe(2);
    expect(found.get('keys')).not.toHaveProperty('pvcRef');
    // As in the reference: secrets are no use of the disk, though they lie on one.
    expect(ephemeral).toEqual(['scratch']);
  });
  it('in memory, those of others and those that do not stand are no use of the disk, or not told', async () => {
    place('kubernetes.io~empty-dir', 'memory', {});
    const volumes = [
      summary('kubernetes.io~empty-dir', 'memory'),
      summary('kubernetes.io~host-path', 'host'),
      summary('kubernetes.io~empty-dir', 'later', 'mounting'),
    ];
    const s = source({ volumes, of: web([{ name: 'memory', emptyDir: { medium: 'Memory' } }]) });
    const { volumes: found, ephemeral } = await s.told();
    await vi.waitFor(async () => expect([...(await s.told()).volumes.keys()]).toEqual(['memory']), 30_000);
    expect([...found.keys()]).not.toContain('host');
    expect(ephemeral).toEqual([]);
  });
  it('are measured once in a period, and what nobody changes once and for all', async () => {
    const measured: string[] = [];
    const diskUsage: DiskUsage = {
      async measure(path, { tree }) {
        measured.push(`${path.slice(path.lastIndexOf('/') + 1)} ${tree ? 'tree' : 'room'}`);
        return { bytesTotal: 9, bytesAvailable: 4, bytesUsed: 5, inodesTotal: 3, inodesFree: 1, inodesUsed: 2 };
      },
    };
    const volumes = [
      summary('kubernetes.io~empty-dir', 'scratch'),
      summary('kubernetes.io~configmap', 'settings'),
      summary('kubernetes.io~local-volume', 'disk'),
    ];
    const s = source({ volumes, diskUsage, of: web([{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }]) });
    expect((await s.told()).volumes.get('disk')).toMatchObject({ usedBytes: 5, pvcRef: { name: 'data', namespace: 'default' } });
    expect(measured.sort()).toEqual(['disk room', 'scratch tree', 'settings tree']);
    await s.told();
    expect(measured).toHaveLength(3);
    await s.ports.advance(MINUTE_MS);
    await s.told();
    expect(measured.slice(3).sort()).toEqual(['disk room', 'scratch tree']);
    s.registry.set(volumesView, new Map());
    expect((await s.told()).volumes.size).toBe(0);
  });
  it('are not looked at with a period of nothing or less', async () => {
    for (const periodMs of [0, -1_000]) {
      const s = source({ volumes: [summary('kubernetes.io~empty-dir', 'scratch')], periodMs });
      expect(await s.read()).toEqual(new Map());
    }
  });
  it('that do not answer hold up neither the others nor the answer', async () => {
    const figures = { bytesTotal: 9, bytesAvailable: 4, bytesUsed: 5, inodesTotal: 3, inodesFree: 1, inodesUsed: 2 };
    const stuck = Promise.withResolvers<typeof figures>();
    const diskUsage: DiskUsage = { measure: async (path) => (path.endsWith('stuck') ? stuck.promise : figures) };
    const volumes = [summary('kubernetes.io~empty-dir', 'stuck'), summary('kubernetes.io~empty-dir', 'well')];
    const s = source({ volumes, diskUsage });
    const first = s.told();
    await s.ports.advance(2_000);
    expect([...(await first).volumes.keys()]).toEqual(['well']);
    // It is not asked a second time meanwhile.
    await s.ports.advance(MINUTE_MS);
    expect([...(await s.told()).volumes.keys()]).toEqual(['well']);
    stuck.resolve(figures);
    await vi.waitFor(async () => expect([...(await s.told()).volumes.keys()].sort()).toEqual(['stuck', 'well']), 30_000);
  });
  it('that cannot be measured are named once', async () => {
    const s = source({ volumes: [summary('kubernetes.io~empty-dir', 'scratch')] });
    const said = () => s.ports.lines.filter((l) => l.msg === 'what a volume uses could not be had');
    await vi.waitFor(async () => {
      await s.told();
      expect(said()).toMatchObject([{ fields: { volume: 'scratch', uid: UID } }]);
    }, 30_000);
  });
});

describe('volumes of drivers', () => {
  const claimed = web([{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }]);
  it('are what their driver says, asked for the path at which it has published', async () => {
    const { driver: d, registered } = await driver({ stats: () => ANSWER });
    dataOf('pv-1', NAME);
    const stands = { plugin: 'kubernetes.io~csi', name: pathName('pv-1') };
    const s = source({ volumes: [{ ...summary('kubernetes.io~local-volume', 'disk'), stands }], of: claimed });
    s.registry.set(driversView, registered);
    await vi.waitFor(async () => {
      expect((await s.told()).volumes.get('disk')).toMatchObject({
        ...{ availableBytes: 70, capacityBytes: 100, usedBytes: 30, inodesFree: 7, inodes: 10, inodesUsed: 3 },
        pvcRef: { name: 'data', namespace: 'default' },
      });
    }, 30_000);
    const asked = d.calls.filter((c) => c.method === 'NodeGetVolumeStats').map((c) => c.request);
    const volumePath = join(dir, 'pods', UID, 'volumes/kubernetes.io~csi/pv-1/mount');
    expect(asked).toMatchObject([{ volumeId: 'vol-1', volumePath, stagingTargetPath: '' }]);
  });
  it('of one that cannot tell are left out, without a question', async () => {
    const { driver: d, registered } = await driver({ capabilities: ['STAGE_UNSTAGE_VOLUME'] });
    dataOf('disk', NAME);
    const s = source({ volumes: [summary('kubernetes.io~csi', 'disk')], of: claimed });
    s.registry.set(driversView, registered);
    await vi.waitFor(async () => {
      expect((await s.told()).volumes.size).toBe(0);
      expect(d.calls.map((c) => c.method)).toEqual(['NodeGetCapabilities']);
    }, 30_000);
    expect(s.ports.lines).toEqual([]);
  });
  it('are told with their health where that is asked for and the driver says it', async () => {
    const stats = () => ({ ...ANSWER, volumeCondition: { abnormal: true, message: 'of the disk' } });
    const { registered } = await driver({ stats, capabilities: ['GET_VOLUME_STATS', 'VOLUME_CONDITION'] });
    dataOf('disk', NAME);
    for (const which of ['told', 'shown', 'off']) {
      const [health, silent] = [which !== 'off', which === 'shown'];
      const s = source({ volumes: [summary('kubernetes.io~csi', 'disk')], of: claimed, health, silent });
      s.registry.set(driversView, registered);
      const disk = await vi.waitFor(async () => {
        const found = (await s.told()).volumes.get('disk');
        if (found === undefined) throw new Error('not there yet');
        return found;
      }, 30_000);
      expect(disk.volumeHealthStats).toEqual(health ? { abnormal: true } : undefined);
      const about = { type: 'Warning', reason: 'VolumeConditionAbnormal', message: 'Volume disk: of the disk' };
      // Of two servers of a node, one tells it.
      expect(s.events[0]).toEqual(which === 'told' ? { ...about, pod: podRef(claimed) } : undefined);
      // Nobody asks for figures any more, and the pod's user hears of it all the same.
      const before = s.events.length;
      await s.ports.advance(2 * MINUTE_MS);
      if (which === 'told') await vi.waitFor(() => expect(s.events.length).toBeGreaterThan(before), 30_000);
      else expect(s.events).toEqual([]);
    }
  });
  it('that fail, or whose driver is not here, are named and hold up nobody', async () => {
    dataOf('disk', NAME);
    const s = source({ volumes: [summary('kubernetes.io~csi', 'disk')], of: claimed });
    expect((await s.told()).volumes.size).toBe(0);
    await vi.waitFor(
      () => expect(s.ports.lines).toMatchObject([{ fields: { err: expect.stringContaining(`driver name ${NAME} not found`) } }]),
      30_000,
    );
  });
  it('that a driver refuses are kept for `why`, with its words', async () => {
    const stats = (): object => {
      throw new Error('no figures today');
    };
    const { registered } = await driver({ stats });
    dataOf('disk', NAME);
    const s = source({ volumes: [summary('kubernetes.io~csi', 'disk')], of: claimed });
    s.registry.set(driversView, registered);
    await s.told();
    const words = () => [...(s.registry.read(peerViews.volumeStats)?.value.values() ?? [])];
    const error = 'rpc error: code = Internal desc = no figures today';
    await vi.waitFor(
      () => expect(words()).toMatchObject([{ peer: `CSI driver ${NAME}`, call: 'NodeGetVolumeStats', uid: UID, error }]),
      30_000,
    );
  });
});

describe('the words of the helper', () => {
  it.each([
    ['of a tree', '4096 100 40 30 50 20\n12\t/x\n3\t/x\n', true, { bytesUsed: 12 * 1024, inodesUsed: 3 }],
    ['of a file system', '4096 100 40 30 50 20\n', false, { bytesUsed: 60 * 4096, inodesUsed: 30 }],
  ])('%s are figures', (_, text, tree, used) => {
    const room = { bytesTotal: 100 * 4096, bytesAvailable: 30 * 4096, inodesTotal: 50, inodesFree: 20 };
    expect(readFigures(text, tree)).toEqual({ ...room, ...used });
  });
  it.each([
    ['nothing', '', false],
    ['too few', '4096 100 40\n', false],
    ['no tree', '4096 100 40 30 50 20\n', true],
    ['words', 'stat: cannot\n', false],
  ])('that are none (%s) are refused', (_, text, tree) => {
    expect(readFigures(text, tree)).toBeNull();
  });
});
