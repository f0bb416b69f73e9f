/** Facts of this node that pod decisions need, from configuration and host: read once at start, immutable after. */

import { kubepodsName } from '../machines/allocation/cgroups/names.ts';
import { listedCpus } from '../machines/allocation/cpus/policy.ts';
import { allCpus, topologyOf } from '../machines/allocation/cpus/topology.ts';
import { chooseNodeIPs, namesAddresses } from '../machines/api/node/nodeAddresses.ts';
import { type HostResources, nodeResources, overReserved } from '../machines/api/node/nodeCapacity.ts';
import type { NodeConfig } from '../machines/config/config.ts';
import type { ReservationConfig } from '../machines/config/reservations.ts';
import type { NodeFacts } from '../machines/nodeFacts.ts';
import { messageOf } from '../machines/text/errors.ts';
import type { Host, Logger, Ports } from '../ports/ports.ts';
import { readHostDns } from './pods/workers/sandbox/hostDns.ts';

const SELINUX_BYTES_MAX = 1 << 16;
/** The start waits for it. */
const LOOKUP_MS = 2_000;
/** Some 20,000 routes. */
const ROUTES_BYTES_MAX = 4 << 20;
const REFERENCE_POD_LOGS_DIR = '/var/log/pods';

/** Host name rules of boot section 1.4 step 9: trimmed, lower case, not empty. */
export function nodeNameOf(config: NodeConfig, ports: Pick<Ports, 'host'>): string {
  const name = (config.flags.hostnameOverride || ports.host.hostname()).trim().toLowerCase();
  if (name === '') throw new Error('the node has no name: the host name is empty; set --hostname-override');
  return name;
}

/** Links to container logs: `/var/log/containers`, or beside `podLogsDir` where that was moved, so that a node stays in its own folder. */
function containerLogsDirOf(podLogsDir: string): string {
  if (podLogsDir === REFERENCE_POD_LOGS_DIR) return '/var/log/containers';
  return `${podLogsDir.slice(0, Math.max(0, podLogsDir.lastIndexOf('/')))}/containers`;
}

type MachinePorts = Pick<Ports, 'host' | 'fs'> & { log: Pick<Logger, 'warn'> };
type FactPorts = MachinePorts & Pick<Ports, 'clock'>;

async function machineOf({ config: c, flags }: NodeConfig, ports: MachinePorts): Promise<HostResources> {
  const { memoryBytes, cpus } = ports.host.capacity();
  const storage = c.localStorageCapacityIsolation ? await storageBytes(flags.rootDir, ports) : null;
  return { cpus, memoryBytes, storageBytes: storage, hugePages: await hugePages(ports) };
}

const reservationsOf = ({ config, flags }: NodeConfig): ReservationConfig => ({
  ...config,
  ignoreEviction: flags.experimentalAllocatableIgnoreEviction,
});

/** Why this machine cannot keep back what the configuration reserves. Empty: it can. */
export async function reservationProblems(config: NodeConfig, ports: MachinePorts): Promise<string[]> {
  return problemsOn(await machineOf(config, ports), config, ports.host);
}

function problemsOn(machine: HostResources, config: NodeConfig, host: Pick<Host, 'cpus'>): string[] {
  const { config: c } = config;
  const infos = c.reservedSystemCPUs === '' ? undefined : host.cpus?.();
  const listed = infos === undefined ? null : listedCpus(c, allCpus(topologyOf(infos)));
  return [...(listed?.ok === false ? [listed.message] : []), ...overReserved(machine, reservationsOf(config))];
}

