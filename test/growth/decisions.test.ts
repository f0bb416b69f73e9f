/** The same for what else others write: objects of the API, files, logs, answers of runtimes, plugins and registries, requests. */
import { decodeScenario } from '@actorlet/faults/src/read/decode.ts';
import { stagesOf } from '@actorlet/fleet/src/pods/stages.ts';
import { redacted } from '@actorlet/shown/src/deaths/redact.ts';
import { createMatcher } from '@actorlet/shown/src/match.ts';
import { describe, expect, it } from 'vitest';
import { parseManifest } from '../../src/actors/pods/sources/manifest.ts';
import { mountErrorOf } from '../../src/boot/dependencies/mounts/mountError.ts';
import { byNode } from '../../src/machines/allocation/devices/allocate.ts';
import { deviceHints } from '../../src/machines/allocation/devices/hints.ts';
import { decodeResponse, encodeResponse } from '../../src/machines/allocation/devices/wire.ts';
import { statusPatch } from '../../src/machines/api/statusPatch.ts';
import { accessAttributes } from '../../src/machines/edge/https/attributes.ts';
import { parseLogLine } from '../../src/machines/edge/https/logs/logLines.ts';
import { parseLogOptions } from '../../src/machines/edge/https/logs/logOptions.ts';
import { readLogQuery } from '../../src/machines/edge/https/logs/logQuery.ts';
import { nodeNetwork } from '../../src/machines/edge/stats/procStats.ts';
import { parseMountinfo } from '../../src/machines/host/mountinfo.ts';
import { parseImageRef } from '../../src/machines/kube/imageRef.ts';
import { envName, ipAddress, qualifiedName, quantityValue } from '../../src/machines/kube/names.ts';
import { queryKey } from '../../src/machines/kube/objects.ts';
import type { Container } from '../../src/machines/kube/podTable.ts';
import { parseQuantity, quantityToMilli } from '../../src/machines/kube/quantity.ts';
import { parseLabelSelector } from '../../src/machines/kube/read/labelSelector.ts';
import { decodeWatchLine } from '../../src/machines/kube/request.ts';
import type { Pod, PodStatus } from '../../src/machines/kube/types.ts';
import { expand } from '../../src/machines/pod/execLimits.ts';
import { redirectOf } from '../../src/machines/pod/probes/netRequests.ts';
import { fallbackText } from '../../src/machines/pod/runtime/terminationMessage.ts';
import { toServiceEntry } from '../../src/machines/pod/serviceEnv.ts';
import type { VolumeSource } from '../../src/machines/pod/volumes/kinds.ts';
import { nestedMountPoints, podVolumes } from '../../src/machines/pod/volumes/volumes.ts';
import { takenPort } from '../../src/machines/pods/admission/hostPorts.ts';
import { emptyLedger } from '../../src/machines/pods/manager/records.ts';
import { step } from '../../src/machines/pods/manager/step.ts';
import { emptyPodStorage, mergeSet } from '../../src/machines/pods/podConfig/merge.ts';
import { decodeManifest } from '../../src/machines/pods/sources/decode.ts';
import { Problems } from '../../src/machines/pods/sources/validation/problems.ts';
import { validatePodSecurity } from '../../src/machines/pods/sources/validation/security.ts';
import { mergeStatus } from '../../src/machines/pods/status/manager.ts';
import { parseResolvConf } from '../../src/machines/pods/workers/config/dns.ts';
import { containerEnv } from '../../src/machines/pods/workers/config/env.ts';
import { envFileKey, fileKeyValue } from '../../src/machines/pods/workers/config/envFile.ts';
import { readAnswer } from '../../src/machines/runtime/imagePuller/credentialProviders.ts';
import { readRecord } from '../../src/machines/runtime/imagePuller/pullRecords.ts';
import { EMPTY_OOM_LEDGER, readOoms } from '../../src/machines/runtime/oom.ts';
import { decodeObject } from '../../src/machines/services/objects/decode.ts';
import { csiVersion } from '../../src/machines/services/plugins/rules.ts';
import { directoriesOf, pathProblem } from '../../src/machines/services/volumes/atomic.ts';
import { buildPayload } from '../../src/machines/services/volumes/payload.ts';
import { parseGoDuration } from '../../src/machines/text/go/goDuration.ts';
import { goQuote } from '../../src/machines/text/go/goQuote.ts';
import { printable } from '../../src/machines/text/table.ts';
import { FACTS, NOW_MS, pod } from '../machines/pods/fixtures.ts';
import { pullCredentials } from '../machines/pullCredentials.ts';
import { managerFacts, ofApi } from '../pods/managerFacts.ts';
import { rotating } from '../rotation.ts';
import { type Grown, growth, PARTS } from './growth.ts';
import { md5Hex, TEXTS } from './inputs.ts';

