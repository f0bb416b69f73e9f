/** The process that reads the host's figures and tells them to its parent; it ends with it. */
import si from 'systeminformation';
import type { HostFigures } from '../../inspect/feed/frames.ts';

const EVERY_MS = 2_000;
const DISKS_MAX = 12;
const LINKS_MAX = 12;

const daemonPid = Number(process.argv[2]);
/** Pods bring an overlay and some binds each: those are no disks. */
const NO_DISK = /^(overlay|tmpfs|shm|proc|sysfs|cgroup)/;

async function figures(): Promise<HostFigures> {
  const [load, memory, disks, io, network] = await Promise.all([
    si.currentLoad(),
    si.mem(),
    si.fsSize(),
    si.fsStats().catch(() => null),
    si.networkStats('*'),
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
      .filter((n) => n.operstate !== 'down' && !n.iface.startsWith('veth'))
      .slice(0, LINKS_MAX)
      .map((n) => ({ name: n.iface, rxBytesPerS: n.rx_sec ?? 0, txBytesPerS: n.tx_sec ?? 0 })),
    daemon: usage === undefined ? null : { rssBytes: usage.memRss * 1024, cpuPercent: usage.cpu },
  };
}

process.on('disconnect', () => process.exit(0));
for (;;) {
  const told = await figures().catch(() => null);
  if (!process.connected) break;
  if (told !== null) process.send?.(told);
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}
