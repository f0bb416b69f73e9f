/** What the node has and what of it pods may use: capacity and allocatable (boot-and-node 9.6). Pure. */
import { type ReservationConfig, reservedOf } from '../../config/reservations.ts';
import { HUGE_PAGES_PREFIX } from '../../kube/names.ts';
import { bytesQuantity, scaledCeil } from '../../kube/quantity.ts';

export interface HostResources {
  cpus: number;
  memoryBytes: number;
  /** Size of the file system below the root directory; null where it is not known, or is not to be accounted for. */
  storageBytes: number | null;
  /** Bytes of huge pages by their size as Kubernetes writes it (`2Mi`, `1Gi`). */
  hugePages: Readonly<Record<string, number>>;
}
export interface NodeResources {
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
}

const MILLI = -3;

export function nodeResources(host: HostResources, c: ReservationConfig): NodeResources {
  const cores = BigInt(host.cpus);
  const pods = c.podsPerCore > 0 ? Math.min(host.cpus * c.podsPerCore, c.maxPods) : c.maxPods;
  const hugePages = Object.entries(host.hugePages).map(([size, bytes]) => [`${HUGE_PAGES_PREFIX}${size}`, bytesQuantity(bytes)] as const);
  const storage = host.storageBytes === null ? {} : { 'ephemeral-storage': bytesQuantity(host.storageBytes) };
  const capacity = {
    cpu: String(host.cpus),
    memory: bytesQuantity(host.memoryBytes),
    pods: String(pods),
    ...storage,
    ...Object.fromEntries(hugePages),
  };
  const reserved = (resource: 'memory' | 'ephemeral-storage', total: bigint): bigint => reservedOf(c, resource, total);
  const inHugePages = Object.values(host.hugePages).reduce((sum, bytes) => sum + BigInt(bytes), 0n);
  const memory = BigInt(host.memoryBytes);
  const allocatable: Record<string, string> = {
    ...capacity,
    cpu: cpuText(floorZero(cores * 1000n - keptMilli(c))),
    memory: bytesQuantity(floorZero(floorZero(memory - reserved('memory', memory)) - inHugePages)),
  };
  if (host.storageBytes !== null) {
    const total = BigInt(host.storageBytes);
    allocatable['ephemeral-storage'] = bytesQuantity(floorZero(total - reserved('ephemeral-storage', total)));
  }
  return { capacity, allocatable };
}

/** A list of CPUs is what is reserved of them, whatever else was said (trap 13). */
function keptMilli(c: ReservationConfig): bigint {
  if (c.reservedSystemCPUs !== '') return BigInt(cpuListSize(c.reservedSystemCPUs)) * 1000n;
  return milli(c.kubeReserved.cpu) + milli(c.systemReserved.cpu);
}

/** What is kept back and is not there, as the reference says it: nothing would be left for pods, and nothing would limit them. */
export function overReserved(host: HostResources, c: ReservationConfig): string[] {
  const lines: string[] = [];
  const compare = (resource: string, kept: bigint, { there, text }: { there: bigint; text(amount: bigint): string }): void => {
    if (kept <= there) return;
    const [reservation, capacity] = [text(kept), text(there)];
    lines.push(`Resource "${resource}" has a reservation of ${reservation} but capacity of ${capacity}. Expected capacity >= reservation.`);
  };
  compare('cpu', keptMilli(c), { there: BigInt(host.cpus) * 1000n, text: cpuText });
  for (const [resource, bytes] of [
    ['memory', host.memoryBytes],
    ['ephemeral-storage', host.storageBytes],
  ] as const) {
    if (bytes !== null) compare(resource, reservedOf(c, resource, BigInt(bytes)), { there: BigInt(bytes), text: bytesQuantity });
  }
  return lines;
}

/** Number of CPUs in a list such as `0-3,7`, each counted once. */
export function cpuListSize(list: string): number {
  const cpus = new Set<number>();
  for (const part of list.split(',')) {
    const [from = '', to = from] = part.trim().split('-');
    for (let cpu = Number(from); cpu <= Number(to); cpu++) cpus.add(cpu);
  }
  return cpus.size;
}

const milli = (text: string | undefined): bigint => scaledCeil(text, MILLI) ?? 0n;
const floorZero = (n: bigint): bigint => (n < 0n ? 0n : n);
const cpuText = (milliCpu: bigint): string => (milliCpu % 1000n === 0n ? String(milliCpu / 1000n) : `${milliCpu}m`);
