/** Which kernel settings a pod may have of its own (pod lifecycle 2.6, resources 12.4). Pure. */
import { dottedSysctl } from '../../../kube/names.ts';
import type { Pod } from '../../../kube/types.ts';

/** The namespace that holds a setting, in the words of the reference's refusals. */
export type SysctlNamespace = 'IPC' | 'Net';

/** Settings of the kernel that exist once per namespace; any other would change the whole machine. */
const NAMESPACED: readonly (readonly [prefix: string, namespace: SysctlNamespace])[] = [
  ['kernel.shm', 'IPC'],
  ['kernel.msg', 'IPC'],
  ['fs.mqueue.', 'IPC'],
  ['net.', 'Net'],
];
const SEMAPHORES = 'kernel.sem';

/** Safe without being configured: contained in the pod, and harmless to its neighbours. `since`: the kernel that contains it. */
const SAFE: readonly { name: string; since?: readonly [major: number, minor: number] }[] = [
  { name: 'kernel.shm_rmid_forced' },
  { name: 'net.ipv4.ip_local_port_range' },
  { name: 'net.ipv4.tcp_syncookies' },
  { name: 'net.ipv4.ping_group_range' },
  { name: 'net.ipv4.ip_unprivileged_port_start' },
  { name: 'net.ipv4.ip_local_reserved_ports', since: [3, 16] },
  { name: 'net.ipv4.tcp_keepalive_time', since: [4, 5] },
  { name: 'net.ipv4.tcp_fin_timeout', since: [4, 6] },
  { name: 'net.ipv4.tcp_keepalive_intvl', since: [4, 5] },
  { name: 'net.ipv4.tcp_keepalive_probes', since: [4, 5] },
  { name: 'net.ipv4.tcp_rmem', since: [4, 15] },
  { name: 'net.ipv4.tcp_wmem', since: [4, 15] },
];

/** The namespace that holds a kernel setting. Null: no namespace holds it. */
export function sysctlNamespace(name: string): SysctlNamespace | null {
  if (name === SEMAPHORES) return 'IPC';
  return NAMESPACED.find(([prefix]) => name.startsWith(prefix))?.[1] ?? null;
}

/** Names that every pod may set on a kernel of this release (`uname -r`). A release that cannot be read counts as old. */
export function safeSysctls(kernelVersion: string): string[] {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(kernelVersion) ?? [];
  const has = (since: readonly [number, number] | undefined): boolean =>
    since === undefined || Number(major) > since[0] || (Number(major) === since[0] && Number(minor) >= since[1]);
  return SAFE.filter(({ since }) => has(since)).map(({ name }) => name);
}

/** Names, and prefixes that end in `*`, with dots: the safe ones and those of `allowedUnsafeSysctls`. */
export type SysctlPatterns = readonly string[];

export function sysctlPatterns(kernelVersion: string, allowedUnsafe: readonly string[]): SysctlPatterns {
  return [...safeSysctls(kernelVersion), ...allowedUnsafe.map(dottedSysctl)];
}

/** Why the pod may not set one of its sysctls; null: it may set them all. */
export function forbiddenSysctl(pod: Pod, patterns: SysctlPatterns): string | null {
  const { securityContext, hostNetwork, hostIPC } = pod.spec;
  for (const { name: written } of securityContext?.sysctls ?? []) {
    const name = dottedSysctl(written);
    const allowed = patterns.some((p) => (p.endsWith('*') ? name.startsWith(p.slice(0, -1)) : name === p));
    if (!allowed) return `forbidden sysctl: "${name}" not allowlisted`;
    const namespace = sysctlNamespace(name);
    if ((namespace === 'IPC' && hostIPC === true) || (namespace === 'Net' && hostNetwork === true))
      return `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`;
  }
  return null;
}