const CHARS = 16_384;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const repeat = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));
const ref = (kind: 'secret' | 'configMap', name = 'o') => ({ kind, namespace: 'ns', name }) as const;
const provider = { name: 'p', apiVersion: 'v1', matchImages: [] } as never;
const secretOf = (config: object) => ({
  namespace: 'ns',
  name: 's',
  secret: { uid: 'u', type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': bytes(JSON.stringify(config)) } },
});

/** What reads a text. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a name of a label': qualifiedName,
  'a name of a variable': envName,
  'an address': ipAddress,
  'a quantity': (t) => [quantityValue(t), quantityValue(`${t.slice(0, -1)}`), parseQuantity(t), quantityToMilli(t)],
  'a duration': (t) => [parseGoDuration(t), parseGoDuration('1h'.repeat(t.length / 2))],
  'a sysctl': (t) => {
    const p = new Problems();
    validatePodSecurity(p, '', { sysctls: [{ name: t, value: '' }, ...repeat(3, (i) => ({ name: t.slice(0, 250 - i), value: '' }))] });
    return p.found;
  },
  references: (t) => expand(t, () => undefined),
  'an image': parseImageRef,
  'a key of a registry': (t) =>
    pullCredentials([secretOf({ auths: { [t]: {}, [`https://${t}`]: { auth: btoa(`a:${t}`) } } })], 'r.example/a/b'),
  'an answer of a provider': (t) => {
    const answer = { kind: 'CredentialProviderResponse', apiVersion: 'v1', cacheKeyType: 'Image', cacheDuration: t, auth: {} };
    return [JSON.stringify(answer), t].map((text) => {
      try {
        return readAnswer(provider, text, parseGoDuration);
      } catch {
        return null;
      }
    });
  },
  'a record of a pull': readRecord,
  'a line of a watch': decodeWatchLine,
  'a line of a log': (t) => [parseLogLine(bytes(t)), parseLogLine(bytes(`2024-05-01T10:00:00Z stdout F ${t}`)), fallbackText(t)],
  'options of logs': (t) => parseLogOptions(new URLSearchParams({ sinceTime: t, tailLines: t, limitBytes: t }), NOW_MS),
  'a query of logs': (t) => readLogQuery(new URLSearchParams({ query: t, sinceTime: t, pattern: t, boot: t }), { below: false }),
  'a path of a request': (t) => accessAttributes('GET', `/${t}`, { fineGrained: true }),
  'a redirect': (t) =>
    redirectOf({ first: 'http://10.0.0.1/', present: { url: 'http://10.0.0.1/' } as never }, { status: 301, location: `/${t}` }),
  'a manifest in YAML': (t) => [parseManifest(bytes(`a: ${t}`)), parseManifest(bytes(`${t}`)), parseManifest(bytes(`"${t}": 1`))],
  'a file of variables': (t) => [fileValue(`A='${t}'`), fileValue(`A='1' ${t}`), fileValue(t)],
  'a resolver file': (t) => parseResolvConf(`search ${t}\n${t}`),
  'a list of mounts': parseMountinfo,
  'network counters': (t) => nodeNetwork(t, ''),
  'a record of the kernel': (t) => [t, ...OOM_PARTS.map((part) => part.repeat(t.length / part.length))].map(oomsOf),
  'an error of mount': mountErrorOf,
  'a version of a driver': (t) => csiVersion([t, `1.0.0-${t}`]),
  'a pattern of a fault': (t) => createMatcher().any([t.slice(0, 100)], t),
  'a path in a volume': (t) => [pathProblem(t), directoriesOf([t.slice(0, 4_096)])],
  'a text shown': (t) => [goQuote(t), printable(t)],
  'a text of a program in a bundle of a death': (t) => redacted(t),
};
const OOM_PARTS = [
  ',cpuset=c',
  ',mems_allowed=0',
  ',mems_allowed=0,oom_memcg=/a',
  ',task_memcg=/a',
  ',task=a',
  ',pid=1',
  'Killed process 1 (a',
];
const OOM_HEAD = 'oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=0';
function oomsOf(text: string): unknown {
  const lines = ['a invoked oom-killer: ', `${OOM_HEAD}${text}`, `${OOM_HEAD},mems_allowed=0,oom_memcg=/a,task_memcg=/a${text}`, text];
  return readOoms(EMPTY_OOM_LEDGER, { records: lines.map((line, i) => `4,${i},0,-;${line}`), seq: -1 });
}
const variable = { volumeName: 'v', path: 'f', key: 'K' };
function fileValue(text: string): unknown {
  return fileKeyValue(variable, new Map([[envFileKey(variable), { kind: 'found', path: '/f', content: bytes(text) }]]));
}

describe.each(rotating('readers', Object.keys(READERS), PARTS))('%s', (what) => {
  it('is read in time that grows with its length', () => {
    const read = READERS[what] ?? String;
    for (const [kind, text] of Object.entries(TEXTS)) {
      const grown: Grown = (n) => {
        const input = text(n);
        return () => read(input);
      };
      expect(growth(CHARS, grown), kind).toBeNull();
    }
  });
});

const filesOf = (sources: Extract<VolumeSource, { kind: 'files' }>['sources']): Extract<VolumeSource, { kind: 'files' }> => ({
  kind: 'files',
  memory: false,
  defaultMode: 0o644,
  sources,
});
const configMap = (n: number, key: (i: number) => string = (i) => `k${i}`) => ({
  kind: 'configMap' as const,
  result: { kind: 'found' as const, value: { data: Object.fromEntries(repeat(n, (i) => [key(i), ''])), binaryData: {} } },
});
const payload = (source: ReturnType<typeof filesOf>, n: number, more: Partial<Pod['metadata']> = {}) => {
  const objects = new Map([[queryKey({ kind: 'configMap', name: 'o' }), configMap(n)]]);
  const p = pod({}, { metadata: more });
  return () => buildPayload({ pod: p, source, objects, facts: FACTS, user: null });
};
const object = (items: { key: string; path: string }[] | null) =>
  ({ kind: 'configMap', name: 'o', optional: false, items: items?.map((i) => ({ ...i, mode: null })) ?? null }) as const;
const mounting = (mounts: Container['volumeMounts'], volumes: Pod['spec']['volumes'] = []): Pod =>
  pod({ containers: [{ name: 'c', volumeMounts: mounts ?? [] }], volumes: volumes ?? [] });
const conditions = (n: number): PodStatus => ({
  conditions: repeat(n, (i) => ({ type: `t${i}`, status: 'True' as const, lastTransitionTime: `${i}` })),
});
const yaml = (text: string) => () => parseManifest(bytes(text));
const listOf = (items: unknown[]) => () =>
  decodeManifest(
    { apiVersion: 'v1', kind: 'PodList', items },
    { source: 'http', where: 'u', nodeName: 'n', preventApiReferences: true, md5Hex },
  );

/** Inputs of many parts, and how many at most. */
const MANY: Readonly<Record<string, readonly [most: number, make: Grown]>> = {
  'keys of a config map': [65_536, (n) => payload(filesOf([object(null)]), n)],
  'keys put to paths': [16_384, (n) => payload(filesOf([object(repeat(n, (i) => ({ key: `k${i}`, path: `a/b${i}/c` })))]), n)],
  'levels of a path': [4_000, (n) => payload(filesOf([object(repeat(20, (i) => ({ key: 'k0', path: `${i}${'/a'.repeat(n / 2)}` })))]), 1)],
  'a config map named again and again': [8_192, (n) => payload(filesOf(repeat(n, () => object(null))), n)],
  'fields of a pod as files': [
    4_096,
    (n) => {
      const item = (i: number) => ({ path: `p${i}`, mode: null, fieldPath: 'metadata.annotations', resource: null });
      return payload(filesOf([{ kind: 'downwardAPI', items: repeat(n, item) }]), 0, { annotations: { a: 'x'.repeat(n * 16) } });
    },
  ],
  'amounts of a pod as files': [
    8_192,
    (n) => {
      const resource = { containerName: 'web', resource: 'limits.cpu' };
      return payload(
        filesOf([{ kind: 'downwardAPI', items: repeat(n, (i) => ({ path: `p${i}`, mode: null, fieldPath: null, resource })) }]),
        0,
      );
    },
  ],
  'slashes of a mount path': [131_072, (n) => () => nestedMountPoints(mounting([{ name: 'v', mountPath: `${'/'.repeat(n)}x` }]), 'v')],
  'mounts in each other': [
    // More mounts than this are refused.
    500,
    (n) => () =>
      nestedMountPoints(mounting(repeat(n, (i) => ({ name: i % 2 === 0 ? 'v' : 'w', mountPath: `/${'/'.repeat(i % 9)}m${i}` }))), 'v'),
  ],
  'volumes that are devices too': [
    8_192,
    (n) => {
      const p = mounting(
        repeat(n, (i) => ({ name: `v${i}`, mountPath: `/${i}` })),
        repeat(n, (i) => ({ name: `v${i}`, persistentVolumeClaim: { claimName: 'c' } })),
      );
      const [c] = p.spec.containers;
      if (c !== undefined) c.volumeDevices = repeat(n, (i) => ({ name: `v${i}`, devicePath: '/d' }));
      return () => podVolumes(p);
    },
  ],
  'variables from one file': [
    8_192,
    (n) => {
      const content = bytes(repeat(n, (i) => `K${i}='v'\n`).join(''));
      const files = new Map([[envFileKey(variable), { kind: 'found' as const, path: '/f', content }]]);
      return () => repeat(n, (i) => fileKeyValue({ ...variable, key: `K${i}` }, files));
    },
  ],
  'sources of variables': [
    500,
    (n) => {
      const data = Object.fromEntries(repeat(n * 60, (i) => [`K${i}`, '']));
      const objects = new Map([['configMap ns/o', { kind: 'found' as const, value: { data, binaryData: {} } }]]);
      const container = { name: 'c', envFrom: repeat(n, () => ({ configMapRef: { name: 'o' } })) };
      return () => containerEnv({ pod: pod(), container, podIPs: [], facts: FACTS, cluster: { services: new Map(), objects } });
    },
  ],
  'ports of the host': [
    16_384,
    (n) => {
      const of = (first: number) =>
        pod({ containers: [{ name: 'c', ports: repeat(n, (i) => ({ containerPort: 1, hostPort: first + i })) }] });
      const [wanted, held] = [of(1), of(100_000)];
      return () => takenPort(wanted, [held]);
    },
  ],
  'pods that find no room, and wait or do not': [
    8_192,
    (n) => {
      const pods = repeat(n, (i) => ofApi(pod({}, { metadata: { name: `p${i}`, uid: `u${i}` } })));
      const { offer } = managerFacts();
      const few = managerFacts({ offer: { ...offer, podsMax: 100 } });
      return () => {
        for (const facts of [few, { ...few, listing: undefined }]) {
          const { ledger } = step(emptyLedger(['api']), { type: 'pods.op', op: 'ADD', source: 'api', pods, first: true }, facts);
          step(ledger, { type: 'look' }, facts);
        }
      };
    },
  ],
  'pods that are all gone from their source': [
    16_384,
    (n) => {
      const pods = repeat(n, (i) => ofApi(pod({}, { metadata: { name: `p${i}`, uid: `u${i}` } })));
      const { offer } = managerFacts();
      const facts = managerFacts({ offer: { ...offer, podsMax: 10 } });
      const { ledger } = step(emptyLedger(['api']), { type: 'pods.op', op: 'ADD', source: 'api', pods, first: true }, facts);
      return () => step(ledger, { type: 'pods.op', op: 'REMOVE', source: 'api', pods, complete: [] }, facts);
    },
  ],
  'conditions of a status': [
    16_384,
    (n) => {
      const [old, next] = [conditions(n), conditions(n)];
      return () => statusPatch(old, mergeStatus(next, next, { couldHaveRunning: false, nowWallMs: NOW_MS }));
    },
  ],
  'registries of a secret': [
    16_384,
    (n) => {
      const secret = secretOf({ auths: Object.fromEntries(repeat(n, (i) => [`r${i}.example`, {}])) });
      return () => pullCredentials([secret], 'r1.example/a');
    },
  ],
  'ports of a service': [
    16_384,
    (n) => () => toServiceEntry({ metadata: { name: 's' }, spec: { clusterIP: '10.0.0.1', ports: repeat(n, (i) => ({ port: i })) } }),
  ],
  'keys of a secret': [
    16_384,
    (n) => () => decodeObject(ref('secret'), { metadata: { name: 'o' }, data: Object.fromEntries(repeat(n, (i) => [`k${i}`, 'YQ=='])) }),
  ],
  'devices of a plugin': [
    8_192,
    (n) => {
      const encoded = encodeResponse({
        envs: Object.fromEntries(repeat(n, (i) => [`E${i}`, 'v'])),
        annotations: {},
        cdiDevices: [],
        mounts: [],
        devices: repeat(n, (i) => ({ containerPath: `/d${i}`, hostPath: '/d', permissions: 'r' })),
      });
      return () => decodeResponse(encoded);
    },
  ],
  'devices of one container': [65_536, (n) => () => byNode(undefined, repeat(n, String))],
  'devices that an init container hands on': [
    16_384,
    (n) => {
      const [free, held] = ['f', 'h'].map((of) => repeat(n, (i) => `${of}${i}`));
      const all = [...(free ?? []), ...(held ?? [])];
      const numa = new Map(all.map((id) => [id, [id.startsWith('f') ? 0 : 1]]));
      const state = { healthy: new Set(all), unhealthy: new Set<string>(), numa, returning: false };
      const resources = { limits: { 'example.com/x': String(n) } };
      const p = pod({ initContainers: [{ name: 'i', resources }], containers: [{ name: 'c', resources }] });
      const devices = { '1': held ?? [] };
      const response = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
      const allocations = [{ uid: p.metadata.uid, container: 'i', resource: 'example.com/x', devices, response }];
      const ledger = { resources: new Map([['example.com/x', state]]), gone: new Set<string>(), allocations };
      return () => deviceHints(ledger, p, { container: 'c', nodes: [0, 1], reserved: new Map() });
    },
  ],
  'commas of a label selector': [131_072, (n) => () => parseLabelSelector(','.repeat(n))],
  'requirements of a label selector': [131_072, (n) => () => parseLabelSelector(repeat(n, () => 'a,').join(''))],
  'empty lines of a Stage': [
    131_072,
    (n) => {
      const spec = { resourceRef: { kind: 'Pod' }, selector: {}, next: { statusTemplate: `conditions:\n${'\n'.repeat(n)}` } };
      const text = JSON.stringify({ apiVersion: 'kwok.x-k8s.io/v1alpha1', kind: 'Stage', metadata: { name: 's' }, spec });
      return () => stagesOf(text);
    },
  ],
  'pods of a source, of one name': [
    8_192,
    (n) => {
      const pods = repeat(n, (i) => pod({}, { metadata: { uid: `u${i}` } }));
      return () => mergeSet(emptyPodStorage, { source: 'http', pods, nowWallMs: NOW_MS });
    },
  ],
  'errors of a document': [131_072, (n) => listOf(repeat(n, () => 1))],
  'errors of a pod': [16_384, (n) => listOf([{ metadata: { name: 'p' }, spec: { containers: repeat(n, () => ({ tty: 1, stdin: 1 })) } }])],
  'keys of a scenario': [
    32_768,
    (n) => {
      const text = repeat(n, (i) => `k${i}: v`).join('\n');
      return () => decodeScenario(text, 'live');
    },
  ],
  'keys of YAML': [16_384, (n) => yaml(repeat(n, (i) => `k${i}: v`).join('\n'))],
  'keys of YAML in braces': [16_384, (n) => yaml(`{${repeat(n, (i) => `k${i}: v`).join(', ')}}`)],
  'keys of YAML that are lists': [800, (n) => yaml(`${'? '.repeat(n)}a`)],
  'keys of YAML that are mappings': [800, (n) => yaml(`${'{? '.repeat(n)}a${'}'.repeat(n)}`)],
  'aliases of YAML': [16_384, (n) => yaml(`a: &a x\nb:\n${'- *a\n'.repeat(n)}`)],
  'what aliases of YAML stand for': [8_192, (n) => yaml(`a: &a\n${'  - xxxxxxxx\n'.repeat(n)}b:\n${'- *a\n'.repeat(99)}`)],
  'anchors of YAML': [8_192, (n) => yaml(`${repeat(n, (i) => `- &a${i} x\n`).join('')}${repeat(n, (i) => `- *a${i}\n`).join('')}`)],
  'merges of YAML': [
    4_096,
    (n) => yaml(`a: &a {${repeat(n, (i) => `k${i}: v`).join(', ')}}\n${repeat(90, (i) => `m${i}: {<<: *a}`).join('\n')}`),
  ],
  'documents of YAML': [8_192, (n) => yaml('---\na: b\n'.repeat(n))],
};

it.each(rotating('long inputs', Object.keys(MANY), PARTS))('many %s', (what) => {
  const [most, make] = MANY[what] ?? [0, () => () => null];
  expect(growth(most, make)).toBeNull();
});
