/** The step that gives the kernel the settings of a node, or with `protectKernelDefaults` refuses a host with others. */
import { enforceKernelSettings } from '../../../actors/kernelSettings.ts';
import { createHost } from '../../dependencies/machine/host.ts';
import { createKernelSettings, PROC_SYS } from '../../dependencies/machine/kernelSettings.ts';
import { StartError } from '../../errors.ts';
import { need, type Step } from '../context.ts';

const WHERE = 'protectKernelDefaults (--protect-kernel-defaults)';

/** The folder of the kernel's settings. `ACTORLET_PROC_SYS`: another one, for tests of the real process. */
function procSys(env: Readonly<Record<string, string | undefined>>): string {
  return env.ACTORLET_PROC_SYS || PROC_SYS;
}

/** Embedded runtimes are for ordinary users and share the machine with other work: its kernel stays as it is. */
export const setKernelSettings: Step = {
  name: 'set kernel settings',
  async run(ctx) {
    const { config } = need(ctx, 'nodeConfig');
    if (config.containerRuntimeEndpoint.startsWith('embedded://')) return undefined;
    const port = createKernelSettings(procSys(ctx.env));
    const userNamespace = need(ctx, 'gates').enabled('KubeletInUserNamespace') ? 'ignored' : 'refused';
    const problems = await enforceKernelSettings(port, {
      protect: config.protectKernelDefaults,
      log: need(ctx, 'log'),
      ...(createHost().inUserNamespace?.() === true ? { userNamespace } : {}),
    });
    if (problems.length > 0)
      throw new StartError(
        'the kernel settings of this host are not accepted',
        problems.map((what) => ({ where: WHERE, what })),
      );
    return undefined;
  },
};
