/**
 * From what the pod asks to what the shim will do. What cannot be honoured here and matters for security or for the
 * program's correctness is refused by name (fail closed); what is merely not applied is listed in
 * docs/embedded-runtime.md. Pure but for looking at the host's files.
 */

import { statSync } from 'node:fs';
import { put } from '@actorlet/kubelet/machines/data/own.ts';
import {
  type ContainerConfig,
  CRI_ANNOTATIONS,
  type LinuxContainerSecurityContext,
  type NamespaceOption,
  type PodSandboxConfig,
} from '@actorlet/kubelet/machines/wire/cri.ts';
import type { OciPlan } from '../../oci/rows.ts';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import type { Isolation } from '../probe.ts';
import type { CatalogueEntry } from '../store/catalogue.ts';
import { type BindMount, type Credentials, MARK, type ShimSpec } from './shim.ts';
import { signalNumber } from './signals.ts';

/** Where the container may write its termination message: its mount path does not exist on the host. */
const TERMINATION_LOG_ENV = 'ACTORLET_TERMINATION_LOG';

export interface ContainerPlan {
  shim: ShimSpec;
  env: Record<string, string>;
  oci?: OciPlan;
}

function refuse(what: string): never {
  throw new RuntimeRefusal(CODE.invalidArgument, `embedded process runtime: ${what}`);
}

/** Things of the pod as a whole that it cannot have here. Throws. */
export function checkSandbox(config: PodSandboxConfig, isolation: Isolation): void {
  const s = config.linux?.securityContext;
  const sysctls = Object.keys(config.linux?.sysctls ?? {});
  if (sysctls.length > 0) refuse(`sysctl ${sysctls[0]} cannot be set: pods share the host's network and kernel settings`);
  if (s?.selinuxOptions && Object.values(s.selinuxOptions).some((v) => v !== '')) refuse('SELinux options cannot be applied');
  if (s?.privileged === true && !isolation.root) refuse('a privileged container needs the runtime to run as root');
  if (s?.namespaceOptions?.pid === 'POD') refuse('shareProcessNamespace: containers of a pod cannot share a PID namespace here');
}

function credentials(s: LinuxContainerSecurityContext | null | undefined, isolation: Isolation): Credentials {
  if (!s) return {};
  const own = !isolation.root;
  const uid = s.runAsUser ? Number(s.runAsUser.value) : undefined;
  const gid = s.runAsGroup ? Number(s.runAsGroup.value) : undefined;
  const groups = (s.supplementalGroups ?? []).map(Number);
  if (s.runAsUsername) refuse(`user name ${JSON.stringify(s.runAsUsername)}: images here have no user database; use runAsUser`);
  if (gid !== undefined && uid === undefined) refuse('runAsGroup without runAsUser');
  if (own) {
    if (uid !== undefined && uid !== isolation.uid) refuse(`runAsUser ${uid} needs root; the runtime runs as ${isolation.uid}`);
    if (gid !== undefined && gid !== isolation.gid) refuse(`runAsGroup ${gid} needs root; the runtime runs as group ${isolation.gid}`);
    const strange = groups.filter((g) => g !== isolation.gid && !(process.getgroups?.() ?? []).includes(g));
    if (strange.length > 0) refuse(`supplementalGroups ${strange.join(', ')} need root`);
  }
  if (s.privileged === true && own) refuse('a privileged container needs the runtime to run as root');
  if (s.readonlyRootfs === true) refuse('readOnlyRootFilesystem cannot be honoured: the root file system is the host’s own');
  if (s.selinuxOptions && Object.values(s.selinuxOptions).some((v) => v !== '')) refuse('SELinux options cannot be applied');
  if (s.seccomp && s.seccomp.profileType !== 'Unconfined') refuse(`seccompProfile ${s.seccomp.profileType} cannot be applied`);
  if (s.apparmor && s.apparmor.profileType !== 'Unconfined') refuse(`appArmorProfile ${s.apparmor.profileType} cannot be applied`);
  const pid = s.namespaceOptions?.pid;
  if (pid === 'POD' || pid === 'TARGET') refuse('a PID namespace shared between containers is not supported');

  const add = s.capabilities?.addCapabilities ?? [];
  const drop = s.capabilities?.dropCapabilities ?? [];
  const name = (c: string): string => c.toLowerCase().replace(/^cap_/, '');
  // An ordinary user's processes hold no capabilities on the host, so every drop is honoured already.
  if (own && add.length > 0) refuse(`capability ${add[0]} needs root`);
  let boundingSet: string | undefined;
  if (isolation.root && s.privileged !== true && drop.length > 0) {
    boundingSet = drop.some((c) => c.toUpperCase() === 'ALL')
      ? ['-all', ...add.filter((c) => c.toUpperCase() !== 'ALL').map((c) => `+${name(c)}`)].join(',')
      : drop.map((c) => `-${name(c)}`).join(',');
  }
  const c: Credentials = {
    ...(isolation.root && uid !== undefined ? { uid, gid: gid ?? uid, groups } : {}),
    ...(isolation.root && uid === undefined && groups.length > 0 ? { groups } : {}),
    ...(s.noNewPrivs === true ? { noNewPrivs: true } : {}),
    ...(boundingSet === undefined ? {} : { boundingSet }),
  };
  if (Object.keys(c).length > 0 && isolation.setpriv === '')
    refuse('users, groups and capabilities need setpriv (util-linux), which this host lacks');
  return c;
}

