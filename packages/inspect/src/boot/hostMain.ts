/** The process that reads the host's figures and tells them to its parent; it ends with it. */
import { readdir } from 'node:fs/promises';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { outliveSignals } from '@actorlet/process/src/signals.ts';
import si from 'systeminformation';
import type { HostFigures } from '../feed/frames.ts';
import type { HostReading } from './host.ts';

const EVERY_MS = 2_000;
const DISKS_MAX = 12;
const LINKS_MAX = 12;

const daemonPid = Number(process.argv[2]);
/** Pods bring an overlay and some binds each: those are no disks. */
const NO_DISK = /^(overlay|tmpfs|shm|proc|sysfs|cgroup)/;

/** A shell is run for each of them, so not for the two that each pod has. */
async function links(): Promise<string> {
  const names = await readdir('/sys/class/net');
  return names
    .filter((name) => !name.startsWith('veth'))
    .slice(0, LINKS_MAX)
    .join(',');
}

async function figures(): Promise<HostFigures> {
  const [load, memory, disks, io, network] = await Promise.all([
    si.currentLoad(),
    si.mem(),
    si.fsSize(),
    si.fsStats().catch(() => null),
    links().then((names) => si.networkStats(names)),
  ]);
  const usage = await si.processes().then(
    (all) => all.list.find((p) => p.pid === daemonPid),
    () => undefined,
  );
  return {
    cpu: { percent: load.currentLoad, cores: load.cpus.map((c) => c.load), load1: load.avgLoad },
    memory: { totalBytes: memory.total, availableBytes: memory.available, swapUsedBytes: memory.swapused },
    disks: disks
      .filter((d) => !NO_DISK.test(d.type) && d.size > 0)
      .slice(0, DISKS_MAX)
      .map((d) => ({ mount: d.mount, sizeBytes: d.size, usedBytes: d.used })),
    io: io === null ? null : { readBytesPerS: io.rx_sec ?? 0, writeBytesPerS: io.wx_sec ?? 0 },
    network: network
      .filter((n) => n.operstate !== 'down')
      .map((n) => ({ name: n.iface, rxBytesPerS: n.rx_sec ?? 0, txBytesPerS: n.tx_sec ?? 0 })),
    daemon: usage === undefined ? null : { rssBytes: usage.memRss * 1024, cpuPercent: usage.cpu },
  };
}

async function reading(): Promise<HostReading> {
  try {
    return { figures: await figures(), error: '' };
  } catch (error) {
    return { figures: null, error: messageOf(error) };
  }
}

outliveSignals();
process.on('disconnect', () => process.exit(0));
for (;;) {
  const read = await reading();
  if (!process.connected) break;
  process.send?.(read);
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}
