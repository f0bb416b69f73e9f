/**
 * Names that a container finds others by, and its own (resources and volumes 11): the resolver's settings, /etc/hosts and
 * the host name, a row for each line of the tables there.
 */
import type { PodSpec } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { NodeFacts } from '../../../../src/machines/nodeFacts.ts';
import { parseResolvConf, podDns } from '../../../../src/machines/pods/workers/config/dns.ts';
import { etcHosts, podHostname } from '../../../../src/machines/pods/workers/config/hosts.ts';
import { FACTS, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const dns = (spec: Partial<PodSpec>, facts: Partial<NodeFacts> = {}) => podDns(pod(spec), { ...FACTS, ...facts });
const searching = (...searches: string[]) => ({ hostDns: { servers: ['192.0.2.53'], searches, options: [] } });
const many = (count: number, suffix: string) => Array.from({ length: count }, (_, i) => `d${i}.${suffix}`);
/** A domain of so many characters. */
const long = (chars: number) => 'd'.repeat(chars);
/** Long lists in brief: how many of each, the last search domain, what was said. */
const brief = ({ config, warnings }: ReturnType<typeof podDns>) => ({
  servers: config.servers,
  searches: config.searches.length,
  lastSearch: config.searches.at(-1)?.slice(0, 20),
  searchChars: config.searches.join(' ').length,
  warnings: warnings.map(({ reason, message }) => `${reason}: ${message.slice(0, 90)}`),
});

goldenTable('the resolver of a pod is as recorded', 'config/resolver', {
  'policy None': () => dns({ dnsPolicy: 'None' }),
  'policy None, host network': () => dns({ dnsPolicy: 'None', hostNetwork: true }),
  'policy None, with settings of its own': () =>
    dns({ dnsPolicy: 'None', dnsConfig: { nameservers: ['1.1.1.1'], searches: ['a.b'], options: [{ name: 'edns0' }] } }),
  'policy ClusterFirst': () => dns({ dnsPolicy: 'ClusterFirst' }),
  'no policy is ClusterFirst': () => dns({}),
  'policy ClusterFirst, host network: as the host (resources trap 62)': () => dns({ dnsPolicy: 'ClusterFirst', hostNetwork: true }),
  'policy ClusterFirstWithHostNet': () => dns({ dnsPolicy: 'ClusterFirstWithHostNet' }),
  'policy ClusterFirstWithHostNet, host network': () => dns({ dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }),
  'policy Default': () => dns({ dnsPolicy: 'Default' }),
  'policy Default, host network': () => dns({ dnsPolicy: 'Default', hostNetwork: true }),
  'an unknown policy counts as of the cluster': () => dns({ dnsPolicy: 'Other' as 'Default' }),
  'cluster: no domain, so only what the host searches': () => dns({}, { clusterDomain: '' }),
  'cluster: what the host searches comes behind, each once': () => dns({}, searching('example.org', 'cluster.local')),
  'cluster: options of the host are dropped': () => dns({}, { hostDns: { servers: [], searches: [], options: ['rotate'] } }),
  'cluster: no server is configured': () => dns({}, { clusterDNS: [] }),
  'cluster: no server is configured, with settings of its own': () =>
    dns({ dnsConfig: { options: [{ name: 'edns0' }] } }, { clusterDNS: [] }),
  'cluster: a node without resolv.conf': () => dns({}, { hostDns: null }),
  'host: a server behind an interface of the host': () =>
    dns({ dnsPolicy: 'Default' }, { hostDns: { servers: ['fe80::1%3', '192.0.2.53'], searches: [], options: [] } }),
  'host: a server behind an interface, of a pod in the network of the host': () =>
    dns({ dnsPolicy: 'Default', hostNetwork: true }, { hostDns: { servers: ['fe80::1%3', '192.0.2.53'], searches: [], options: [] } }),
  'host: a node without resolv.conf': () => dns({ dnsPolicy: 'Default' }, { hostDns: null }),
  'host: a node without resolv.conf, of IPv6': () => dns({ dnsPolicy: 'Default' }, { hostDns: null, hostIPs: ['fd00::1'] }),
  'host: a node without resolv.conf, of both families': () =>
    dns({ dnsPolicy: 'Default' }, { hostDns: null, hostIPs: ['192.0.2.1', 'fd00::1'] }),
  'host: a node without resolv.conf and without an address': () => dns({ dnsPolicy: 'Default' }, { hostDns: null, hostIPs: [] }),
  'own servers come behind, each once': () => dns({ dnsConfig: { nameservers: ['1.1.1.1', '10.96.0.10'] } }),
  'own search domains come behind, each once': () => dns({ dnsConfig: { searches: ['example.org', 'a.b'] } }),
  'an own option replaces one of its name': () => dns({ dnsConfig: { options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }] } }),
  'servers: three': () => brief(dns({ dnsConfig: { nameservers: ['1.1.1.1', '2.2.2.2'] } })),
  'servers: a fourth is left out': () => brief(dns({ dnsConfig: { nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3'] } })),
  'searches: ten of the host stand behind those of the cluster (resources trap 63)': () => dns({}, searching(...many(10, 'example.org'))),
  'searches: 32': () => brief(dns({}, searching(...many(29, 'h')))),
  'searches: from the 33rd on they are left out, from the end (resources trap 63)': () => brief(dns({}, searching(...many(31, 'h')))),
  'searches: of 2048 characters': () => brief(dns({ dnsPolicy: 'None', dnsConfig: { searches: [...lines(8), long(248)] } })),
  'searches: of 2049 characters': () => brief(dns({ dnsPolicy: 'None', dnsConfig: { searches: [...lines(8), long(249)] } })),
  'searches: one domain of 255 characters': () => brief(dns({ dnsPolicy: 'None', dnsConfig: { searches: [long(255), 'a.b'] } })),
  'searches: one domain of 256 characters is left out alone': () =>
    brief(dns({ dnsPolicy: 'None', dnsConfig: { searches: [long(256), 'a.b'] } })),
});
/** So many different domains of 224 characters. */
function lines(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i}${long(223)}`);
}

const read = (text: string) => () => {
  try {
    return parseResolvConf(text);
  } catch (error) {
    return String(error);
  }
};
goldenTable('resolv.conf is read as recorded', 'config/resolvConf', {
  empty: read(''),
  comments: read('# nameserver 1.1.1.1\n; nameserver 2.2.2.2\n'),
  'nameservers add up': read('nameserver 1.1.1.1\nnameserver fd00::1\n'),
  'a nameserver without an address': read('nameserver 1.1.1.1\nnameserver\n'),
  'the last line of search domains counts': read('search a b\nsearch c\n'),
  'one dot at the end goes, and a lone dot': read('search a. b.. .\n'),
  'options add up, the last of each name': read('options ndots:1 rotate\noptions edns0 ndots:2\n'),
  'blanks and tabs': read('  nameserver\t1.1.1.1  \n\tsearch\ta\tb\n'),
  'what is not known': read('domain example.org\nsortlist 1.1.1.1\n'),
});

const hosts = (spec: Partial<PodSpec>, podIPs: string[], nodeHosts?: string) => () =>
  etcHosts({ pod: pod(spec), podIPs, facts: FACTS, ...(nodeHosts === undefined ? {} : { nodeHosts }) }).split('\n');
const ALIASES = [
  { ip: '192.0.2.1', hostnames: ['x', 'y'] },
  { ip: '192.0.2.2', hostnames: ['z'] },
];
goldenTable('/etc/hosts is as recorded', 'config/hosts', {
  'a pod': hosts({}, ['10.0.0.5']),
  'with addresses of both families': hosts({}, ['10.0.0.5', 'fd00::5']),
  'with a domain': hosts({ hostname: 'db-0', subdomain: 'db' }, ['10.0.0.5', 'fd00::5']),
  'with a name of its own (hostnameOverride)': hosts({ hostnameOverride: 'mail.example.org', subdomain: 'db' }, ['10.0.0.5', 'fd00::5']),
  'with aliases': hosts({ hostAliases: ALIASES }, ['10.0.0.5']),
  'on the network of the host': hosts({ hostNetwork: true }, ['192.0.2.10'], '127.0.0.1 localhost\n192.0.2.10 node-a\n'),
  'on the network of the host, with aliases': hosts({ hostNetwork: true, hostAliases: ALIASES }, ['192.0.2.10'], '127.0.0.1 localhost\n'),
});

const hostname =
  (spec: Partial<PodSpec>, metadata: Partial<Pod['metadata']> = {}, domain = 'cluster.local') =>
  () =>
    podHostname(pod(spec, { metadata }), domain);
const FQDN = { subdomain: 'sub', setHostnameAsFQDN: true };
goldenTable('host names are as recorded', 'config/hostnames', {
  'the name of the pod': hostname({}),
  'an override is all of it': hostname({ hostnameOverride: 'mail.example.org', hostname: 'db-0', subdomain: 'db' }),
  'an override of 64 characters': hostname({ hostnameOverride: `${'d'.repeat(62)}.d` }),
  'an override of 65 characters': hostname({ hostnameOverride: `${'d'.repeat(62)}.dd` }),
  'an override that is no name': hostname({ hostnameOverride: 'Mail_1' }),
  'the name of the pod, cut': hostname({}, { name: 'a'.repeat(70) }),
  'the name of the pod, cut behind a dash and a dot': hostname({}, { name: `${'a'.repeat(61)}-.b` }),
  'a name that leaves none': hostname({}, { name: `${'-'.repeat(63)}a` }),
  hostname: hostname({ hostname: 'db-0' }),
  'hostname that is no label': hostname({ hostname: 'a.b' }),
  subdomain: hostname({ subdomain: 'sub' }),
  'hostname and subdomain': hostname({ hostname: 'db-0', subdomain: 'sub' }),
  'subdomain that is no label': hostname({ subdomain: '-' }),
  'fully qualified without a subdomain': hostname({ setHostnameAsFQDN: true }),
  'fully qualified': hostname(FQDN),
  'fully qualified, of 64 characters': hostname(FQDN, {}, 'd'.repeat(64 - 'p.sub.ns.svc.'.length)),
  'fully qualified, of 65 characters': hostname(FQDN, {}, 'd'.repeat(65 - 'p.sub.ns.svc.'.length)),
  'fully qualified, of 65 characters, on the network of the host': hostname(
    { ...FQDN, hostNetwork: true },
    {},
    'd'.repeat(65 - 'p.sub.ns.svc.'.length),
  ),
});
