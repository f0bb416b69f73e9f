/** Mounts of memory for files of volumes: those that stood at the start show by their device or in the table, others the node makes. */
import type { MountEntry } from '@actorlet/kubelet/machines/host/mountinfo.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import type { Script } from '@actorlet/replay/src/lenient/script.ts';

const IN_MEMORY = /\/volumes\/kubernetes\.io~(?:secret|projected|empty-dir)\/[^/]+$/;
const OWN_DEVICE = 1_000_000;

export class PlayedMounts {
  /** By path. Null: nothing is mounted there any more. */
  readonly #devices = new Map<string, number | null>();
  readonly #recorded: (path: string) => number | undefined;
  readonly #empty: (path: string) => void;
  readonly #stood: ReadonlySet<string>;

  /** `recorded`: the device of what stands there as the recording shows it. `empty`: removes what is in a folder. */
  constructor(o: { stood: ReadonlySet<string>; recorded(path: string): number | undefined; empty(path: string): void }) {
    this.#stood = o.stood;
    this.#recorded = o.recorded;
    this.#empty = o.empty;
  }

  deviceOf(path: string): number {
    const device = this.#devices.get(path) ?? (this.#devices.has(path) ? undefined : this.#recorded(path));
    return device ?? (path === '/' ? 1 : this.deviceOf(parentOf(path)));
  }

  isMounted(path: string): boolean {
    if (!IN_MEMORY.test(path)) return false;
    return (this.#stood.has(path) && !this.#devices.has(path)) || this.deviceOf(path) !== this.deviceOf(parentOf(path));
  }

  readonly answers: Otherwise = (name, args) => {
    const [to, at] = args as readonly [unknown, unknown];
    if (name === 'mounter.mount') {
      const { type, path } = to as { type: string; path: string };
      return type === 'tmpfs' ? this.#put(path, OWN_DEVICE + this.#devices.size) : undefined;
    }
    if (name === 'mounter.unmount' || name === 'mounter.detach')
      return typeof to === 'string' && this.isMounted(to) ? this.#put(to, null) : undefined;
    if (name !== 'mounter.list' || typeof at !== 'string' || !IN_MEMORY.test(at)) return undefined;
    const mount: MountEntry = { path: at, root: '/', type: 'tmpfs', source: 'tmpfs', device: `0:${this.deviceOf(at)}` };
    return { result: Promise.resolve(this.isMounted(at) ? [mount] : []) };
  };

  #put(path: string, device: number | null): { result: Promise<void> } {
    this.#empty(path);
    this.#devices.set(path, device);
    return { result: Promise.resolve() };
  }
}

/** What tables showed that the recorded node did not mount. */
export function stoodAtFirst({ asked, settled }: Script): Set<string> {
  const stood = new Set<string>();
  const own = new Set<unknown>();
  for (const { name, args, call } of asked) {
    const [first] = args as readonly Json[];
    if (name === 'mounter.mount' && isRecord(first)) own.add(first.path);
    const table = name === 'mounter.list' ? settled.get(call ?? -1)?.value : undefined;
    for (const mount of Array.isArray(table) ? table : [])
      if (isRecord(mount) && typeof mount.path === 'string' && !own.has(mount.path)) stood.add(mount.path);
  }
  return stood;
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/'))) || '/';
}
