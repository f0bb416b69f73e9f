/** Files that others may have written to: logs, checkpoints, configuration, and texts of any kind. */
import { decodeScenario } from '@actorlet/faults/src/read/decode.ts';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { decodeConfigFile } from '../../src/boot/config/decode.ts';
import { createEntropy } from '../../src/boot/dependencies/clock.ts';
import { parseKubeConfig } from '../../src/boot/dependencies/kube/kubeconfig.ts';
import { decodeCpuState } from '../../src/machines/allocation/cpus/file.ts';
import { decodeCheckpoint as decodeDevices, encodeCheckpoint as encodeDevices } from '../../src/machines/allocation/devices/checkpoint.ts';
import { chooseNodeIPs } from '../../src/machines/api/node/nodeAddresses.ts';
import { logWriter, parseLogLine } from '../../src/machines/edge/https/logs/logLines.ts';
import { parseLogOptions } from '../../src/machines/edge/https/logs/logOptions.ts';
import { bootTimeMs, nodeCpu, nodeMemory, nodeNetwork, nodeSwap, taskCount } from '../../src/machines/edge/stats/procStats.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../../src/machines/foundation/checkpoint.ts';
import { parseMountinfo } from '../../src/machines/host/mountinfo.ts';
import { parseImageRef } from '../../src/machines/kube/imageRef.ts';
import { addQuantities, canonicalQuantity, compareQuantity, quantityToInteger, quantityToMilli } from '../../src/machines/kube/quantity.ts';
import { pathName } from '../../src/machines/pod/pathName.ts';
import { readAmounts } from '../../src/machines/pod/resources/amounts.ts';
import { FALLBACK_LOG_BYTES_MAX, fallbackText } from '../../src/machines/pod/runtime/terminationMessage.ts';
import { readPods } from '../../src/machines/pods/resize/allocation.ts';
import { parseResolvConf } from '../../src/machines/pods/workers/config/dns.ts';
import { envFileValue } from '../../src/machines/pods/workers/config/envFile.ts';
import { mappingFrom, mappingText } from '../../src/machines/pods/workers/config/userNamespace.ts';
import { type CredentialProvider, readAnswer } from '../../src/machines/runtime/imagePuller/credentialProviders.ts';
import { readIntent, readRecord } from '../../src/machines/runtime/imagePuller/pullRecords.ts';
import { decodeVolumeData, encodeVolumeData } from '../../src/machines/services/volumes/csi/data.ts';
import { parseGoDuration } from '../../src/machines/text/go/goDuration.ts';
import { goQuote } from '../../src/machines/text/go/goQuote.ts';
import { printable } from '../../src/machines/text/table.ts';
import { bytesOf, changed, changedText, hostileText, type Json } from './hostile.ts';
import { mayRefuse, must, type Target } from './target.ts';

const { sha256Hex } = createEntropy();
const NOW_MS = Date.UTC(2026, 0, 1);

const LOG = [
  '2024-05-01T10:00:00.123456789Z stdout F hello\n',
  '2024-05-01T10:00:01.1Z stderr P part of \n2024-05-01T10:00:02Z stderr F a line\n',
  '{"log":"docker\\n","stream":"stdout","time":"2024-05-01T10:00:00Z"}\n',
].join('');
const QUERIES = ['tailLines', 'sinceSeconds', 'sinceTime', 'limitBytes', 'timestamps', 'stream', 'follow', 'previous', 'tail'] as const;
const query = fc.array(
  fc.tuple(fc.constantFrom(...QUERIES), fc.oneof(hostileText, fc.constantFrom('5', '0', '-1', 'true', 'Stdout', 'All'))),
  { maxLength: 4 },
);

function log(text: string, asked: readonly (readonly [string, string])[]): void {
  const bytes = bytesOf(text);
  const options = parseLogOptions(new URLSearchParams(asked.map(([k, v]): [string, string] => [k, v])), NOW_MS);
  must(options.ok || options.status >= 400, 'a query that cannot be read is refused');
  const lines = text.split('\n').map(bytesOf);
  for (const line of lines) parseLogLine(line);
  if (options.ok) {
    const writer = logWriter(options.options);
    let size = 0;
    for (const line of lines) size += writer.line(line)?.length ?? 0;
    const limit = options.options.limitBytes ?? Number.POSITIVE_INFINITY;
    must(size <= Math.max(0, limit), 'limitBytes holds');
    must(size <= bytes.length + lines.length * 64, 'no more comes out than there is');
  }
  must(bytesOf(fallbackText(text)).length <= FALLBACK_LOG_BYTES_MAX, 'a termination message is short');
}

