/**
 * From what the pod and the image say to the OCI bundle's config.json. What cannot be honoured is refused by name. Pure but
 * for looking at the host's files.
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type {
  ContainerConfig,
  LinuxContainerResources,
  LinuxSandboxSecurityContext,
  Mount,
  NamespaceOption,
} from '@actorlet/kubelet/machines/wire/cri.ts';
import { CODE, RuntimeRefusal } from '../../shared/model.ts';
import type { ImageRecord } from '../images/records.ts';
import type { OciSpec } from '../rows.ts';
import { capabilities } from './capabilities.ts';
import { type CdiEdits, cdiEdits } from './cdi.ts';
import { DEFAULT_PROFILES, seccompOf } from './seccomp.ts';
import { idsOf } from './user.ts';

const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Facts of the machine and this user; found once. */
export interface HostFacts {
  /** The highest user and group id that a container may have. */
  idMax: number;
  root: boolean;
  capLast: number;
  kernel: string;
  /** This process's score: a user may not go below. */
  oomScoreAdj: number;
  sh: string;
}
export interface SpecInput {
  config: ContainerConfig;
  image: ImageRecord;
  imageRootfs: string;
  hostname: string;
  /** Where the container's root file system is mounted. */
  rootfs: string;
  host: HostFacts;
  /** Paths of namespaces; '' for one of its own, null for the host's. */
  namespaces: { pid: string | null; ipc: string | null; network: string | null };
  files: { ready: string; hosts: string; hostname: string; resolv: string; shm: string };
  /** Root file systems of image volumes. */
  rootfsOf(imageRef: string): string | null;
  cgroupsPath: string | null;
  /** Folders of CDI specs. Absent: those of the machine. */
  cdiDirs?: readonly string[];
  /** Further environment of every process. */
  mark: string;
}
interface OciMount {
  destination: string;
  type: string;
  source: string;
  options: string[];
}
export function refuse(what: string): never {
  throw new RuntimeRefusal(CODE.invalidArgument, `embedded OCI runtime: ${what}`);
}

/**
 * Runs when the command has been started: its word in this file is what StartContainer waits for. It reads what runtimes
 * write to hooks (runtime-spec, "Hooks"): crun 1.8 ends a container whose hook closes that pipe unread.
 */
export function readyHook(sh: string, file: string): { path: string; args: string[] } {
  return { path: sh, args: ['sh', '-c', 'cat >/dev/null; echo up >"$0"', file] };
}

/** @throws RuntimeRefusal naming what no pod can have here. */
export function checkPod(s: Pick<LinuxSandboxSecurityContext, 'selinuxOptions' | 'namespaceOptions'> | null | undefined): void {
  if (s?.selinuxOptions && Object.values(s.selinuxOptions).some((v) => v !== '')) refuse('SELinux options cannot be applied');
  if (s?.namespaceOptions?.usernsOptions?.mode === 'POD') refuse('hostUsers: false is not supported');
}

/** @throws RuntimeRefusal naming what no container can have here, whatever its image and this host's files. */
export function checkContainer({ mounts, linux }: Pick<ContainerConfig, 'mounts' | 'linux'>): void {
  const s = linux?.securityContext;
  checkPod(s);
  if (s?.apparmor && s.apparmor.profileType !== 'Unconfined') refuse(`appArmorProfile ${s.apparmor.profileType} cannot be applied`);
  for (const m of mounts ?? []) {
    if (m.propagation === 'PROPAGATION_BIDIRECTIONAL') refuse(`mount ${m.containerPath}: bidirectional propagation is not supported`);
    if (m.recursiveReadOnly === true) refuse(`mount ${m.containerPath}: recursive read-only is not supported`);
    if (m.image?.image && m.imageSubPath) refuse(`mount ${m.containerPath}: a path within an image volume is not supported`);
  }
}

