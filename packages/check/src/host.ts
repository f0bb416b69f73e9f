/** What `--check` finds on the host: swap, cgroups, ports in use, another node agent, facts. Reads only. */

import { access, readdir, readFile } from 'node:fs/promises';
import { readKernelSettings } from '@actorlet/kubelet/actors/kernelSettings.ts';
import { reservationProblems } from '@actorlet/kubelet/actors/nodeFacts.ts';
import { readHostDns } from '@actorlet/kubelet/actors/pods/workers/sandbox/hostDns.ts';
import { createHostFs } from '@actorlet/kubelet/boot/dependencies/fs.ts';
import { createHost } from '@actorlet/kubelet/boot/dependencies/machine/host.ts';
import { createKernelSettings, PROC_SYS } from '@actorlet/kubelet/boot/dependencies/machine/kernelSettings.ts';
import { podGroupProblems, rootDirProblem, swapProblem } from '@actorlet/kubelet/boot/steps/host/hostChecks.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { findingText, kernelFindings } from '@actorlet/kubelet/machines/host/kernelSettings.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Finding } from './findings.ts';

const CGROUP_V2 = '/sys/fs/cgroup/cgroup.controllers';
/** State of a listening socket in /proc/net/tcp. */
const LISTEN = '0A';
const KUBELET_ENABLED = '/etc/systemd/system/multi-user.target.wants/kubelet.service';
const GIB = 1024 ** 3;
const DISK_LOW_PERCENT = 15;

export async function checkHost(config: NodeConfig): Promise<Finding[]> {
  const parts = await Promise.all([
    swap(config),
    kernelSettings(config),
    cgroups(config),
    ports(config),
    agents(),
    facts(config),
    reservations(config),
    rootDir(config),
    resolver(config),
  ]);
  return parts.flat();
}

async function swap({ config }: NodeConfig): Promise<Finding[]> {
  const text = await readFile('/proc/swaps', 'utf8').catch(() => '');
  const problem = swapProblem(text);
  if (problem === null) return [];
  if (config.failSwapOn)
    return [{ level: 'error', where: problem.where, what: problem.what, todo: 'Run swapoff -a, or set failSwapOn: false.' }];
  return [
    {
      level: 'note',
      where: 'swap',
      what: `swap is on; memorySwap.swapBehavior is ${config.memorySwap.swapBehavior || 'NoSwap'}`,
      todo: '',
    },
  ];
}

/** @param root For tests; default: /proc/sys. */
export async function kernelSettings({ config }: Pick<NodeConfig, 'config'>, root = PROC_SYS): Promise<Finding[]> {
  if (config.containerRuntimeEndpoint.startsWith('embedded://')) return [];
  const where = 'protectKernelDefaults (--protect-kernel-defaults)';
  return kernelFindings(await readKernelSettings(createKernelSettings(root))).map((f): Finding => {
    const what = findingText(f);
    if (f.kind === 'unreadable') return { level: 'error', where, what, todo: 'The node does not start without it.' };
    const { name, value } = f.setting;
    if (!config.protectKernelDefaults) return { level: 'note', where: name, what: `${what}: the start changes it`, todo: '' };
    return { level: 'error', where, what, todo: `Run sysctl -w ${name}=${value}, or set protectKernelDefaults: false.` };
  });
}

async function cgroups(nodeConfig: NodeConfig): Promise<Finding[]> {
  const { config } = nodeConfig;
  const v2 = await access(CGROUP_V2).then(
    () => true,
    () => false,
  );
  const found: Finding[] = [{ level: 'note', where: 'cgroups', what: `the host has cgroup ${v2 ? 'v2' : 'v1'}`, todo: '' }];
  if (!v2 && config.failCgroupV1)
    found.push({
      level: 'error',
      where: 'failCgroupV1',
      what: 'this host does not use cgroup v2',
      todo: 'Set failCgroupV1: false, or boot with cgroup v2.',
    });
  if (!config.cgroupsPerQOS) {
    const what = 'pods have no cgroups of their own, so reservations and podPidsLimit are not enforced';
    found.push({ level: 'warning', where: 'cgroupsPerQOS', what, todo: 'Remove cgroupsPerQOS: false.' });
  }
  const problems = await podGroupProblems(config);
  found.push(...problems.map(({ where, what }): Finding => ({ level: 'error', where, what, todo: '' })));
  return found;
}

/** Ports with a listening socket, of /proc/net/tcp or tcp6. */
export function listeningPorts(text: string): Set<number> {
  const found = new Set<number>();
  for (const line of text.split('\n').slice(1)) {
    const [, local, , state] = line.trim().split(/\s+/);
    const port = Number.parseInt(local?.split(':').at(-1) ?? '', 16);
    if (state === LISTEN && Number.isInteger(port)) found.add(port);
  }
  return found;
}

