/** Kernel settings that a node relies on (boot-and-node 1.8). Pure. */

export interface KernelSetting {
  /** Below /proc/sys. */
  path: string;
  /** As `sysctl` writes it. */
  name: string;
  value: number;
}

/** The reference's list. */
export const KERNEL_SETTINGS: readonly KernelSetting[] = [
  // Memory is always granted: limits of containers decide, not the kernel's estimate.
  setting('vm.overcommit_memory', 1),
  // The kernel kills a process that lacks memory. It does not panic.
  setting('vm.panic_on_oom', 0),
  // Seconds from a panic to the reboot.
  setting('kernel.panic', 10),
  // A kernel with a bug panics, and so reboots.
  setting('kernel.panic_on_oops', 1),
  // A runtime needs a key per container; 25 bytes each.
  setting('kernel.keys.root_maxkeys', 1_000_000),
  setting('kernel.keys.root_maxbytes', 25_000_000),
];

function setting(name: string, value: number): KernelSetting {
  return { name, value, path: name.replaceAll('.', '/') };
}

/** What the kernel says of a setting: the file's text, or why it cannot be read. */
export type KernelReading = { ok: true; text: string } | { ok: false; why: string };

export type KernelFinding =
  | { setting: KernelSetting; kind: 'differs'; actual: number }
  | { setting: KernelSetting; kind: 'unreadable'; why: string };

/** Settings that are not as they should be. @param readings By path. */
export function kernelFindings(readings: ReadonlyMap<string, KernelReading>): KernelFinding[] {
  return KERNEL_SETTINGS.flatMap((setting): KernelFinding[] => {
    const reading = readings.get(setting.path) ?? { ok: false, why: 'it was not read' };
    if (!reading.ok) return [{ setting, kind: 'unreadable', why: reading.why }];
    const text = reading.text.trim();
    if (!/^-?\d{1,15}$/.test(text)) return [{ setting, kind: 'unreadable', why: 'its value is no number' }];
    const actual = Number(text);
    return actual === setting.value ? [] : [{ setting, kind: 'differs', actual }];
  });
}

/** In the reference's words where it has any. */
export function findingText(f: KernelFinding): string {
  if (f.kind === 'unreadable') return `${f.setting.name} cannot be read: ${f.why}`;
  return `invalid kernel flag: ${f.setting.path}, expected value: ${f.setting.value}, actual value: ${f.actual}`;
}
