/** Manifests and pods of the API: from the bytes to what the runtime is asked for. */
import fc from 'fast-check';
import { stringify } from 'yaml';
import { parseManifest } from '../../src/actors/pods/sources/manifest.ts';
import { createEntropy } from '../../src/boot/dependencies/clock.ts';
import { asksForDevices, deviceRequests } from '../../src/machines/allocation/devices/allocate.ts';
import { nodeMismatch } from '../../src/machines/kube/nodeSelector.ts';
import type { Container } from '../../src/machines/kube/podTable.ts';
import { readItem } from '../../src/machines/kube/read/answers.ts';
import { kindAt } from '../../src/machines/kube/read/kinds.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { unsafeName } from '../../src/machines/pod/pathName.ts';
import { httpProbe } from '../../src/machines/pod/probes/netRequests.ts';
import { qosClass } from '../../src/machines/pod/resources/qos.ts';
import { shortages } from '../../src/machines/pod/resources/requests.ts';
import { hashNameAndImage, hashWholeSpec } from '../../src/machines/pod/runtime/containerHash.ts';
import { killPlan } from '../../src/machines/pod/runtime/killOrder.ts';
import { containersWithMounts } from '../../src/machines/pod/volumes/mounting.ts';
import { podReferences, pullSecretNames } from '../../src/machines/pod/volumes/references.ts';
import { commonUser, decodeVolume, nestedMountPoints, podVolumes } from '../../src/machines/pod/volumes/volumes.ts';
import { sysctlPatterns } from '../../src/machines/pods/admission/ability/sysctls.ts';
import { refusedForItself } from '../../src/machines/pods/admission/admission.ts';
import { untolerated } from '../../src/machines/pods/admission/taints.ts';
import { allocationOf } from '../../src/machines/pods/resize/allocation.ts';
import { toApiPod } from '../../src/machines/pods/sources/apiPod.ts';
import { decodeManifest } from '../../src/machines/pods/sources/decode.ts';
import { generatePodStatus } from '../../src/machines/pods/status/generate.ts';
import { normalizeStatus } from '../../src/machines/pods/status/normalize.ts';
import { computePodActions } from '../../src/machines/pods/workers/actions/podActions.ts';
import { generateContainerConfig } from '../../src/machines/pods/workers/config/containerConfig.ts';
import { etcHosts } from '../../src/machines/pods/workers/config/hosts.ts';
import { generateSandboxConfig } from '../../src/machines/pods/workers/config/sandboxConfig.ts';
import { buildPayload } from '../../src/machines/services/volumes/payload.ts';
import { subPathParts } from '../../src/machines/services/volumes/subPaths.ts';
import { box, FACTS, NOW_MS, observed, rc } from '../machines/pods/fixtures.ts';
import { POD, SMALL_POD } from './documents.ts';
import { bytesOf, changed, changedInType, changedText, type Json } from './hostile.ts';
import { must, type Target } from './target.ts';

const entropy = createEntropy();
const PATTERNS = sysctlPatterns('6.1.0', ['net.*']);
/** What of a manifest's errors goes into logs, events and answers. */
const ERRORS_BYTES_MAX = 1 << 20;

