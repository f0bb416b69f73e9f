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

interface Enforcing {
  /** Compare alone, and change nothing. */
  protect: boolean;
  /** In a user namespace, where settings of the kernel cannot be changed: `ignored` with gate KubeletInUserNamespace. Absent: not in one. */
  userNamespace?: 'ignored' | 'refused';
  log: Pick<Logger, 'info'>;
}

/** What the start is refused for; empty: all settings are those of a node. */
export async function enforceKernelSettings(port: KernelSettings, o: Enforcing): Promise<string[]> {
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
      const hint = o.userNamespace === 'refused' ? ' (Hint: enable KubeletInUserNamespace feature flag to ignore the error)' : '';
      if (o.userNamespace === 'ignored') o.log.info({ setting: setting.name, err: why }, 'kernel setting left as it is: running in UserNS');
      else problems.push(`${findingText(finding)}, and cannot be changed: ${why}${hint}`);
    }
  }
  return problems;
}
