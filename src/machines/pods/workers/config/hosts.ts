/** A pod's host name and its /etc/hosts (pod lifecycle 5.5). */

import { dnsLabel, dnsSubdomain, KERNEL_HOSTNAME_CHARS_MAX } from '../../../kube/names.ts';
import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { type Built, built, refused } from '../../../result.ts';

const HOSTNAME_CHARS_MAX = 63;

/** `domain` is '' for a pod without a subdomain. */
export interface PodHostname {
  hostname: string;
  domain: string;
  /** What the sandbox's kernel is told. */
  kernelHostname: string;
}

export function podHostname(pod: Pod, clusterDomain: string): Built<PodHostname> {
  const { spec, metadata } = pod;
  if (spec.hostnameOverride !== undefined) return overridden(spec.hostnameOverride);
  if (spec.hostname && dnsLabel(spec.hostname) !== null) return refused(`spec.hostname "${spec.hostname}" is not a DNS label`);
  if (spec.subdomain && dnsLabel(spec.subdomain) !== null) return refused(`spec.subdomain "${spec.subdomain}" is not a DNS label`);
  const hostname = (spec.hostname || metadata.name).slice(0, HOSTNAME_CHARS_MAX).replace(/[-.]+$/, '');
  if (hostname === '') return refused(`pod name "${metadata.name}" leaves no host name`);
  const domain = spec.subdomain ? `${spec.subdomain}.${metadata.namespace}.svc.${clusterDomain}` : '';
  // On the network of the host no kernel is told a name.
  const asFqdn = spec.setHostnameAsFQDN === true && spec.hostNetwork !== true;
  if (!asFqdn || domain === '') return built({ hostname, domain, kernelHostname: hostname });
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > KERNEL_HOSTNAME_CHARS_MAX) {
    return refused(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is longer than the ${KERNEL_HOSTNAME_CHARS_MAX} characters a kernel host name may have`,
    );
  }
  return built({ hostname, domain, kernelHostname: fqdn });
}

/** `hostnameOverride` is the whole name, whatever `hostname`, `subdomain` and `setHostnameAsFQDN` say; records in the cluster's DNS are made of those. */
function overridden(name: string): Built<PodHostname> {
  if (dnsSubdomain(name) !== null) return refused(`spec.hostnameOverride "${name}" is not a DNS subdomain`);
  if (name.length > KERNEL_HOSTNAME_CHARS_MAX)
    return refused(
      `spec.hostnameOverride: "${name}" is longer than the ${KERNEL_HOSTNAME_CHARS_MAX} characters a kernel host name may have`,
    );
  return built({ hostname: name, domain: '', kernelHostname: name });
}

const LOCAL_NAMES = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
];

/** Content of that file. `nodeHosts`: the node's own file, used for a pod on the host's network. */
export function etcHosts(input: {
  pod: Pod;
  podIPs: readonly string[];
  facts: Pick<NodeFacts, 'clusterDomain'>;
  nodeHosts?: string;
}): string {
  const { pod } = input;
  let text = '';
  if (pod.spec.hostNetwork === true) {
    text = `# Kubernetes-managed hosts file (host network).\n${input.nodeHosts ?? ''}`;
  } else {
    const name = podHostname(pod, input.facts.clusterDomain);
    const { hostname, domain } = name.ok ? name.value : { hostname: pod.metadata.name, domain: '' };
    const own = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`;
    text = `${['# Kubernetes-managed hosts file.', ...LOCAL_NAMES, ...input.podIPs.map((ip) => `${ip}\t${own}`)].join('\n')}\n`;
  }
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length === 0) return text;
  const lines = aliases.map(({ ip, hostnames }) => [ip, ...(hostnames ?? [])].join('\t'));
  return `${text}\n# Entries added by HostAliases.\n${lines.join('\n')}\n`;
}
