/** The boot: one list of named steps, read from top to bottom, each small. */
import { messageOf } from '../machines/text/errors.ts';
import { onTerminal } from '../machines/text/oneLine.ts';
import { Cleanup } from './cleanup.ts';
import { EXIT, StartError } from './errors.ts';
import { type Libc, loadLibc } from './process/libc.ts';
import * as configure from './steps/configure.ts';
import type { BootContext, BootIo, BootState, Step, Wiring } from './steps/context.ts';
import { checkAllocationState } from './steps/host/allocationState.ts';
import * as host from './steps/host/hostChecks.ts';
import { setKernelSettings } from './steps/host/kernelSettings.ts';
import { checkMemoryControl } from './steps/host/memoryControl.ts';
import { serveInspection } from './steps/inspection.ts';
import * as prepare from './steps/prepare.ts';
import { recordTheNode } from './steps/recording.ts';
import * as run from './steps/run.ts';
import { runOnce } from './steps/runOnce.ts';
import { makeServingCertificate } from './steps/serving.ts';
import { traceTheNode } from './steps/tracing.ts';

export const BOOT_STEPS: readonly Step[] = [
  configure.parseArguments,
  configure.answerHelpAndVersion,
  configure.loadConfiguration,
  configure.setFeatureGates,
  configure.validateConfiguration,
  configure.checkWhatIsMissing,
  configure.refuseBadConfiguration,

  prepare.startLog,
  prepare.handleSignals,
  prepare.handleCrashes,
  run.keepWatch,
  prepare.takeLock,
  prepare.checkRoot,
  host.checkSwap,
  host.checkCgroupVersion,
  checkMemoryControl,
  host.checkPodGroups,
  host.checkPorts,
  setKernelSettings,
  prepare.makeRootDirectory,
  prepare.lockRootDirectory,
  checkAllocationState,
  makeServingCertificate,
  prepare.adjustOomScore,
  prepare.raiseFileLimit,
  prepare.connectNotify,

  run.noteWhatIsHandled,
  run.createDependencies,
  run.createTheNode,
  recordTheNode,
  traceTheNode,
  run.startTheNode,
  runOnce,
  serveInspection,
  run.notifyReady,
  run.feedSystemd,
  run.giveBackPages(),
  run.serve,
];

/**
 * Runs the node until it ends; resolves with the exit code and never rejects. What it opened is closed by then; a timer
 * or socket of an abandoned actor may still hold the event loop, so the caller exits with the code.
 */
export async function boot(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  outside: { io: BootIo; wiring: Wiring; steps?: readonly Step[] },
): Promise<number> {
  const state: BootState = {};
  const code = await runSteps(argv, env, { ...outside, state });
  if (state.again === undefined || code !== EXIT.ok) return code;
  outside.io.again(state.again);
  return EXIT.internal;
}

async function runSteps(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  outside: { io: BootIo; wiring: Wiring; steps?: readonly Step[]; state: BootState },
): Promise<number> {
  using cleanup = new Cleanup();
  let libc: Libc | undefined;
  const ctx: BootContext = {
    argv,
    env,
    io: outside.io,
    wiring: outside.wiring,
    state: outside.state,
    problems: [],
    remarks: [],
    ending: new AbortController(),
    cleanup,
    libc: () => (libc ??= loadLibc()),
  };
  for (const step of outside.steps ?? BOOT_STEPS) {
    try {
      const outcome = await step.run(ctx);
      if (outcome !== undefined) return outcome.exit;
    } catch (error) {
      // The person's to mend: the list alone. Anything else also says where the boot was.
      const text = error instanceof StartError ? error.message : `boot step "${step.name}" failed: ${messageOf(error)}`;
      ctx.io.stderr.write(`actorlet: ${text}\n`);
      return EXIT.fatal;
    }
  }
  return EXIT.ok;
}

/** The real process. */
export function processIo(): BootIo {
  return {
    stdout: { write: (text) => process.stdout.write(process.stdout.isTTY ? onTerminal(text) : text) },
    stderr: { write: (text) => process.stderr.write(onTerminal(text)) },
    cwd: process.cwd(),
    pid: process.pid,
    uid: process.getuid?.() ?? 0,
    exit: (code) => process.exit(code),
    again(argv) {
      try {
        process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2), ...argv], process.env);
      } catch (error) {
        process.stderr.write(`actorlet: the daemon cannot start anew by itself: ${messageOf(error)}\n`);
      }
    },
    on(name, fn) {
      process.on(name, fn);
      return { [Symbol.dispose]: () => void process.off(name, fn) };
    },
  };
}
