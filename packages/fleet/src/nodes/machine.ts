/** What a machine of a fleet says of itself: its ids, its system, its disk and its huge pages. Pure. */
import type { HostFs, HostIdentity } from '@actorlet/kubelet/ports/ports.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import type { GroupSpec } from '../spec/groups.ts';
import { STORAGE_BYTES } from '../spec/machines.ts';

const KERNEL = '6.12.0-actorlet';
const OS_IMAGE = 'actorlet fleet';
const HUGE_PAGES_DIR = '/sys/kernel/mm/hugepages';
const KIB: Readonly<Record<string, number>> = { K: 1, M: 1024, G: 1024 ** 2, T: 1024 ** 3 };

/** The same machine has the same ids at each start of its fleet. */
export function identityOf({ machine }: Pick<GroupSpec, 'machine'>, of: { fleet: string; name: string }): HostIdentity {
  const uuid = uuidOf(`machine ${of.fleet} ${of.name}`);
  const { kernel = KERNEL, osImage = OS_IMAGE, os = 'linux', arch = 'amd64' } = machine;
  return { machineId: uuid.replaceAll('-', ''), systemUuid: uuid, kernelVersion: kernel, osImage, os, arch };
}

/** Another one after each loss of power. */
export function bootIdOf({ fleet, name, powered }: { fleet: string; name: string; powered: number }): string {
  return uuidOf(`boot ${fleet} ${name} ${powered}`);
}

function uuidOf(seed: string): string {
  const rng = simRng(seed);
  const hex = Array.from({ length: 32 }, () => Math.floor(rng.next() * 16).toString(16)).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** The file system of a machine: its size, and what it says of huge pages. */
export function withMachine(fs: HostFs, { storageBytes, hugePages }: Pick<GroupSpec, 'storageBytes' | 'hugePages'>): HostFs {
  const total = storageBytes ?? STORAGE_BYTES;
  const pages = new Map(
    Object.entries(hugePages).map(([size, bytes]) => {
      const kib = Number(size.slice(0, -2)) * (KIB[size.at(-2) ?? ''] ?? 1);
      return [`hugepages-${kib}kB`, Math.floor(bytes / (kib * 1024))];
    }),
  );
  return {
    ...fs,
    statfs: async (path) => {
      const info = await fs.statfs(path);
      return { ...info, bytesTotal: total, bytesAvailable: Math.floor((info.bytesAvailable / info.bytesTotal) * total) };
    },
    readdir: async (path) => (path === HUGE_PAGES_DIR && pages.size > 0 ? [...pages.keys()] : fs.readdir(path)),
    readFile: async (path, o) => {
      const [, name = ''] = /^\/sys\/kernel\/mm\/hugepages\/([^/]+)\/nr_hugepages$/.exec(path) ?? [];
      const count = pages.get(name);
      return count === undefined ? fs.readFile(path, o) : new TextEncoder().encode(`${count}\n`);
    },
  };
}
