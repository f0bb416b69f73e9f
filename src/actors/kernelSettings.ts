/** The kernel settings of a node, compared and, where that is allowed, set. At each start of the daemon, before the tree. */

import { findingText, KERNEL_SETTINGS, type KernelReading, kernelFindings } from '../machines/host/kernelSettings.ts';
import { messageOf } from '../machines/text/errors.ts';
import type { KernelSettings } from '../ports/machine/kernelSettings.ts';
import type { Logger } from '../ports/ports.ts';

/** By path. Never rejects. */
export async function readKernelSettings(port: KernelSettings): Promise<Map<string, KernelReading>> {
  const read = async (path: string): Promise<KernelReading> => {
    try {
      return { ok: true, text: await port.read(path) };
    } catch (error) {
      return { ok: false, why: messageOf(error) };
    }
  };
  return new Map(await Promise.all(KERNEL_SETTINGS.map(async ({ path }) => [path, await read(path)] as const)));
}

/** What the start is refused for; empty: all settings are those of a node. @param o.protect Compare alone, and change nothing. */
export async function enforceKernelSettings(port: KernelSettings, o: { protect: boolean; log: Pick<Logger, 'info'> }): Promise<string[]> {
  const problems: string[] = [];
  for (const finding of kernelFindings(await readKernelSettings(port))) {
    const { setting } = finding;
    if (finding.kind === 'unreadable' || o.protect) {
      problems.push(findingText(finding));
      continue;
    }
    try {
      await port.write(setting.path, setting.value);
      o.log.info({ setting: setting.name, from: finding.actual, to: setting.value }, 'kernel setting changed');
    } catch (error) {
      const why = messageOf(error);
      problems.push(`${findingText(finding)}, and cannot be changed: ${why}`);
    }
  }
  return problems;
}