/** @throws when the host has no name, or has less than is reserved of it. */
export async function readNodeFacts(
  config: NodeConfig,
  ports: FactPorts,
): Promise<Omit<NodeFacts, 'runtimeName' | 'cgroupDriver' | 'recursiveReadOnly'>> {
  const { config: c, flags } = config;
  const machine = await machineOf(config, ports);
  const problems = problemsOn(machine, config, ports.host);
  if (problems.length > 0) {
    const todo = 'Lower systemReserved, kubeReserved, evictionHard or reservedSystemCPUs: they are of a larger machine.';
    throw new Error(`invalid Node Allocatable configuration. ${problems.join(' ')} ${todo}`);
  }
  const { memoryBytes, hugePages: huge } = machine;
  const resources = nodeResources(machine, reservationsOf(config));
  return {
    nodeName: nodeNameOf(config, ports),
    hostIPs: await nodeIPs(config, ports),
    ipv6First: flags.nodeIPs[0]?.includes(':') === true,
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    containerLogsDir: containerLogsDirOf(c.podLogsDir),
    clusterDomain: c.clusterDomain,
    clusterDNS: [...c.clusterDNS],
    hostDns: await hostDnsAtStart(c.resolvConf, ports),
    resolvConf: c.resolvConf,
    hostsFile: '/etc/hosts',
    memoryCapacityBytes: memoryBytes,
    ...memoryControlOf(config, ports),
    ...(await selinuxOf(config, ports)),
    projectQuotas: config.gates.enabled('LocalStorageCapacityIsolationFSQuotaMonitoring'),
    ...resources,
    cpuCFSQuota: c.cpuCFSQuota,
    cpuCFSQuotaPeriodMs: c.cpuCFSQuotaPeriod,
    seccompDefault: c.seccompDefault,
    thermalFolders: await thermalFolders(ports),
    userNamespaceIds: c.userNamespaces.idsPerPod,
    ...(ports.host.subordinateIds == null ? {} : { subordinateIds: ports.host.subordinateIds }),
    hugePageSizes: Object.keys(huge),
    cgroupRoot: c.cgroupRoot,
    ...(c.cgroupsPerQOS ? { kubepods: kubepodsName(c.cgroupRoot) } : {}),
    statsFromCri: config.gates.enabled('PodAndContainerStatsFromCRI'),
    maxRestartBackoffMs: c.crashLoopBackOff.maxContainerRestartPeriod ?? 300_000,
  };
}

/** Chosen once: a node keeps its address for as long as its daemon runs. */
async function nodeIPs(config: NodeConfig, ports: FactPorts): Promise<string[]> {
  const { nodeIPs } = config.flags;
  const nodeName = nodeNameOf(config, ports);
  if (namesAddresses(nodeIPs)) return [...nodeIPs];
  const [resolved, routes4, routes6] = await Promise.all([
    lookup(nodeName, ports),
    procText('/proc/net/route', ports),
    procText('/proc/net/ipv6_route', ports),
  ]);
  return chooseNodeIPs({ nodeIPs, nodeName, resolved, addresses: ports.host.addresses(), routes4, routes6 });
}

/** A resolver that does not answer in time is one that does not know. */
async function lookup(name: string, { host, clock }: FactPorts): Promise<string[]> {
  if (host.lookup === undefined) return [];
  let timer: unknown;
  const late = new Promise<string[]>((resolve) => {
    timer = clock.setTimeout(() => resolve([]), LOOKUP_MS);
  });
  try {
    return await Promise.race([host.lookup(name).catch(() => []), late]);
  } finally {
    clock.clearTimeout(timer);
  }
}

async function procText(path: string, { fs }: FactPorts): Promise<string> {
  return fs.readFile(path, { bytesMax: ROUTES_BYTES_MAX }).then(
    (bytes) => new TextDecoder().decode(bytes),
    () => '',
  );
}

function memoryControlOf({ config: c, gates }: NodeConfig, { host }: Pick<Ports, 'host'>): Pick<NodeFacts, 'memoryControl'> {
  const there = host.memoryControl?.();
  if (there === undefined) return {};
  const memoryControl = {
    ...there,
    limitedSwap: c.memorySwap.swapBehavior === 'LimitedSwap',
    throttlingFactor: gates.enabled('MemoryQoS') ? c.memoryThrottlingFactor : null,
    floors: gates.enabled('MemoryQoS') && c.memoryReservationPolicy === 'TieredReservation',
    groupOom: c.singleProcessOOMKill !== true,
  };
  return { memoryControl };
}

