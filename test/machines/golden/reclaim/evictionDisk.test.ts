/**
 * Where eviction reads what is left of each resource (resources and volumes 3.2), and what is reclaimed before a pod has to
 * go (3.4), a row for each signal on each layout of disks. Read by the actor's own reader, and done by the actor itself.
 */
import { evictionSpec } from '../../../../src/actors/reclaim/eviction/eviction.ts';
import { Readings } from '../../../../src/actors/reclaim/eviction/readings.ts';
import { criClient } from '../../../../src/actors/runtime/client.ts';
import { SIGNALS, type Signal } from '../../../../src/machines/config/evictionSignals.ts';
import { podsView } from '../../../../src/machines/pods/manager/messages.ts';
import { pressureView } from '../../../../src/machines/reclaim/eviction/messages.ts';
import { metText } from '../../../../src/machines/reclaim/eviction/pass.ts';
import type { Threshold } from '../../../../src/machines/reclaim/eviction/thresholds.ts';
import { containerGcAddr, imageGcAddr } from '../../../../src/machines/reclaim/messages.ts';
import { type CriView, criView } from '../../../../src/machines/runtime/cri/messages.ts';
import { run, views } from '../../../edge/harness.ts';
import { memFs } from '../../../integration/memFs.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { collectingLogger, fakePorts, type LogLine } from '../../../supervision/fakePorts.ts';
import { goldenTable } from '../table.ts';

const ROOT = '/var/lib/kubelet';
const IMAGES = '/var/lib/images';
const ROOT_DEV = 1;
/** Where images are: on the node's own file system, on one of their own, or where this process sees nothing. */
const LAYOUTS = ['single', 'dedicated', 'split', 'unseen'] as const;
type Layout = (typeof LAYOUTS)[number];
const LAYOUT_NAMES: Readonly<Record<Layout, string>> = {
  single: 'a single file system',
  dedicated: 'images on one of their own',
  split: 'images on one of their own, containers on that of the node',
  unseen: 'images where the node sees nothing',
};

interface Lacks {
  memory?: boolean;
  tasks?: boolean;
  /** The runtime does not answer just now. */
  runtime?: boolean;
  /** File systems that do not count them. */
  inodes?: boolean;
  /** File systems cannot be read. */
  statfs?: boolean;
}
const threshold = (signal: Signal): Threshold => ({ signal, value: { kind: 'quantity', text: '1Ti' }, graceMs: 0, minReclaim: null });

function node(layout: Layout, lacks: Lacks = {}) {
  const time = virtualTime();
  const fs = memFs(time.clock);
  const read: string[] = [];
  const lines: LogLine[] = [];
  const ports = fakePorts({
    clock: time.clock,
    log: collectingLogger(lines),
    fs: {
      ...fs,
      stat: async (path) => {
        if (path === IMAGES && layout === 'unseen') throw new Error('ENOENT');
        fs.makeDir(path);
        return { ...(await fs.stat(path)), dev: path === IMAGES && layout !== 'single' ? ROOT_DEV + 1 : ROOT_DEV };
      },
      statfs: async (path) => {
        read.push(`file system at ${path}`);
        if (lacks.statfs === true) throw new Error(`EIO: ${path}`);
        const inodesTotal = lacks.inodes === true ? 0 : 90;
        return { bytesTotal: 1000, bytesAvailable: path === IMAGES ? 20 : 10, inodesTotal, inodesFree: path === IMAGES ? 4 : 3 };
      },
    },
  });
  ports.host.memory = () => {
    read.push('memory of the kernel');
    if (lacks.memory === true) throw new Error('ENOENT: /proc/meminfo');
    return { capacityBytes: 4000, availableBytes: 40 };
  };
  ports.host.tasks = () => {
    read.push('processes of the kernel');
    if (lacks.tasks === true) throw new Error('ENOENT: /proc/loadavg');
    return { current: 300, max: 310 };
  };
  const registry = views();
  const given: string[] = [];
  registry.set(criView, { state: lacks.runtime === true ? 'lost' : 'ready' } as CriView);
  registry.set(podsView, { records: new Map(), sourcesReady: true });
  registry.answerer = (to) => {
    if (to === imageGcAddr.path) {
      given.push('images that nobody uses');
      return { kind: 'reply', value: { freedBytes: 0 } };
    }
    read.push('ImageFsInfo of the runtime');
    const containerFilesystems = layout === 'split' ? [{ fsId: { mountpoint: ROOT } }] : [];
    return { kind: 'reply', value: [{ ok: true, value: { imageFilesystems: [{ fsId: { mountpoint: IMAGES } }], containerFilesystems } }] };
  };
  registry.send = (to, event) => {
    if (to.path === containerGcAddr.path) given.push('dead containers');
    if (event.type === 'event.record') given.push(`said: ${(event as unknown as { event: { message: string } }).event.message}`);
    return 'delivered';
  };
  return { ports, registry, read, given, lines, time };
}

