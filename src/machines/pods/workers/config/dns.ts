/** The resolver configuration of a pod (pod lifecycle 5.6). */

import type { Pod } from '../../../kube/types.ts';
import type { NodeFacts } from '../../../nodeFacts.ts';
import { podDescription } from '../../../pod/podDescription.ts';
import type { StartFailure } from '../../../pod/runtime/seen.ts';
import type { DNSConfig } from '../../../wire/cri.ts';

const SERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARS_MAX = 2048;
/** Longest search domain. Longer ones make some resolvers abort. */
const DOMAIN_CHARS_MAX = 255;

/** What the pod was meant to get but does not; for a Warning event each. */
export type DnsWarning = StartFailure;
export interface PodDns {
  config: DNSConfig;
  warnings: DnsWarning[];
}
type DnsFacts = Pick<NodeFacts, 'clusterDNS' | 'clusterDomain' | 'hostDns' | 'hostIPs'>;

function kindOf(pod: Pod): 'none' | 'cluster' | 'host' {
  switch (pod.spec.dnsPolicy ?? 'ClusterFirst') {
    case 'None':
      return 'none';
    case 'Default':
      return 'host';
    case 'ClusterFirst':
      return pod.spec.hostNetwork === true ? 'host' : 'cluster';
    default:
      return 'cluster';
  }
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}

/** A node without a resolv.conf answers for itself, at the loopback address of each of its families. */
function hostConfig(pod: Pod, facts: DnsFacts): DNSConfig {
  if (facts.hostDns !== null) {
    // An interface of the host means nothing in another network (kubernetes/kubernetes#140880).
    const servers = facts.hostDns.servers.filter((server) => pod.spec.hostNetwork === true || !server.includes('%'));
    return { servers, searches: [...facts.hostDns.searches], options: [...facts.hostDns.options] };
  }
  const servers = unique(facts.hostIPs.map((ip) => (ip.includes(':') ? '::1' : '127.0.0.1')));
  return { servers: servers.length === 0 ? ['127.0.0.1'] : servers, searches: ['.'], options: [] };
}

function baseConfig(pod: Pod, facts: DnsFacts, warnings: DnsWarning[]): DNSConfig {
  const kind = kindOf(pod);
  if (kind === 'none') return { servers: [], searches: [], options: [] };
  if (kind === 'host') return hostConfig(pod, facts);
  if (facts.clusterDNS.length === 0) {
    warnings.push({
      reason: 'MissingClusterDNS',
      message: `pod: "${podDescription(pod)}". kubelet does not have ClusterDNS IP configured and cannot create Pod using "${pod.spec.dnsPolicy ?? 'ClusterFirst'}" policy. Falling back to "Default" policy.`,
    });
    return hostConfig(pod, facts);
  }
  const { clusterDomain: domain } = facts;
  const own = domain === '' ? [] : [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return { servers: [...facts.clusterDNS], searches: unique([...own, ...(facts.hostDns?.searches ?? [])]), options: ['ndots:5'] };
}

/** Options as `name` or `name:value`; the pod's win by name; sorted, because their order has no meaning. */
function mergeOptions(base: readonly string[], own: readonly { name: string; value?: string }[]): string[] {
  const byName = new Map<string, string>();
  for (const option of base) {
    const colon = option.indexOf(':');
    byName.set(colon < 0 ? option : option.slice(0, colon), colon < 0 ? '' : option.slice(colon + 1));
  }
  for (const { name, value } of own) byName.set(name, value ?? '');
  return [...byName].map(([name, value]) => (value === '' ? name : `${name}:${value}`)).sort();
}

function fitted(config: DNSConfig, warnings: DnsWarning[]): DNSConfig {
  const servers = config.servers.slice(0, SERVERS_MAX);
  const searches = config.searches.slice(0, SEARCHES_MAX).filter((domain) => domain.length <= DOMAIN_CHARS_MAX);
  while (searches.join(' ').length > SEARCH_CHARS_MAX) searches.pop();
  const forming = (what: string, applied: readonly string[]): void => {
    warnings.push({
      reason: 'DNSConfigForming',
      message: `${what} limits were exceeded, some were left out; the applied line is: ${applied.join(' ')}`,
    });
  };
  if (servers.length < config.servers.length) forming('Nameserver', servers);
  if (searches.length < config.searches.length) forming('Search line', searches);
  return { servers, searches, options: config.options };
}

export function podDns(pod: Pod, facts: DnsFacts): PodDns {
  const warnings: DnsWarning[] = [];
  const base = baseConfig(pod, facts, warnings);
  const own = pod.spec.dnsConfig;
  const merged: DNSConfig =
    own === undefined
      ? base
      : {
          servers: unique([...base.servers, ...(own.nameservers ?? [])]),
          searches: unique([...base.searches, ...(own.searches ?? [])]),
          options: mergeOptions(base.options, own.options ?? []),
        };
  return { config: fitted(merged, warnings), warnings };
}

/**
 * Reads resolv.conf. Nameservers and options add up, the last option of each name. Of several search lines the last counts;
 * a trailing dot of a domain is dropped, and so is a lone dot: some resolvers find nothing with it.
 * @throws Error naming the line, for a nameserver line without an address
 */
export function parseResolvConf(text: string): { servers: string[]; searches: string[]; options: string[] } {
  const servers: string[] = [];
  let searches: string[] = [];
  const options = new Map<string, string>();
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*[#;]/.test(line)) continue;
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === 'nameserver') {
      const [server] = values;
      if (server === undefined) throw new Error(`line ${index + 1}: nameserver without an address`);
      servers.push(server);
    } else if (keyword === 'search') {
      searches = values.filter((domain) => domain !== '.').map((domain) => domain.replace(/\.$/, ''));
    } else if (keyword === 'options') {
      for (const option of values) options.set(option.split(':', 1)[0] ?? '', option);
    }
  }
  return { servers, searches, options: [...options.values()] };
}
