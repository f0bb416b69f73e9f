/** The kernel settings of a simulated machine: they outlive daemons, and another program may change them. */
import { KERNEL_SETTINGS } from '@actorlet/kubelet/machines/host/kernelSettings.ts';
import type { KernelSettings } from '@actorlet/kubelet/ports/machine/kernelSettings.ts';

/** What a read or a write comes to. `EIO`: of reads; the others: of writes. */
export type SysctlVerdict = 'pass' | 'EIO' | 'EROFS' | 'EPERM';

/** The settings of a kernel that nobody has changed. */
const BARE = 0;

const WORDS = { EIO: 'i/o error', EROFS: 'read-only file system', EPERM: 'operation not permitted' } as const;

/** `protect`: the node changes none (`protectKernelDefaults`). */
export interface KernelTuning {
  protect: boolean;
}

export interface SimKernelSettings {
  /** By path. */
  readonly values: ReadonlyMap<string, string>;
  trouble: (operation: 'read' | 'write') => SysctlVerdict;
  /** Paths that a daemon has written, oldest first. */
  readonly writes: readonly string[];
  /** The administrator gives it the settings of a node. */
  restore(): void;
  /** Another program sets it. */
  set(path: string, value: number): void;
  /** As after a boot of the machine: `good`: its administrator has put the settings of a node into /etc/sysctl.d. */
  reboot(good: boolean): void;
  connect(o: { power: { on: boolean } }): KernelSettings;
}

export function simKernelSettings(): SimKernelSettings {
  const values = new Map<string, string>();
  const writes: string[] = [];
  const never = new Promise<never>(() => {});
  const world: SimKernelSettings = {
    values,
    writes,
    trouble: () => 'pass',
    restore() {
      for (const { path, value } of KERNEL_SETTINGS) values.set(path, `${value}\n`);
    },
    set: (path, value) => void values.set(path, `${value}\n`),
    reboot(good) {
      for (const { path, value } of KERNEL_SETTINGS) values.set(path, `${good ? value : BARE}\n`);
    },
    connect({ power }) {
      const fails = (operation: 'read' | 'write', path: string): void => {
        const code = world.trouble(operation);
        if (code !== 'pass') throw Object.assign(new Error(`${code}: ${WORDS[code]}, open '/proc/sys/${path}'`), { code });
      };
      return {
        async read(path) {
          if (!power.on) return never;
          fails('read', path);
          return values.get(path) ?? '';
        },
        async write(path, value) {
          if (!power.on) return never;
          fails('write', path);
          writes.push(path);
          values.set(path, `${value}\n`);
        },
      };
    },
  };
  return world;
}