/** Everything that is decided about a pod that a source let in. */
export function decide(pod: Pod): void {
  // Refused where pods come in (podConfig).
  if (unsafeName(pod) !== null) return;
  const containers: Container[] = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const first = containers[0];
  for (const status of [
    observed([]),
    observed(
      containers.map((c) => rc(c.name, 'running')),
      [box()],
    ),
  ]) {
    computePodActions({ pod, status });
    killPlan({ pod, status });
    normalizeStatus(generatePodStatus({ pod, status, failures: new Map(), facts: FACTS, nowWallMs: NOW_MS, podIsTerminal: false }));
  }
  refusedForItself(pod, { sysctls: PATTERNS, strictGroups: false, podGroups: true, extendedResources: true });
  nodeMismatch(pod.spec, { name: 'n1', labels: {} });
  shortages(pod, { allocatable: FACTS.allocatable, others: [], podsMax: 110 });
  untolerated([{ key: 'k', value: 'v', effect: 'NoExecute' }], pod.spec.tolerations ?? [], 'NoExecute');
  for (const name of [qosClass(pod), ...podReferences(pod).keys(), ...pullSecretNames(pod)])
    must(typeof name === 'string', 'names are text');
  allocationOf(pod);
  if (asksForDevices(pod)) for (const c of containers) deviceRequests(c);
  etcHosts({ pod, podIPs: ['10.0.0.5'], facts: FACTS });
  generateSandboxConfig(pod, { attempt: 0, facts: FACTS });
  podVolumes(pod);
  containersWithMounts(pod);
  for (const volume of pod.spec.volumes ?? []) {
    const decoded = decodeVolume(pod.metadata.uid, volume);
    nestedMountPoints(pod, volume.name);
    if (!decoded.ok || decoded.volume.source.kind !== 'files') continue;
    buildPayload({ pod, source: decoded.volume.source, objects: new Map(), facts: FACTS, user: commonUser(pod) });
  }
  for (const container of containers) {
    hashNameAndImage(container);
    hashWholeSpec(container);
    subPathParts(container, () => ({ ok: true, value: new Map() }));
    for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
      if (probe !== undefined) httpProbe({ probe, container, podIP: '10.0.0.5' } as Parameters<typeof httpProbe>[0]);
    }
    const kind = pod.spec.containers.includes(container) ? 'regular' : 'init';
    generateContainerConfig({
      ...{ pod, container, kind, facts: FACTS },
      ...{ restartCount: 1, imageRef: 'sha256:0', imageUser: { uid: 0, username: '' }, podIPs: ['10.0.0.5'], mounts: [] },
    });
  }
  must(first !== undefined, 'a pod has a container');
}

const asYaml = (doc: Json): string => stringify(doc, { version: '1.1' });
const text: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(fc.oneof(changed(POD), changed(SMALL_POD)), fc.boolean()).map(([doc, yaml]) => (yaml ? asYaml(doc) : JSON.stringify(doc))),
  changedText(fc.constantFrom(...[POD, SMALL_POD].flatMap((doc) => [JSON.stringify(doc), asYaml(doc)])), [
    ...[
      '&a [*a]',
      '<<: *a',
      '? ',
      '? - ',
      '- ',
      '---\n',
      '...\n',
      '%YAML 9',
      '!!binary x',
      '|9+\n',
      '>\n',
      '"\\x',
      "'",
      '{',
      '[',
      '}',
      ']',
      '\t',
      ': ',
    ],
    ...['a: &a {b: 1}\nc: *a\n', '[[[[[[[[', '{{{{{{{{', '- - - - - ', '? ? ? ? ', ', ,', '&a &b ', '*a *b', '!<tag:yaml.org,2002:str> '],
  ]),
);

function fromManifest(manifest: string, source: 'file' | 'http'): void {
  const parsed = parseManifest(bytesOf(manifest));
  if (!parsed.ok) {
    must(parsed.message.length < ERRORS_BYTES_MAX, 'the message is bounded');
    return;
  }
  const decoded = decodeManifest(parsed.value, {
    source,
    where: '/m/p.yaml',
    nodeName: 'n1',
    preventApiReferences: source === 'http',
    md5Hex: (t) => entropy.md5Hex(t),
  });
  if (decoded.ok) for (const pod of decoded.pods) decide(pod);
  else must(decoded.errors.length > 0 && decoded.errors.join('; ').length < ERRORS_BYTES_MAX, 'it is said why, and not at length');
}

export const podTargets: readonly Target[] = [
  { name: 'manifest', share: 30, property: fc.property(text, fc.constantFrom('file' as const, 'http' as const), fromManifest) },
  {
    name: 'apiPod',
    share: 20,
    property: fc.property(fc.oneof(changedInType(POD), changedInType(SMALL_POD), changed(POD), changed(SMALL_POD)), (doc) => {
      const object = readItem(doc, kindAt('/api/v1/pods'));
      const pod = object === null ? null : toApiPod(object);
      if (pod !== null) decide(pod);
    }),
  },
];
