/** What CRI is told of a pod's sandbox (pod lifecycle 5.4). */

import { dottedSysctl } from '../../../kube/names.ts';
import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { ANNOTATION_AGENT } from '../../../pod/names.ts';
import { overheadResources, sandboxResources } from '../../../pod/resources/resources.ts';
import { podFolder, podLogDir } from '../../../pod/runtime/logNames.ts';
import { CRI_LABELS, type PodSandboxConfig, type PortMapping, type UserNamespace } from '../../../wire/cri.ts';
import { type DnsWarning, podDns } from './dns.ts';
import { podHostname } from './hosts.ts';
import { sandboxSecurity } from './security.ts';
import { asksForUserNamespace } from './userNamespace.ts';

export type SandboxConfigResult =
  | { ok: true; config: PodSandboxConfig; warnings: DnsWarning[] }
  /** Becomes `CreatePodSandboxError` or, when asked for a container, `CreateContainerConfigError`. */
  | { ok: false; message: string };

/** Labels by which a pod's sandbox and containers are found again. */
export function podLabels(pod: Pod): Record<string, string> {
  return {
    [CRI_LABELS.podName]: pod.metadata.name,
    [CRI_LABELS.podNamespace]: pod.metadata.namespace,
    [CRI_LABELS.podUid]: pod.metadata.uid,
  };
}

/** Ports of the regular containers, those without a host port too; a repetition within one container is dropped. */
export function portMappings(pod: Pod): PortMapping[] {
  return pod.spec.containers.flatMap((container) => {
    const seen = new Set<string>();
    return (container.ports ?? []).flatMap((port): PortMapping[] => {
      const protocol = port.protocol === 'UDP' || port.protocol === 'SCTP' ? port.protocol : 'TCP';
      const hostIp = port.hostIP ?? '';
      const family = hostIp === '' ? 'any' : hostIp.includes(':') ? 'v6' : 'v4';
      const hostPort = port.hostPort ?? 0;
      const key = port.name || `${family}-${protocol}-${hostIp}:${port.containerPort}:${hostPort}`;
      if (seen.has(key)) return [];
      seen.add(key);
      return [{ protocol, containerPort: port.containerPort, hostPort, hostIp }];
    });
  });
}

/** The kernel's dots for the slashes that manifests may use. */
function sysctls(pod: Pod): Record<string, string> {
  return Object.fromEntries((pod.spec.securityContext?.sysctls ?? []).map(({ name, value }) => [dottedSysctl(name), value]));
}

export function generateSandboxConfig(
  pod: Pod,
  options: { attempt: number; facts: NodeFacts; cgroupParent?: string; userNamespace?: UserNamespace },
): SandboxConfigResult {
  const { facts } = options;
  const { metadata } = pod;
  // A pod that wants a user namespace does not get the host's users instead.
  if (asksForUserNamespace(pod) && options.userNamespace === undefined)
    return { ok: false, message: `pod ${metadata.namespace}/${metadata.name}: no ids were set aside for its user namespace` };
  const name = podHostname(pod, facts.clusterDomain);
  if (!name.ok) return name;
  const dns = podDns(pod, facts);
  const overhead = overheadResources(pod, facts);
  const config: PodSandboxConfig = {
    metadata: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid, attempt: options.attempt },
    ...(pod.spec.hostNetwork === true ? {} : { hostname: name.value.kernelHostname }),
    logDirectory: podLogDir(facts.podLogsDir, podFolder(metadata)),
    dnsConfig: dns.config,
    portMappings: portMappings(pod),
    labels: { ...metadata.labels, ...podLabels(pod) },
    annotations: { ...metadata.annotations, [ANNOTATION_AGENT]: 'actorlet' },
    linux: {
      ...(options.cgroupParent === undefined ? {} : { cgroupParent: options.cgroupParent }),
      securityContext: sandboxSecurity(pod, options.userNamespace),
      sysctls: sysctls(pod),
      ...(overhead === undefined ? {} : { overhead }),
      resources: sandboxResources(pod, facts),
    },
  };
  return { ok: true, config, warnings: dns.warnings };
}