function exists(path: string): 'file' | 'dir' | null {
  try {
    return statSync(path).isDirectory() ? 'dir' : 'file';
  } catch {
    return null;
  }
}

/** A file, a folder, or null where nothing is at that path. */
type KindOf = (path: string) => 'file' | 'dir' | null;

/** Splits mounts into what is bound, what becomes the termination log variable, and what needs nothing. */
function mounts(config: AskedOfContainer, canMount: boolean, sourceKind: KindOf = exists): { binds: BindMount[]; terminationLog: string } {
  const logPath = config.annotations?.[CRI_ANNOTATIONS.terminationMessagePath] || '/dev/termination-log';
  const binds: BindMount[] = [];
  let terminationLog = '';
  for (const m of config.mounts ?? []) {
    const source = sourceKind(m.hostPath);
    if (source === null) refuse(`mount ${m.containerPath}: host path ${m.hostPath} does not exist`);
    if (m.propagation === 'PROPAGATION_BIDIRECTIONAL') refuse(`mount ${m.containerPath}: bidirectional propagation is not supported`);
    const target = exists(m.containerPath);
    if (m.containerPath === logPath && (target === null || !canMount)) {
      terminationLog = m.hostPath;
    } else if (m.containerPath === m.hostPath && m.readonly !== true) {
      // The host's own path, as it is.
    } else if (!canMount) {
      // Names resolve as on the host, which a pod on the host's network would see anyway.
      if (m.containerPath !== '/etc/hosts' && m.containerPath !== '/etc/hostname' && m.containerPath !== '/etc/resolv.conf') {
        refuse(`mount ${m.containerPath}: needs a mount namespace, which this user may not have here`);
      }
    } else if (target === null) {
      refuse(`mount ${m.containerPath}: the path does not exist on this host, and only an existing one can be mounted over`);
    } else if (target !== source) {
      refuse(`mount ${m.containerPath}: ${m.hostPath} is a ${source}, the target a ${target}`);
    } else {
      binds.push({ source: m.hostPath, target: m.containerPath, readonly: m.readonly === true });
      if (m.containerPath === logPath) terminationLog = logPath;
    }
  }
  return { binds, terminationLog };
}

export interface PlanInput {
  id: string;
  config: ContainerConfig;
  sandbox: { hostname: string; namespaces: NamespaceOption };
  entry: CatalogueEntry;
  isolation: Isolation;
  path: string;
  home: string;
}

/** What decides whether a container can be had here. */
export type AskedOfContainer = Pick<ContainerConfig, 'tty' | 'stdin' | 'CDIDevices' | 'devices' | 'mounts' | 'annotations' | 'linux'>;

/**
 * Throws {@link RuntimeRefusal} (InvalidArgument) naming what cannot be had, whatever the image.
 *
 * @param sourceKind What is, or will be, at a path of this host. Default: what is there.
 */
export function checkContainer(
  config: AskedOfContainer,
  { isolation, namespaces: ofPod }: { isolation: Isolation; namespaces: NamespaceOption },
  sourceKind: KindOf = exists,
): Pick<ShimSpec, 'binds' | 'credentials'> & { terminationLog: string; mount: boolean; asked: NamespaceOption } {
  if (config.tty === true) refuse('tty is not supported');
  if (config.stdin === true) refuse('stdin is not supported: there is no attach');
  const [cdi] = config.CDIDevices ?? [];
  if (cdi !== undefined) refuse(`CDI device ${cdi.name} cannot be given: embedded://oci and containerd have CDI devices`);
  for (const d of config.devices ?? []) {
    if (d.containerPath !== d.hostPath) refuse(`device ${d.hostPath} cannot be renamed to ${d.containerPath}`);
  }
  const s = config.linux?.securityContext;
  const mount = isolation.kind === 'namespaces' && s?.privileged !== true;
  return { ...mounts(config, mount, sourceKind), mount, asked: s?.namespaceOptions ?? ofPod, credentials: credentials(s, isolation) };
}

/** Throws {@link RuntimeRefusal} (InvalidArgument) naming what cannot be had. */
export function planContainer(input: PlanInput): ContainerPlan {
  const { config, isolation, entry } = input;
  const { asked, mount, binds, terminationLog, credentials } = checkContainer(config, { isolation, namespaces: input.sandbox.namespaces });
  const command = config.command ?? [];
  const args = config.args ?? [];
  const head = command.length > 0 ? command : entry.entrypoint;
  const tail = args.length > 0 ? args : command.length > 0 ? [] : entry.cmd;
  const argv = [...head, ...tail];
  if (argv.length === 0) refuse(`image ${entry.name} has no command of its own: the pod must give one`);

  const namespaces = {
    pid: mount && asked.pid !== 'NODE',
    mount,
    uts: mount && input.sandbox.hostname !== '',
    ipc: mount && asked.ipc !== 'NODE',
  };

  const env: Record<string, string> = { PATH: input.path, HOME: input.home, HOSTNAME: input.sandbox.hostname || 'localhost' };
  if (terminationLog !== '') env[TERMINATION_LOG_ENV] = terminationLog;
  const oddEnv: string[] = [];
  for (const { key, value } of config.envs ?? []) {
    if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) put(env, key, value);
    else oddEnv.push(`${key}=${value}`);
  }
  env[MARK] = input.id;
  const stopSignal = signalNumber(config.stopSignal);
  return {
    env,
    shim: {
      argv,
      cwd: config.workingDir || '/',
      hostname: input.sandbox.hostname,
      namespaces,
      binds,
      credentials,
      oddEnv,
      stopSignal,
    },
  };
}