const observed =
  (layout: Layout, signal: Signal, lacks: Lacks = {}) =>
  async () => {
    const { ports, registry, read, lines } = node(layout, lacks);
    const readings = new Readings({
      ports,
      cri: criClient(registry),
      runtimeUp: () => registry.read(criView)?.value.state === 'ready',
      log: ports.log,
      rootDir: ROOT,
      podsGroup: () => undefined,
      separateDisks: true,
      thresholds: [threshold(signal)],
    });
    const seen = await readings.observe(new AbortController().signal);
    const told = [...seen].map(([name, { available, capacity }]) => ({ signal: name, available, capacity }));
    return { read, seen: told, said: lines.map((l) => l.msg) };
  };

/** A threshold that is never met: it is what the place of images is found out for. */
const IMAGES_ENOUGH: Threshold = { ...threshold('imagefs.available'), value: { kind: 'quantity', text: '1' } };

/** A whole pass of the actor, of a node on which no pod may be evicted. */
const reclaiming = (layout: Layout, thresholds: readonly Threshold[]) => async () => {
  const { ports, registry, given, time } = node(layout);
  const actor = run(
    evictionSpec({
      thresholds,
      unseen: [],
      conflicting: [],
      transitionMs: 300_000,
      maxGraceSeconds: 0,
      rootDir: ROOT,
      fromCri: false,
      podsGroup: () => undefined,
      podGroup: () => undefined,
      separateDisks: true,
      podLogsDir: '/var/log/pods',
      limits: false,
      watchMemory: false,
      cluster: false,
    }),
    ports,
    registry,
  );
  await time.settle();
  for (let seconds = 0; seconds < 60 && actor.value() !== 'resting'; seconds++) await time.advance(1_000);
  const pressures = registry.read(pressureView)?.value.pressures ?? [];
  actor.abort();
  return { ended: actor.value(), pressures, given };
};
const reclaimed = (layout: Layout, signal: Signal) => reclaiming(layout, [threshold(signal), IMAGES_ENOUGH]);

const onEach = (layouts: readonly Layout[], row: (layout: Layout, signal: Signal) => () => unknown) =>
  Object.fromEntries(SIGNALS.flatMap((s) => layouts.map((l): [string, () => unknown] => [`${s}: ${LAYOUT_NAMES[l]}`, row(l, s)])));
const prefixed = (prefix: string, rows: Record<string, () => unknown>) =>
  Object.fromEntries(Object.entries(rows).map(([name, row]) => [`${prefix} ${name}`, row]));

goldenTable('readings of eviction, and what is reclaimed, are as recorded', 'reclaim/evictionDisk', {
  ...prefixed('3.2', onEach(LAYOUTS, observed)),
  '3.2 memory.available: the kernel does not tell': observed('single', 'memory.available', { memory: true }),
  '3.2 pid.available: the kernel does not tell': observed('single', 'pid.available', { tasks: true }),
  '3.2 nodefs.available: the file system cannot be read': observed('single', 'nodefs.available', { statfs: true }),
  '3.2 nodefs.inodesFree: inodes are not counted there': observed('single', 'nodefs.inodesFree', { inodes: true }),
  '3.2 imagefs.available: the runtime does not answer': observed('dedicated', 'imagefs.available', { runtime: true }),
  '3.2 imagefs.inodesFree: inodes are not counted there': observed('dedicated', 'imagefs.inodesFree', { inodes: true }),
  '3.2 the layout is found out once': async () => {
    const { ports, registry, read } = node('dedicated');
    const thresholds = [threshold('imagefs.available')];
    const readings = new Readings({
      ports,
      cri: criClient(registry),
      runtimeUp: () => true,
      log: ports.log,
      rootDir: ROOT,
      podsGroup: () => undefined,
      separateDisks: true,
      thresholds,
    });
    for (let i = 0; i < 2; i++) await readings.observe(new AbortController().signal);
    return { read, disks: readings.disks };
  },
  '3.2 what is short, in words': () =>
    SIGNALS.map((signal) => metText({ threshold: threshold(signal), observation: { available: 10, capacity: 1000, atMs: 0 } })),
  ...prefixed('3.4', onEach(LAYOUTS, reclaimed)),
  '3.4 nodefs.available: images on one of their own, and no threshold is about them': reclaiming('dedicated', [
    threshold('nodefs.available'),
  ]),
});
