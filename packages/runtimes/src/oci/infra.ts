/**
 * What a pod has before its containers: a sleeping process that holds the pod's namespaces, and the program that connects
 * its network. Both outlive the runtime; the sandbox's row names them.
 */
import { once } from 'node:events';
import { createConnection } from 'node:net';
import type { PodSandboxConfig, PortMapping } from '@actorlet/kubelet/machines/wire/cri.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { startProcess } from '@actorlet/process/src/startProcess.ts';
import { bootId, firstChild, hasEnv, isAlive, type ProcId, readStat, scanProcesses, signal } from '../process/container/procfs.ts';
import { MARK } from '../process/container/shim.ts';
import { findCommand } from '../process/probe.ts';
import { refuse } from './bundle/spec.ts';
import { within } from './images/budget.ts';
import type { Lack, Programs } from './programs.ts';
import type { Infra } from './rows.ts';
import { runProgram } from './run.ts';

const READY_WITHIN_MS = 10_000;
const WORDS_CHARS_MAX = 1000;
/** Where pasta answers DNS for a host whose own resolver listens on its loopback; slirp4netns has its own. */
const DNS = { pasta: '169.254.0.53', slirp4netns: '10.0.2.3' } as const;
const SYSCTL = /^[A-Za-z0-9_][A-Za-z0-9_./-]*$/;

const SLEEP = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all', 'sh', '-c'] as const;
const PAUSE = 'echo up; exec </dev/null >/dev/null 2>&1; while :; do sleep 2000000 & wait; done';
/** Before that, for a pod that needs it. $1… pairs of a path below /proc/sys and its value, `--`, `ip` or `-`, then the command. */
const SET_UP = `while [ "$1" != -- ]; do
printf %s "$2" >"/proc/sys/$1" || { echo "sysctl $1 cannot be set to $2" >&2; exit 1; }
shift 2; done
if [ "$2" != - ]; then "$2" link set lo up || exit 1; fi
shift 2
exec "$@"`;

export interface InfraInput {
  id: string;
  config: PodSandboxConfig;
  programs: Programs;
  noNetwork: Lack | null;
  /** This process is root of the machine. */
  root: boolean;
  /** For slirp4netns and for pasta. */
  apiSocket: string;
  pidFile: string;
}

/** Null for a pod that shares all of the host's. `later`: its network, where that is still on its way. @throws RuntimeRefusal */
export async function startInfra(i: InfraInput): Promise<{ infra: Infra; later: Promise<ProcId> | null } | null> {
  const asked = i.config.linux?.securityContext?.namespaceOptions;
  const own = { network: asked?.network !== 'NODE', ipc: asked?.ipc !== 'NODE', pid: asked?.pid === 'POD' };
  const ports = (i.config.portMappings ?? []).filter((p) => p.hostPort > 0);
  const sysctls = Object.entries(i.config.linux?.sysctls ?? {});
  if (!own.network && sysctls.some(([name]) => name.startsWith('net.'))) refuse('sysctls of the network need a network of the pod’s own');
  if (ports.some((p) => p.protocol === 'SCTP')) refuse('host ports of SCTP are not supported');
  if (own.network && ports.length > 0 && i.noNetwork !== null)
    refuse(`host port ${ports[0]?.hostPort}: ${i.noNetwork.what}. ${i.noNetwork.todo}`);
  if (!own.network && !own.ipc && !own.pid) return null;
  const pause = await startPause(i, { own, sysctls });
  try {
    const infra: Infra = { pause, pid: own.pid, network: null, dns: '' };
    if (!own.network || i.programs.network === null) return { infra, later: null };
    const name = i.programs.network.name === 'pasta' ? 'pasta' : 'slirp4netns';
    infra.dns = DNS[name];
    const net = `/proc/${namespacePid(infra)}/ns/net`;
    const later = name === 'pasta' ? startPasta(i, { net, ports }) : startSlirp(i, { net, ports });
    // A host port that is taken is the pod's failure. Else containers are made meanwhile, and their start waits.
    later.catch(() => undefined);
    if (ports.length === 0) return { infra, later };
    infra.network = await later;
    return { infra, later: null };
  } catch (error) {
    signal(-pause.pid, 'SIGKILL');
    throw error;
  }
}

/** What is not known, of a start that was interrupted, is found by its mark. */
export function stopInfra(id: string, infra: Infra | undefined): void {
  const boot = bootId();
  const alive = infra !== undefined && isAlive(infra.pause, boot);
  if (infra?.network && isAlive(infra.network, boot)) signal(infra.network.pid, 'SIGKILL');
  // With its sleeping child, which would keep the namespaces.
  if (alive) signal(-infra.pause.pid, 'SIGKILL');
  if (!alive || infra.network === null) for (const p of scanProcesses()) if (hasEnv(p.pid, `${MARK}=${id}`)) signal(p.pid, 'SIGKILL');
}

export const isUp = (infra: Infra): boolean => isAlive(infra.pause, bootId());

/** A process in the pod's namespaces: with a PID namespace of the pod, the one that was started is outside of that. */
export function namespacePid(infra: Pick<Infra, 'pause' | 'pid'>): number {
  return infra.pid ? (firstChild(infra.pause.pid) ?? infra.pause.pid) : infra.pause.pid;
}