/** @throws RuntimeRefusal naming what cannot be had. */
export function specOf(i: SpecInput): OciSpec {
  const { config, host } = i;
  const s = config.linux?.securityContext;
  checkContainer(config);
  const ids = attempt(() => idsOf(i.imageRootfs, s, { imageUser: i.image.config.user, idMax: host.idMax }));
  const cdi = attempt(() =>
    cdiEdits(
      (config.CDIDevices ?? []).map(({ name }) => name),
      i.cdiDirs,
    ),
  );
  const asked = (config.devices ?? []).map((d) => ({ hostPath: d.hostPath, path: d.containerPath }));
  const nodes = deviceNodes([...asked, ...cdi.devices], host.root);
  const privileged = s?.privileged === true;
  const { addCapabilities: add = [], dropCapabilities: drop = [] } = s?.capabilities ?? {};
  const caps = attempt(() => capabilities({ add, drop, privileged, last: host.capLast }));
  const adj = Number(config.linux?.resources?.oomScoreAdj ?? 0);
  const seccomp = privileged ? null : seccompProfile(s?.seccomp, { caps, kernel: host.kernel });
  const resources = i.cgroupsPath === null ? undefined : resourcesOf(config.linux?.resources);
  return {
    ociVersion: '1.0.2',
    process: {
      terminal: config.tty === true,
      user: { ...ids, additionalGids: [...new Set([...ids.additionalGids, ...cdi.gids])] },
      args: argsOf(i),
      env: envOf(i, cdi.env),
      // Absolute for every runtime; nothing leads out of the root file system.
      cwd: join('/', config.workingDir || i.image.config.workingDir),
      capabilities: { bounding: caps, effective: caps, permitted: caps, inheritable: [], ambient: [] },
      noNewPrivileges: s?.noNewPrivs === true,
      oomScoreAdj: host.root ? adj : Math.max(adj, host.oomScoreAdj),
    },
    root: { path: i.rootfs, readonly: s?.readonlyRootfs === true },
    hostname: i.hostname,
    mounts: [...ownMounts(i), ...podMounts(i), ...cdi.mounts.map(cdiMount), ...nodes.mounts],
    hooks: { ...cdi.hooks, poststart: [...(cdi.hooks.poststart ?? []), readyHook(host.sh, i.files.ready)] },
    linux: {
      namespaces: namespaceList(i),
      devices: nodes.devices,
      maskedPaths: privileged ? [] : (s?.maskedPaths ?? []),
      readonlyPaths: privileged ? [] : (s?.readonlyPaths ?? []),
      ...(seccomp === null ? {} : { seccomp }),
      ...(resources === undefined ? {} : { resources, cgroupsPath: i.cgroupsPath }),
    },
  };
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function argsOf({ config, image }: SpecInput): string[] {
  const command = config.command ?? [];
  const args = config.args ?? [];
  const head = command.length > 0 ? command : image.config.entrypoint;
  const tail = args.length > 0 ? args : command.length > 0 ? [] : image.config.cmd;
  const all = [...head, ...tail];
  if (all.length === 0) refuse(`image ${image.tags[0] ?? image.id} has no command of its own: the pod must give one`);
  return all;
}

/** Later ones win. */
function envOf({ config, image, hostname, mark }: SpecInput, ofDevices: readonly string[]): string[] {
  const given = (config.envs ?? []).map(({ key, value }) => `${key}=${value}`);
  const all = [
    PATH,
    `HOSTNAME=${hostname}`,
    ...(config.tty === true ? ['TERM=xterm'] : []),
    ...image.config.env,
    ...given,
    ...ofDevices,
    mark,
  ];
  return [...new Map(all.map((entry) => [entry.slice(0, entry.indexOf('=')), entry])).values()];
}

function namespaceList({ namespaces, cgroupsPath }: SpecInput): { type: string; path?: string }[] {
  const shared = Object.entries(namespaces).flatMap(([type, path]) => (path === null ? [] : [{ type, ...(path === '' ? {} : { path }) }]));
  return [{ type: 'mount' }, { type: 'uts' }, ...(cgroupsPath === null ? [] : [{ type: 'cgroup' }]), ...shared];
}

const SAFE = ['nosuid', 'noexec', 'nodev'];

function ownMounts(i: SpecInput): OciMount[] {
  const { namespaces: ns, files } = i;
  const hosts = (destination: string): OciMount => ({ destination, type: 'none', source: destination, options: ['rbind', ...SAFE] });
  const bind = (destination: string, source: string): OciMount => ({
    destination,
    type: 'none',
    source,
    options: ['bind', 'nosuid', 'nodev'],
  });
  // A namespace of the host does not let this user mount its file system anew.
  const proc: OciMount = ns.pid === null ? hosts('/proc') : { destination: '/proc', type: 'proc', source: 'proc', options: SAFE };
  const sys = ns.network === null ? hosts('/sys') : { destination: '/sys', type: 'sysfs', source: 'sysfs', options: [...SAFE] };
  const privileged = i.config.linux?.securityContext?.privileged === true;
  return [
    proc,
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'] },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
    },
    ...(ns.ipc === null ? [] : [{ destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: SAFE }]),
    { ...sys, options: privileged ? sys.options : [...sys.options, 'ro'] },
    ...(i.cgroupsPath === null ? [] : [{ destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: [...SAFE, 'ro'] }]),
    bind('/dev/shm', ns.ipc === null ? '/dev/shm' : files.shm),
    bind('/etc/hostname', files.hostname),
    bind('/etc/resolv.conf', files.resolv),
    ...((i.config.mounts ?? []).some((m) => m.containerPath === '/etc/hosts') ? [] : [bind('/etc/hosts', files.hosts)]),
  ];
}

function podMounts(i: SpecInput): OciMount[] {
  const mounts = (i.config.mounts ?? []).map((m): OciMount => {
    const source = sourceOf(m, i);
    const propagation = m.propagation === 'PROPAGATION_HOST_TO_CONTAINER' ? 'rslave' : 'rprivate';
    const image = m.image === undefined || m.image === null ? [] : ['nodev', 'nosuid'];
    return {
      destination: m.containerPath,
      type: 'none',
      source,
      options: ['rbind', propagation, ...image, m.readonly === true || image.length > 0 ? 'ro' : 'rw'],
    };
  });
  const depth = (path: string): number => path.split('/').filter(Boolean).length;
  return mounts.sort((a, b) => depth(a.destination) - depth(b.destination));
}

