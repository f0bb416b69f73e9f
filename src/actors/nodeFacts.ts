/** Facts of this node that pod decisions need, from configuration and host: read once at start, immutable after. */
import type { NodeConfig } from '../machines/config.ts';
import { parseResolvConf } from '../machines/pods/dns.ts';
import type { NodeFacts } from '../machines/pods/types.ts';
import type { Ports } from './kernel/ports.ts';

const RESOLV_CONF_BYTES_MAX = 1 << 20;
const REFERENCE_POD_LOGS_DIR = '/var/log/pods';

/** Host name rules of boot section 1.4 step 9: trimmed, lower case, not empty. */
export function nodeNameOf(config: NodeConfig, ports: Pick<Ports, 'host'>): string {
  const name = (config.flags.hostnameOverride || ports.host.hostname()).trim().toLowerCase();
  if (name === '') throw new Error('the node has no name: the host name is empty; set --hostname-override');
  return name;
}

/** Links to container logs: `/var/log/containers`, or beside `podLogsDir` where that was moved, so that a node stays in its own folder. */
export function containerLogsDirOf(podLogsDir: string): string {
  if (podLogsDir === REFERENCE_POD_LOGS_DIR) return '/var/log/containers';
  return `${podLogsDir.slice(0, Math.max(0, podLogsDir.lastIndexOf('/')))}/containers`;
}

export async function readNodeFacts(config: NodeConfig, ports: Ports): Promise<Omit<NodeFacts, 'runtimeName'>> {
  const { config: c, flags } = config;
  const { memoryBytes, cpus } = ports.host.capacity();
  return {
    nodeName: nodeNameOf(config, ports),
    hostIPs: flags.nodeIPs.length > 0 ? [...flags.nodeIPs] : ports.host.addresses().map((a) => a.ip),
    rootDir: flags.rootDir,
    podLogsDir: c.podLogsDir,
    containerLogsDir: containerLogsDirOf(c.podLogsDir),
    clusterDomain: c.clusterDomain,
    clusterDNS: [...c.clusterDNS],
    hostDns: await readHostDns(c.resolvConf, ports),
    hostsFile: '/etc/hosts',
    memoryCapacityBytes: memoryBytes,
    // Reservations come with the allocation layer; until then all of the node is allocatable.
    allocatable: { cpu: String(cpus), memory: String(memoryBytes), pods: String(c.maxPods) },
    cpuCFSQuota: c.cpuCFSQuota,
    cpuCFSQuotaPeriodMs: c.cpuCFSQuotaPeriod,
    seccompDefault: c.seccompDefault,
    hugePageSizes: [],
    maxRestartBackoffMs: c.crashLoopBackOff.maxContainerRestartPeriod ?? 300_000,
  };
}

/** '' disables it. An unreadable or malformed file is said once; pods then get no host resolver configuration. */
async function readHostDns(path: string, ports: Ports): Promise<NodeFacts['hostDns']> {
  if (path === '') return null;
  try {
    return parseResolvConf(new TextDecoder().decode(await ports.fs.readFile(path, { bytesMax: RESOLV_CONF_BYTES_MAX })));
  } catch (error) {
    const err = error instanceof Error ? error.message : String(error);
    ports.log.warn({ err, file: path, field: 'resolvConf' }, 'the resolver configuration cannot be read; pods get none from this host');
    return null;
  }
}