async function startPause(
  i: InfraInput,
  o: { own: Record<'network' | 'ipc' | 'pid', boolean>; sysctls: [string, string][] },
): Promise<ProcId> {
  const settings = o.sysctls.flatMap(([name, value]) => {
    if (!SYSCTL.test(name) || name.includes('..')) return refuse(`sysctl ${JSON.stringify(name)} is no name`);
    return [name.replaceAll('.', '/'), value];
  });
  const flags = [
    ...(o.own.network ? ['--net'] : []),
    ...(o.own.ipc ? ['--ipc'] : []),
    ...(o.own.pid ? ['--pid', '--fork', '--kill-child'] : []),
  ];
  const ip = o.own.network && i.programs.network === null ? findCommand('ip', process.env.PATH ?? '') : '-';
  if (ip === '') refuse('ip is not installed, which a network without pasta or slirp4netns needs. Install the package iproute2.');
  const setUp = settings.length > 0 || ip !== '-' ? ['sh', '-c', SET_UP, 'actorlet-pod', ...settings, '--', ip] : [];
  const args = [...flags, '--', ...setUp, ...SLEEP, PAUSE, 'actorlet-pause'];
  return up(i, { file: i.programs.unshare, args, what: 'the pod’s namespaces' });
}

/** It goes to the background when all is set up, and writes its pid before. */
async function startPasta(i: InfraInput, o: { net: string; ports: PortMapping[] }): Promise<ProcId> {
  const forward = (protocol: 'TCP' | 'UDP', flag: string): string[] => {
    const of = o.ports.filter((p) => p.protocol === protocol);
    return of.length === 0
      ? [flag, 'none']
      : of.flatMap((p) => [flag, `${p.hostIp ? `${p.hostIp}/` : ''}${p.hostPort}:${p.containerPort}`]);
  };
  const args = [
    ...['--config-net', '--quiet', '--no-map-gw', '--dns-forward', DNS.pasta, '-T', 'none', '-U', 'none'],
    ...forward('TCP', '-t'),
    ...forward('UDP', '-u'),
    ...(i.root ? ['--runas', '0'] : []),
    ...['--pid', i.pidFile, '--netns', o.net],
  ];
  const watch = within(READY_WITHIN_MS, 'the network was not up');
  await runProgram(i.programs.network?.path ?? '', args, { watch, env: { ...process.env, [MARK]: i.id } });
  return identity(Number.parseInt(readRegularSync(i.pidFile, { own: true, bytesMax: 64 }).toString('latin1'), 10));
}

async function startSlirp(i: InfraInput, o: { net: string; ports: PortMapping[] }): Promise<ProcId> {
  const args = ['--configure', '--mtu=65520', '--disable-host-loopback', '--ready-fd=1', `--api-socket=${i.apiSocket}`];
  const id = await up(i, {
    file: i.programs.network?.path ?? '',
    args: [...args, '--netns-type=path', o.net, 'tap0'],
    what: 'slirp4netns',
  });
  for (const p of o.ports) {
    const ask = { proto: p.protocol.toLowerCase(), host_addr: p.hostIp || '0.0.0.0', host_port: p.hostPort, guest_port: p.containerPort };
    await slirpCall(i.apiSocket, { execute: 'add_hostfwd', arguments: ask }).catch((error: Error) => {
      signal(id.pid, 'SIGKILL');
      refuse(`host port ${p.hostPort} of ${ask.host_addr} cannot be opened, most likely since it is taken: ${error.message}`);
    });
  }
  return id;
}

async function slirpCall(socketPath: string, ask: object): Promise<void> {
  const socket = createConnection(socketPath);
  socket.setTimeout(READY_WITHIN_MS, () => socket.destroy(new Error('slirp4netns does not answer')));
  socket.end(JSON.stringify(ask));
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('utf8')));
  await once(socket, 'close');
  const { error } = JSON.parse(answer || '{}') as { error?: { desc?: string } };
  if (error !== undefined || answer === '') throw new Error(error?.desc ?? 'slirp4netns gave no answer');
}

/** Starts what runs on beside us, and waits for its first word. @throws RuntimeRefusal with what it wrote to stderr. */
async function up(i: InfraInput, o: { file: string; args: string[]; what: string }): Promise<ProcId> {
  const child = startProcess(o.file, o.args, {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, [MARK]: i.id },
  });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => (words = `${words}${chunk.toString('utf8')}`.slice(-WORDS_CHARS_MAX)));
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve());
      child.once('error', reject);
      // Not at its exit: its words may come later.
      child.once('close', (code) => reject(new Error(words.trim() || `it ended with ${code}`)));
      timer = setTimeout(() => reject(new Error(`it was not up within ${READY_WITHIN_MS} ms`)), READY_WITHIN_MS);
    });
    if (child.pid === undefined) throw new Error('it has no pid');
    return identity(child.pid);
  } catch (error) {
    if (child.pid !== undefined) signal(-child.pid, 'SIGKILL');
    return refuse(`${o.what} cannot be had: ${(error as Error).message}`);
  } finally {
    clearTimeout(timer);
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
  }
}

function identity(pid: number): ProcId {
  const stat = readStat(pid);
  if (stat === null) throw new Error('it ended at once');
  return { pid, startTicks: stat.startTicks, bootId: bootId() };
}
