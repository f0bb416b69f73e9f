/** `actorlet --check`: reads flags, files and the host, starts nothing, changes nothing, and says what will differ or fail. */

import { processIo } from '@actorlet/kubelet/boot/boot.ts';
import { Cleanup } from '@actorlet/kubelet/boot/cleanup.ts';
import { hostMemoryControl } from '@actorlet/kubelet/boot/dependencies/machine/memoryControl.ts';
import { StartError } from '@actorlet/kubelet/boot/errors.ts';
import { loadLibc } from '@actorlet/kubelet/boot/process/libc.ts';
import * as configure from '@actorlet/kubelet/boot/steps/configure.ts';
import type { BootContext, BootIo, Wiring } from '@actorlet/kubelet/boot/steps/context.ts';
import { judgeMemoryControl } from '@actorlet/kubelet/boot/steps/host/memoryControl.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { checkFiles } from './files.ts';
import { exitCodeOf, type Finding, jsonOf, textOf } from './findings.ts';
import { checkHost } from './host.ts';
import { readInvocation } from './invocation.ts';
import { checkPods } from './pods.ts';
import { checkRuntime } from './runtime.ts';

/** Steps of the boot that read the command line and files alone. */
const STEPS = [
  configure.parseArguments,
  configure.loadConfiguration,
  configure.setFeatureGates,
  configure.validateConfiguration,
  configure.checkWhatIsMissing,
];

const NO_WIRING: Wiring = {
  createPorts: () => Promise.reject(new Error('--check starts nothing')),
  createNode: () => Promise.reject(new Error('--check starts nothing')),
};

/** The check, by the flags of this process. */
export function runCheck(argv: readonly string[]): Promise<number> {
  return check(argv, { io: processIo(), env: process.env });
}

/** Never rejects. The answer is the exit code. */
export async function check(argv: readonly string[], outside: { io: BootIo; env: BootContext['env'] }): Promise<number> {
  const invocation = await readInvocation(argv);
  const findings = [...invocation.findings, ...(await look(invocation.argv, outside))];
  outside.io.stdout.write(invocation.json ? jsonOf(findings) : textOf(findings));
  return exitCodeOf(findings);
}

async function look(argv: readonly string[], { io, env }: { io: BootIo; env: BootContext['env'] }): Promise<Finding[]> {
  const notices: string[] = [];
  using cleanup = new Cleanup();
  const ctx: BootContext = {
    ...{ argv, env, wiring: NO_WIRING, state: {}, problems: [], remarks: [], cleanup },
    io: { ...io, stderr: { write: (text) => void notices.push(text.trim()) } },
    ending: new AbortController(),
    libc: () => loadLibc(),
  };
  const found: Finding[] = [];
  try {
    for (const step of STEPS) await step.run(ctx);
  } catch (error) {
    if (error instanceof StartError) ctx.problems.push(...error.problems);
    else ctx.problems.push({ where: 'configuration', what: messageOf(error) });
  }
  for (const { where, what } of ctx.problems)
    found.push({ level: 'error', where, what, todo: 'The node does not start before this is mended.' });
  for (const what of notices) found.push({ level: 'note', where: 'command line', what, todo: '' });
  for (const { level, text } of ctx.remarks) {
    const [where = '', ...rest] = text.split(': ');
    found.push({ level: level === 'warn' ? 'warning' : 'note', where, what: rest.join(': ') || text, todo: '' });
  }
  found.push(...configurationFiles(ctx.state.loaded));
  const { nodeConfig } = ctx.state;
  if (nodeConfig === undefined) return found;
  const runtime = await checkRuntime(nodeConfig);
  found.push(...runtime.findings);
  for (const part of [checkHost, checkFiles, (c: NodeConfig) => checkPods(c, runtime), checkMemory]) {
    try {
      found.push(...(await part(nodeConfig)));
    } catch (error) {
      found.push({ level: 'error', where: 'host', what: messageOf(error), todo: '' });
    }
  }
  return found;
}

/** What the start says of swap and memory of containers. */
function checkMemory(config: NodeConfig): Finding[] {
  const { refusals, lines } = judgeMemoryControl(config, hostMemoryControl());
  return [
    ...refusals.map((p): Finding => ({ level: 'error', ...p, todo: 'The node does not start before this is mended.' })),
    ...lines.map((p): Finding => ({ level: 'warning', ...p, todo: '' })),
  ];
}

/** Which files the configuration is read from, and which files beside them are not. */
function configurationFiles(loaded: BootContext['state']['loaded']): Finding[] {
  const note = (where: string, what: string): Finding => ({ level: 'note', where, what, todo: '' });
  if (loaded === undefined) return [];
  return [
    ...loaded.files.map((file, i) => note(file, `configuration, read ${i === 0 ? 'first' : `over what stands before it (${i + 1})`}`)),
    ...loaded.skipped.map((file) => note(file, 'it is not read: the name of a drop-in ends in .conf')),
  ];
}
