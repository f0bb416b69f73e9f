/** A death in plain words: what happened, and what a person can do next. Pure. */
import { quantityToInteger } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { Death, StuckAt } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { bytesText } from './figures.ts';

interface Told {
  death: Death;
  /** Limits of the container, as the pod writes them. */
  limits: Readonly<Record<string, string>>;
  stopSaid: string;
  kernel: readonly string[];
  probes: readonly { type: string; said: readonly string[] }[];
  graceSeconds: number;
  group: { peakBytes: number | null } | null;
}

/** One line, whose subject is the container or the pod. */
export function titleOf(t: Told): string {
  const { death } = t;
  switch (death.kind) {
    case 'oom':
      return `killed by the kernel: ${wantOfMemory(t)}${after(death)}`;
    case 'probe':
      return `stopped by this node: its ${probeType(t)} probe failed${said(probeSaid(t))}${after(death)}`;
    case 'exit':
      return `${death.message.startsWith('the runtime holds') ? 'lost' : `exited with code ${death.end?.exitCode ?? '?'}`}${meaning(death)}${after(death)}`;
    case 'signal':
      return `ended by signal ${signalText(death.end?.signal ?? 0)}${after(death)}`;
    case 'start':
      return `could not be started: ${reasonAnd(death)}`;
    case 'image':
      return `its image cannot be had: ${reasonAnd(death)}`;
    case 'evicted':
      return `ended by this node: ${reasonAnd(death)}`;
    case 'refused':
      return `refused by this node: ${reasonAnd(death)}`;
    case 'stuck':
      return stuckTitle(t);
  }
}

function stuckTitle({ death, graceSeconds }: Told): string {
  const took = shortDuration(death.atMs - (death.sinceMs ?? death.atMs));
  const texts: Readonly<Record<StuckAt, string>> = {
    pulling: `has been pulling its image for ${took}${death.image === '' ? '' : `: ${death.image}`}`,
    mounting: `has been waiting for its volumes for ${took}`,
    sandbox: `has been waiting for its sandbox and network for ${took}`,
    creating: `has been waiting to be created for ${took}`,
    terminating: `has been ending for ${took}, and its grace period is ${graceSeconds}s`,
    unmounting: `has ended, and its volumes have been coming down for ${took}`,
    quarantined: 'is left alone: this node cannot handle it',
  };
  return texts[death.reason as StuckAt];
}

function wantOfMemory({ death, limits, kernel }: Told): string {
  const detail = kernel.find((text) => text.includes('oom-kill:')) ?? '';
  if (detail.includes(',global_oom')) return 'the node ran out of memory';
  const limit = limits.memory ?? '';
  const bytes = quantityToInteger(limit);
  if (limit !== '' && bytes > 0) return `it reached its memory limit of ${bytesText(bytes)}`;
  return death.container === '' ? 'memory ran out' : 'memory ran out, and it has no limit of its own: its pod or the node has';
}