/** Labels of files of containers are where runtimes look for them, too. */
async function selinuxOf({ gates }: NodeConfig, { fs }: Pick<Ports, 'fs'>): Promise<Pick<NodeFacts, 'selinux'>> {
  const read = async (path: string): Promise<string> => {
    try {
      return new TextDecoder().decode(await fs.readFile(path, { bytesMax: SELINUX_BYTES_MAX }));
    } catch {
      return '';
    }
  };
  // A kernel without a policy calls every process that.
  const own = (await read('/proc/self/attr/current')).replaceAll('\0', '').trim();
  if ((await read('/sys/fs/selinux/enforce')) === '' || own === '' || own === 'kernel') return {};
  const [, policy = ''] = /^SELINUXTYPE=(\w+)/m.exec(await read('/etc/selinux/config')) ?? [];
  const [, fileLabel = ''] = /^\s*file\s*=\s*"([^"]+)"/m.exec(await read(`/etc/selinux/${policy}/contexts/lxc_contexts`)) ?? [];
  return fileLabel.split(':').length < 4 ? {} : { selinux: { fileLabel, allModes: gates.enabled('SELinuxMount') } };
}

/** Size of the file system that the root directory lies on, or will lie on. */
async function storageBytes(rootDir: string, ports: MachinePorts): Promise<number | null> {
  for (let dir = rootDir; ; dir = dir.slice(0, dir.lastIndexOf('/'))) {
    try {
      return (await ports.fs.statfs(dir === '' ? '/' : dir)).bytesTotal;
    } catch (error) {
      if (dir !== '') continue;
      const err = messageOf(error);
      ports.log.warn(
        { err, dir: rootDir },
        'the size of the file system below --root-dir cannot be read; the node reports no ephemeral-storage',
      );
      return null;
    }
  }
}

const CPUS_DIR = '/sys/devices/system/cpu';

/** Of the CPUs that have one: virtual machines have none. */
async function thermalFolders({ fs }: FactPorts): Promise<string[]> {
  const cpus = (await fs.readdir(CPUS_DIR).catch(() => [])).filter((name) => /^cpu\d+$/.test(name));
  const folders = cpus.map((cpu) => `${CPUS_DIR}/${cpu}/thermal_throttle`);
  const there = await Promise.allSettled(folders.map((folder) => fs.stat(folder)));
  return folders.filter((_, i) => there[i]?.status === 'fulfilled');
}

const HUGE_PAGES_DIR = '/sys/kernel/mm/hugepages';
const KIB = 1024;

/** Bytes set aside in huge pages, by size. Kernels without them have no such folder. */
async function hugePages(ports: MachinePorts): Promise<Record<string, number>> {
  const out: Record<string, number> = {};
  for (const name of await ports.fs.readdir(HUGE_PAGES_DIR).catch(() => [])) {
    const kib = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    if (kib === 0) continue;
    try {
      const pages = Number(new TextDecoder().decode(await ports.fs.readFile(`${HUGE_PAGES_DIR}/${name}/nr_hugepages`, { bytesMax: 64 })));
      if (Number.isSafeInteger(pages)) out[hugePageSize(kib)] = pages * kib * KIB;
    } catch (error) {
      const err = messageOf(error);
      ports.log.warn({ err, size: name }, 'the number of huge pages of this size cannot be read; the node does not report them');
    }
  }
  return out;
}

function hugePageSize(kib: number): string {
  const units = ['Ki', 'Mi', 'Gi', 'Ti'];
  let [value, unit] = [kib, 0];
  while (value % KIB === 0 && unit < units.length - 1) [value, unit] = [value / KIB, unit + 1];
  return `${value}${units[unit]}`;
}

/** '' disables it. An unreadable or malformed file is reported once; pods get nothing from the host while it stays so. */
async function hostDnsAtStart(path: string, ports: FactPorts): Promise<NodeFacts['hostDns']> {
  if (path === '') return null;
  try {
    return await readHostDns(ports.fs, path);
  } catch (error) {
    const err = messageOf(error);
    ports.log.warn({ err, file: path, field: 'resolvConf' }, 'the resolver configuration cannot be read; pods get none from this host');
    return null;
  }
}
