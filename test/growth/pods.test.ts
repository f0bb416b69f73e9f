/** Whatever a pod's author writes, checks of pods and decisions about them take time in proportion to its size. */
import { expect, it } from 'vitest';
import { statusPatch } from '../../src/machines/api/statusPatch.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { beyondBounds } from '../../src/machines/pod/bounds.ts';
import { unsafeName } from '../../src/machines/pod/pathName.ts';
import { qosClass } from '../../src/machines/pod/resources/qos.ts';
import { podReferences } from '../../src/machines/pod/volumes/references.ts';
import { nestedMountPoints, podVolumes } from '../../src/machines/pod/volumes/volumes.ts';
import { admit } from '../../src/machines/pods/admission/admission.ts';
import { podFields } from '../../src/machines/pods/admission/supported.ts';
import { emptyPodStorage, mergeSet } from '../../src/machines/pods/podConfig/merge.ts';
import { decodeManifest } from '../../src/machines/pods/sources/decode.ts';
import { generatePodStatus } from '../../src/machines/pods/status/generate.ts';
import { computePodActions } from '../../src/machines/pods/workers/actions/podActions.ts';
import { generateContainerConfig } from '../../src/machines/pods/workers/config/containerConfig.ts';
import { podDns } from '../../src/machines/pods/workers/config/dns.ts';
import { etcHosts, podHostname } from '../../src/machines/pods/workers/config/hosts.ts';
import { generateSandboxConfig } from '../../src/machines/pods/workers/config/sandboxConfig.ts';
import { FACTS, NOW_MS, observed } from '../machines/pods/fixtures.ts';
import { rotating } from '../rotation.ts';
import { growth, PARTS } from './growth.ts';
import { asPod, documentOf, documentWith, md5Hex, places, TEXTS, texts } from './inputs.ts';

const ADMISSION = {
  others: [],
  podsMax: 110,
  allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
  node: { name: 'n1', labels: {}, taints: [] },
  ability: { sysctls: ['*'], strictGroups: true, podGroups: true, extendedResources: true },
};
const fromApi = (doc: Record<string, unknown>): Pod => {
  const pod = asPod(doc);
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, 'kubernetes.io/config.source': 'api' } },
    status: {},
  };
};

/** What sees a pod before it is known to be within bounds. */
const FIRST: Readonly<Record<string, (doc: Record<string, unknown>) => unknown>> = {
  'decoding a manifest': (doc) => decodeManifest(doc, { source: 'http', where: 'u', nodeName: 'n', preventApiReferences: true, md5Hex }),
  'the set of a source': (doc) => {
    const { state } = mergeSet(emptyPodStorage, { source: 'api', pods: [fromApi(doc)], nowWallMs: NOW_MS });
    return mergeSet(state, { source: 'api', pods: [fromApi(structuredClone(doc))], nowWallMs: NOW_MS });
  },
  admission: (doc) => admit({ ...ADMISSION, pod: fromApi(doc) }),
  'unsupported fields': (doc) => podFields(fromApi(doc), { api: true, extendedResources: true }),
  'objects it names': (doc) => podReferences(fromApi(doc)),
  'class of service': (doc) => qosClass(fromApi(doc)),
};

/** What sees it once it was let in. */
const THEN: Readonly<Record<string, (pod: Pod) => unknown>> = {
  volumes: (pod) => podVolumes(pod),
  'mount points': (pod) => nestedMountPoints(pod, 'v0'),
  'sandbox configuration': (pod) => generateSandboxConfig(pod, { attempt: 0, facts: FACTS }),
  'container configuration': (pod) => {
    const [container] = pod.spec.containers;
    if (container === undefined) return null;
    const common = { kind: 'regular', restartCount: 0, imageRef: 'i', imageUser: null, podIPs: [], facts: FACTS, mounts: [] } as const;
    return generateContainerConfig({ pod, container, ...common });
  },
  resolver: (pod) => podDns(pod, FACTS),
  hosts: (pod) => [podHostname(pod, 'cluster.local'), etcHosts({ pod, podIPs: ['10.0.0.1'], facts: FACTS })],
  actions: (pod) => computePodActions({ pod, status: observed([]), crashBackoff: new Map(), nowWallMs: NOW_MS } as never),
  status: (pod) => {
    const common = { pod, status: observed([]), failures: new Map(), facts: FACTS, nowWallMs: NOW_MS, podIsTerminal: false };
    const status = generatePodStatus({ ...common, old: undefined });
    return statusPatch(pod.status, generatePodStatus({ ...common, old: status }));
  },
};

/** All of it, as a pod goes through a node. */
function takeIn(doc: Record<string, unknown>): void {
  for (const of of Object.values(FIRST)) of(doc);
  const pod = fromApi(doc);
  if (beyondBounds(pod).length > 0) return;
  const named = unsafeName(pod) === null ? pod : renamed(pod);
  for (const of of Object.values(THEN)) of(named);
}

/** Nothing past the border sees a name that cannot be a file; the other fields of such a pod are looked at all the same. */
function renamed(pod: Pod): Pod {
  const { metadata, spec } = pod;
  const named = <T extends { name: string }>(letter: string, list: readonly T[] = []): T[] =>
    list.map((one, i) => ({ ...one, name: `${letter}${i}` }));
  return {
    ...pod,
    metadata: { ...metadata, uid: 'u1', namespace: 'default', name: 'web' },
    spec: {
      ...spec,
      volumes: named('v', spec.volumes),
      containers: named('c', spec.containers),
      initContainers: named('i', spec.initContainers),
      ephemeralContainers: named('e', spec.ephemeralContainers),
    },
  };
}

/** Characters of a text, and entries of a list: what is quadratic takes seconds, what is not some milliseconds. */
const CHARS = 16_384;
const ENTRIES = 8_192;
/** What an API server takes. */
const OBJECT_CHARS_MAX = 1_572_864;
/** Fields that have the text at the same time: the time of one that is quadratic still shows. */
const FIELDS = 24;

it.each(rotating('texts of pods', Object.keys(TEXTS), PARTS))('text of %s, in each field', (kind) => {
  const text = TEXTS[kind] ?? String;
  const all = texts();
  for (let i = 0; i < all.length; i += FIELDS) {
    const fields = all.slice(i, i + FIELDS);
    const grown = (n: number) => {
      const doc = documentOf(fields, text(n));
      return () => takeIn(doc);
    };
    expect(growth(CHARS, grown), fields.map((f) => f.steps.join('.')).join(', ')).toBeNull();
  }
});

it.each(
  rotating(
    'lists of pods',
    places().map((p) => [p.path, p] as const),
    PARTS,
  ),
)('many entries in %s', (_, place) => {
  const grown = (n: number) => {
    const doc = documentWith(place, n);
    return () => takeIn(doc);
  };
  const entryChars = (JSON.stringify(documentWith(place, 17)).length - JSON.stringify(documentWith(place, 1)).length) / 16;
  expect(growth(Math.min(ENTRIES, Math.floor(OBJECT_CHARS_MAX / entryChars)), grown)).toBeNull();
});
