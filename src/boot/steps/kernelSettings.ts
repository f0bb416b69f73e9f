/** The step that gives the kernel the settings of a node, or with `protectKernelDefaults` refuses a host with others. */
import { findingText, kernelFindings } from '../../machines/host/kernelSettings.ts';
import { PROC_SYS, readKernelSettings, writeKernelSetting } from '../dependencies/kernelSettings.ts';
import { messageOf, type Problem, StartError } from '../errors.ts';
import { need, type Step } from './context.ts';

const WHERE = 'protectKernelDefaults (--protect-kernel-defaults)';

/** The folder of the kernel's settings. `ACTORLET_PROC_SYS`: another one, for tests of the real process. */
export function procSys(env: Readonly<Record<string, string | undefined>>): string {
  return env.ACTORLET_PROC_SYS || PROC_SYS;
}

/** Embedded runtimes are for ordinary users and share the machine with other work: its kernel stays as it is. */
export const setKernelSettings: Step = {
  name: 'set kernel settings',
  async run(ctx) {
    const { config } = need(ctx, 'nodeConfig');
    if (config.containerRuntimeEndpoint.startsWith('embedded://')) return undefined;
    const log = need(ctx, 'log');
    const root = procSys(ctx.env);
    const problems: Problem[] = [];
    for (const finding of kernelFindings(await readKernelSettings(root))) {
      const { setting } = finding;
      if (finding.kind === 'unreadable' || config.protectKernelDefaults) {
        problems.push({ where: WHERE, what: findingText(finding) });
        continue;
      }
      try {
        await writeKernelSetting(root, setting);
        log.info({ setting: setting.name, from: finding.actual, to: setting.value }, 'kernel setting changed');
      } catch (error) {
        problems.push({ where: WHERE, what: `${findingText(finding)}, and cannot be changed: ${messageOf(error)}` });
      }
    }
    if (problems.length > 0) throw new StartError('the kernel settings of this host are not accepted', problems);
    return undefined;
  },
};