/** A base text, and what reads it. */
type Reader = readonly [base: string, read: (text: string) => unknown];
const json = (value: unknown): string => JSON.stringify(value);
const PROVIDER = { apiVersion: 'credentialprovider.kubelet.k8s.io/v1' } as CredentialProvider;
const ALLOCATION = {
  uid: 'u',
  container: 'c',
  resource: 'example.com/gpu',
  devices: { '0': ['a'] },
  response: { devices: [], mounts: [], envs: [], annotations: {}, cdiDevices: [] },
};
const DEVICES = encodeDevices({ allocations: [ALLOCATION] as never, resources: new Map() });
const CPUS = '{"policyName":"static","defaultCpuSet":"0-2","entries":{"uid":{"main":"3"}},"checksum":1353318690}';
const KUBECONFIG = stringify({
  ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'a' },
  clusters: [{ name: 'c', cluster: { server: 'https://192.0.2.1:6443', 'certificate-authority-data': 'QQ==' } }],
  users: [
    {
      name: 'u',
      user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', args: ['y'], env: [{ name: 'A', value: 'B' }] } },
    },
  ],
  contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
});
const CONFIG = stringify({
  ...{
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    maxPods: 50,
    syncFrequency: '1m',
    evictionHard: { 'memory.available': '100Mi' },
  },
  ...{
    featureGates: { NodeLogQuery: true },
    authentication: { webhook: { enabled: true, cacheTTL: '2m' } },
    reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
  },
});
const SCENARIO = stringify({
  ...{ apiVersion: 'actorlet.dev/v1alpha1', kind: 'FaultScenario', metadata: { name: 'a' } },
  spec: { faults: [{ kind: 'runtime.calls', methods: ['StartContainer'], code: 14, for: '10s', probability: 0.5 }] },
});
const RECORD = json({
  ...{
    kind: 'ImagePulledRecord',
    apiVersion: 'kubelet.config.k8s.io/v1alpha1',
    lastUpdatedTime: '2024-05-01T10:00:00Z',
    imageRef: 'sha256:0',
  },
  credentialMapping: { 'example.org/a': { kubernetesSecrets: [{ uid: 'u', namespace: 'n', name: 's', credentialHash: 'h' }] } },
});
const READERS: readonly Reader[] = [
  [DEVICES, (t) => mayRefuse(() => decodeDevices(t))],
  [encodeCheckpoint('probes', { a: [1] }, sha256Hex), (t) => decodeCheckpoint('probes', t, sha256Hex)],
  [CPUS, decodeCpuState],
  [RECORD, readRecord],
  [json({ kind: 'ImagePullIntent', apiVersion: 'kubelet.config.k8s.io/v1alpha1', image: 'a' }), readIntent],
  [
    encodeVolumeData({
      driver: pathName('d'),
      handle: 'h',
      specName: 's',
      nodeName: 'n',
      attachmentId: 'a',
      lifecycle: 'Persistent',
      attached: true,
      context: 'system_u:object_r:container_file_t:s0:c1,c2',
      block: false,
    }),
    decodeVolumeData,
  ],
  [mappingText(65_536, 65_536), (t) => mappingFrom(t, { idsPerPod: 65_536, podsMax: 110 })],
  [json({ requests: { cpu: '1' }, limits: { memory: '1Gi' } }), readAmounts],
  [
    json({
      kind: 'CredentialProviderResponse',
      apiVersion: PROVIDER.apiVersion,
      cacheKeyType: 'Image',
      cacheDuration: '5m',
      auth: { 'r.example': { username: 'u', password: 'p' } },
    }),
    (t) => mayRefuse(() => readAnswer(PROVIDER, t, parseGoDuration)),
  ],
  [KUBECONFIG, (t) => mayRefuse(() => parseKubeConfig(t, '/k'))],
  [CONFIG, (t) => mayRefuse(() => decodeConfigFile('/c', t))],
  [SCENARIO, (t) => decodeScenario(t, 'live')],
  ['36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n', parseMountinfo],
  ['nameserver 192.0.2.1\nsearch a.example b.example\noptions ndots:5 edns0\n', (t) => mayRefuse(() => parseResolvConf(t))],
  ["A='b'\nB='c d' # e\n# no\nC='x \n y'\n", (t) => ['A', 'B', 'C'].map((key) => envFileValue(bytesOf(t), key))],
  [
    'eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n',
    (t) => chooseNodeIPs({ nodeIPs: [], nodeName: t.slice(0, 60), resolved: [t], addresses: [], routes4: t, routes6: t }),
  ],
  [
    'MemTotal: 16393236 kB\nMemAvailable: 100 kB\nSwapTotal: 5 kB\nSwapFree: 1 kB\n',
    (t) => [nodeMemory({ meminfo: t, vmstat: t }, ''), nodeSwap(t, '')],
  ],
  ['cpu  1 2 3 4 5 6 7 8\nbtime 1714557600\n', (t) => [nodeCpu(t, '', 1), bootTimeMs(t), taskCount(t)]],
  ['Inter-|   Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n', (t) => nodeNetwork(t, '')],
];
const readers = fc.oneof(...READERS.map(([base, read]) => changedText(fc.constant(base)).map((text) => ({ text, read }))));
/** The same for what is JSON: still JSON, but another document. */
const documents = fc.oneof(
  ...READERS.filter(([base]) => base.startsWith('{')).map(([base, read]) =>
    changed(JSON.parse(base) as Json).map((doc) => ({ text: JSON.stringify(doc), read })),
  ),
);

function words(a: string, b: string): void {
  parseGoDuration(a);
  parseImageRef(a);
  goQuote(a);
  printable(a);
  for (const q of [a, b]) must(typeof canonicalQuantity(q) === 'string', 'a quantity is written as text');
  quantityToInteger(a);
  quantityToMilli(a);
  compareQuantity(a, b);
  addQuantities([a, b]);
}

export const fileTargets: readonly Target[] = [
  { name: 'log', share: 8, property: fc.property(changedText(fc.constant(LOG), ['\n', '2024-05-01T10:00:00Z ', 'stdout F ']), query, log) },
  { name: 'text file', share: 6, property: fc.property(readers, ({ text, read }) => void read(text)) },
  { name: 'checkpoint', share: 4, property: fc.property(documents, ({ text, read }) => void read(text)) },
  {
    name: 'allocations',
    share: 1,
    property: fc.property(
      changed({ entries: { u: { ContainerResources: { c: { requests: { cpu: '1' } } }, PodLevelResources: null } } }),
      (doc) => void readPods(doc),
    ),
  },
  { name: 'words', share: 4, property: fc.property(hostileText, hostileText, words) },
];