async function ports({ config }: NodeConfig): Promise<Finding[]> {
  const texts = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')));
  const used = new Set(texts.flatMap((text) => [...listeningPorts(text)]));
  const wanted = [
    { where: 'port (--port)', port: config.enableServer ? config.port : 0 },
    { where: 'readOnlyPort (--read-only-port)', port: config.readOnlyPort },
    { where: 'healthzPort (--healthz-port)', port: config.healthzPort },
  ];
  return wanted
    .filter(({ port }) => port !== 0 && used.has(port))
    .map(({ where, port }): Finding => {
      return {
        level: 'warning',
        where,
        what: `another process listens on port ${port}`,
        todo: 'Stop it before the start: the kubelet, if it still runs.',
      };
    });
}

async function reservations(config: NodeConfig): Promise<Finding[]> {
  const problems = await reservationProblems(config, { host: createHost(), fs: createHostFs(), log: { warn: () => {} } });
  const where = 'systemReserved, kubeReserved, evictionHard, reservedSystemCPUs';
  return problems.map((what) => ({ level: 'error', where, what, todo: 'Lower them: the node does not start.' }));
}

async function rootDir({ flags }: NodeConfig): Promise<Finding[]> {
  const problem = await rootDirProblem(flags.rootDir);
  if (problem === null) return [];
  const [what = '', todo = ''] = problem.what.split('; run ');
  return [{ level: 'warning', where: problem.where, what, todo: `Run ${todo}.` }];
}

async function resolver({ config }: NodeConfig): Promise<Finding[]> {
  const path = config.resolvConf;
  try {
    if (path !== '') await readHostDns(createHostFs(), path);
    return [];
  } catch (error) {
    const what = `${path}: ${messageOf(error)}; pods get no name servers from this host`;
    return [
      {
        level: 'warning',
        where: 'resolvConf (--resolv-conf)',
        what,
        todo: 'Give a file that can be read: the kubelet starts no pod without it.',
      },
    ];
  }
}

/** Node agents that run now. */
async function agents(): Promise<Finding[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const names = await Promise.all(
    pids.map(async (pid) => [pid, (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()] as const),
  );
  const enabled = await access(KUBELET_ENABLED).then(
    () => true,
    () => false,
  );
  const found: Finding[] = enabled
    ? [
        {
          level: 'warning',
          where: KUBELET_ENABLED,
          what: 'the kubelet starts with the machine',
          todo: 'One agent per node: systemctl disable kubelet.',
        },
      ]
    : [];
  const kubelets = names.filter(([, name]) => name === 'kubelet').map(([pid]) => pid);
  if (kubelets.length === 0) return found;
  const what = `the kubelet runs (process ${kubelets.join(', ')})`;
  return [
    ...found,
    {
      level: 'warning',
      where: 'host',
      what,
      todo: 'Stop it before the start: systemctl disable --now kubelet. Its containers keep running.',
    },
  ];
}

/** Processor, memory and disks. The library is loaded here alone: the daemon does without it. */
async function facts({ flags }: NodeConfig): Promise<Finding[]> {
  try {
    const { default: si } = await import('systeminformation');
    const [cpu, memory, disks] = await Promise.all([si.cpu(), si.mem(), si.fsSize()]);
    const found: Finding[] = [
      {
        level: 'note',
        where: 'host',
        what: `${cpu.cores} processors, ${(memory.total / GIB).toFixed(1)} GiB of memory (${(memory.available / GIB).toFixed(1)} GiB available)`,
        todo: '',
      },
    ];
    const disk = disks
      .filter((d) => flags.rootDir === d.mount || flags.rootDir.startsWith(d.mount.endsWith('/') ? d.mount : `${d.mount}/`))
      .sort((a, b) => b.mount.length - a.mount.length)[0];
    if (disk !== undefined && disk.size > 0) {
      const percent = Math.floor((100 * disk.available) / disk.size);
      found.push({
        level: percent < DISK_LOW_PERCENT ? 'warning' : 'note',
        where: `--root-dir ${flags.rootDir}`,
        what: `${(disk.available / GIB).toFixed(1)} GiB of ${(disk.size / GIB).toFixed(1)} GiB are available (${percent} %)`,
        todo: percent < DISK_LOW_PERCENT ? 'Free some: pods are evicted below evictionHard nodefs.available.' : '',
      });
    }
    return found;
  } catch (error) {
    return [{ level: 'note', where: 'host', what: `facts of the host cannot be read: ${messageOf(error)}`, todo: '' }];
  }
}