function cdiMount({ hostPath, containerPath, options }: CdiEdits['mounts'][number]): OciMount {
  if (statSync(hostPath, { throwIfNoEntry: false }) === undefined)
    refuse(`mount ${containerPath} of a CDI device: ${hostPath} is not on this host`);
  const bind = options.some((o) => o === 'bind' || o === 'rbind') ? [] : ['rbind'];
  return { destination: containerPath, type: 'none', source: hostPath, options: [...bind, ...options] };
}

function sourceOf(m: Mount, i: SpecInput): string {
  if (m.image?.image) return i.rootfsOf(m.image.image) ?? refuse(`mount ${m.containerPath}: image ${m.image.image} is not there`);
  try {
    // As containerd: a path that is missing becomes a folder.
    if (statSync(m.hostPath, { throwIfNoEntry: false }) === undefined) mkdirSync(m.hostPath, { recursive: true });
  } catch (error) {
    refuse(`mount ${m.containerPath}: host path ${m.hostPath}: ${(error as Error).message}`);
  }
  return m.hostPath;
}

/** A user makes no device nodes: the runtime binds those of the host at their own path, and others are bound here. */
function deviceNodes(all: CdiEdits['devices'], root: boolean): { devices: object[]; mounts: OciMount[] } {
  const made = all.map(({ hostPath, path, ...owner }) => ({ hostPath, path, node: { ...device(hostPath, path), ...owner } }));
  const isBound = ({ hostPath, path }: (typeof made)[number]): boolean => !root && hostPath !== path;
  return {
    devices: made.filter((d) => !isBound(d)).map((d) => d.node),
    mounts: made.filter(isBound).map((d) => ({ destination: d.path, type: 'none', source: d.hostPath, options: ['bind', 'nosuid'] })),
  };
}

function device(hostPath: string, path: string): object {
  const info = statSync(hostPath, { throwIfNoEntry: false });
  if (info === undefined || !(info.isCharacterDevice() || info.isBlockDevice())) refuse(`device ${hostPath} is not on this host`);
  const { rdev } = info;
  const major = ((rdev >> 8) & 0xfff) | (Math.floor(rdev / 2 ** 32) & ~0xfff);
  const minor = (rdev & 0xff) | ((rdev >> 12) & 0xfff00);
  return { path, type: info.isBlockDevice() ? 'b' : 'c', major, minor, fileMode: info.mode & 0o777, uid: info.uid, gid: info.gid };
}

function seccompProfile(
  profile: NonNullable<NonNullable<ContainerConfig['linux']>['securityContext']>['seccomp'],
  o: { caps: string[]; kernel: string },
): object | null {
  if (!profile || profile.profileType === 'Unconfined') return null;
  const files = profile.profileType === 'Localhost' ? [profile.localhostRef ?? ''] : DEFAULT_PROFILES;
  const file = files.find((f) => statSync(f, { throwIfNoEntry: false })?.isFile() === true);
  if (file === undefined) {
    const todo = profile.profileType === 'Localhost' ? '' : ' (package containers-common, in Debian 12 golang-github-containers-common)';
    return refuse(`seccompProfile ${profile.profileType}: ${files.join(' or ')} is not there${todo}`);
  }
  return attempt(() => seccompOf(file, o));
}

function resourcesOf(r: LinuxContainerResources | undefined): object {
  const number = (v: string | number | undefined): number | undefined => (Number(v ?? 0) > 0 ? Number(v) : undefined);
  const cpu = {
    shares: number(r?.cpuShares),
    quota: number(r?.cpuQuota),
    period: number(r?.cpuPeriod),
    cpus: r?.cpusetCpus,
    mems: r?.cpusetMems,
  };
  return {
    cpu: Object.fromEntries(Object.entries(cpu).filter(([, v]) => v !== undefined && v !== '')),
    memory: number(r?.memoryLimitInBytes) === undefined ? {} : { limit: number(r?.memoryLimitInBytes) },
    ...(Object.keys(r?.unified ?? {}).length > 0 ? { unified: r?.unified } : {}),
  };
}

/** Which namespace a container asks for: '' its own, null the host's, else that of the pod or a target. */
export function pidNamespace(
  asked: NamespaceOption | undefined,
  pidOf: { pod: number | null; target(id: string): number | null },
): string | null {
  const mode = asked?.pid ?? 'CONTAINER';
  if (mode === 'NODE') return null;
  if (mode === 'CONTAINER') return '';
  const pid = mode === 'POD' ? pidOf.pod : pidOf.target(asked?.targetId ?? '');
  return pid === null ? refuse('the container whose processes are to be shared does not run') : `/proc/${pid}/ns/pid`;
}