/** What codes mean by convention. */
const CODES: Readonly<Record<number, string>> = {
  2: 'a wrong use of the command, in many shells and programs',
  126: 'the command is there and cannot be run',
  127: 'the command was not found',
  255: 'an exit code out of range, or a failed ssh',
};
function meaning({ end, message }: Death): string {
  const text = CODES[end?.exitCode ?? 0];
  const own = message.split('\n', 1)[0] ?? '';
  if (message.startsWith('the runtime holds')) return `: ${own}`;
  return text === undefined ? '' : ` (${text})`;
}
const SIGNALS: Readonly<Record<number, string>> = {
  ...{ 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 5: 'SIGTRAP', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL' },
  ...{
    10: 'SIGUSR1',
    11: 'SIGSEGV',
    12: 'SIGUSR2',
    13: 'SIGPIPE',
    14: 'SIGALRM',
    15: 'SIGTERM',
    24: 'SIGXCPU',
    25: 'SIGXFSZ',
    31: 'SIGSYS',
  },
};
function signalText(signal: number): string {
  const name = SIGNALS[signal];
  return name === undefined ? String(signal) : `${signal} (${name})`;
}

function after({ end }: Death): string {
  if (end === undefined || end.startedAtMs === 0 || end.finishedAtMs < end.startedAtMs) return '';
  const ranMs = end.finishedAtMs - end.startedAtMs;
  return ranMs < 1_000 ? ', less than 1s after its start' : `, ${shortDuration(ranMs)} after its start`;
}
function said(text: string): string {
  return text === '' ? '' : ` (${text})`;
}
function probeType({ stopSaid }: Told): string {
  return stopSaid.includes('startup probe') ? 'startup' : 'liveness';
}
function probeSaid(t: Told): string {
  const type = probeType(t);
  return (t.probes.find((p) => p.type === type)?.said.at(-1) ?? '').replace(/ \(\d+ times\)$/, '');
}
/** What layers put before the word of the lowest one, which is the one that counts. */
const WRAPPED =
  /^(?:(?:failed to (?:create|start|generate|pull|resolve|reserve) [^:]{1,80}|OCI runtime create failed|runc create failed|unable to start container process|error during container init|Pod was rejected|rpc error|code = \w+ desc =[^:]{0,80}): )+/;

function reasonAnd({ reason, message }: Death): string {
  const first = (message.split('\n', 1)[0] ?? '').replace(WRAPPED, '');
  return [reason, first].filter((text) => text !== '').join(': ');
}

/** What a person can do; one sentence each. */
export function whatNext(t: Told): string[] {
  const { death } = t;
  switch (death.kind) {
    case 'oom':
      return oomNext(t);
    case 'probe':
      return [
        `Find out why the ${probeType(t)} probe failed: the log below shows what the container did meanwhile.`,
        'If it only needs longer, raise timeoutSeconds, periodSeconds or failureThreshold, or give it a startupProbe.',
        ...(death.end?.signal === 9 || death.end?.exitCode === 137
          ? ['It did not end within its grace period after SIGTERM, so it was killed.']
          : []),
      ];
    case 'signal':
      return signalNext(death);
    case 'exit':
      return exitNext(death);
    case 'start':
      return [
        'The message is what the runtime or this node said. Check the command, its mounts, and Secrets and ConfigMaps that it names.',
      ];
    case 'image':
      return imageNext(death);
    case 'evicted':
      return evictedNext(death);
    case 'refused':
      return ['It is looked at again only when its specification changes. Its controller may start it on another node.'];
    case 'stuck':
      return STUCK_NEXT[death.reason as StuckAt];
  }
}

function oomNext({ kernel, limits, group }: Told): string[] {
  if (kernel.some((text) => text.includes(',global_oom')))
    return ['The node ran out, so this container may not be the one to blame: actorctl top pods shows who uses most. Set memory limits.'];
  const limit = quantityToInteger(limits.memory ?? '');
  const peak = group?.peakBytes ?? null;
  return [
    limit > 0
      ? `Raise resources.limits.memory above ${bytesText(limit)}, or make the program use less.`
      : 'Give the container a memory limit that fits, or make the program use less.',
    ...(peak === null ? [] : [`The pod used ${bytesText(peak)} at most since it started.`]),
  ];
}

const SIGKILL = 9;
const SIGTERM = 15;
const CRASHES: readonly number[] = [4, 6, 7, 8, 11, 31];
function signalNext({ end }: Death): string[] {
  const signal = end?.signal ?? 0;
  if (signal === SIGKILL)
    return [
      'This node did not send it, and the kernel reported no want of memory. Somebody else on the machine did: a person, another program, or the runtime.',
      'A program can also end with code 137 by itself, for example a shell whose child was killed.',
    ];
  if (signal === SIGTERM) return ['This node did not send it. A program in the container, or somebody on the machine, did.'];
  if (CRASHES.includes(signal)) return ['The program crashed. A core dump or the last lines of its log may say where.'];
  return ['This node did not send it.'];
}
function exitNext({ end }: Death): string[] {
  const code = end?.exitCode ?? 0;
  if (code === 126 || code === 127)
    return ['Check the command and args of the container, and whether the program is in the image, for this architecture, and executable.'];
  return ['The program itself chose this exit code. The last lines of its log, and its documentation, say what it means.'];
}
function imageNext({ reason, message }: Death): string[] {
  if (reason === 'InvalidImageName') return ['Correct the name of the image in the pod.'];
  if (reason === 'ErrImageNeverPull') return ['Load the image on this node, or set imagePullPolicy to IfNotPresent.'];
  if (/unauthorized|authentication|denied|403|401/i.test(message))
    return ['The registry wants other credentials: check imagePullSecrets, and whether the image is there.'];
  if (/not found|manifest unknown|404/i.test(message)) return ['The registry does not have this image: check its name and tag.'];
  return [
    'This node tries again with a growing pause. Check the name of the image, and whether the registry can be reached from this node.',
  ];
}
function evictedNext({ reason }: Death): string[] {
  if (reason === 'Evicted')
    return [
      'The message says what the node, or the pod, had too little of. Set requests that fit, or give the node more of it: actorctl why node.',
    ];
  if (reason === 'DeadlineExceeded') return ['Its activeDeadlineSeconds are over: raise them, or make it faster.'];
  return ['It does not start again here. Its controller may start it on another node.'];
}

const STUCK_NEXT: Readonly<Record<StuckAt, string[]>> = {
  pulling: ['The runtime has not answered the pull. Check the registry and the network of the node, and the log of the runtime.'],
  mounting: ['Below is which volume is missing, and what its driver or the API server said last.'],
  sandbox: ['Check the network plugin (CNI) and the log of the runtime.'],
  creating: ['The runtime has not answered yet. Check its log, and the disk of the node.'],
  terminating: [
    'A process that waits for a disk or a network file system cannot be killed. Below is which call of the runtime has no answer.',
  ],
  unmounting: ['Below is which volume is still mounted, and what its driver said last.'],
  quarantined: ['The message says what this node stumbled over. A changed definition of the pod is tried again.'],
};
