/** Where pods come from (pod lifecycle 1.2, 1.3, 1.5, 1.7): what each reading, answer and set of pods leads to. */
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { emptyPodStorage, mergeSet } from '../../../../src/machines/pods/podConfig/merge.ts';
import { decodeManifest } from '../../../../src/machines/pods/sources/decode.ts';
import {
  applyListing,
  applyReadings,
  emptyFileStore,
  type FileChange,
  type FileReading,
  type FileStore,
  toSet,
} from '../../../../src/machines/pods/sources/fileStore.ts';
import { afterPoll, type HttpSourceContext, type Poll } from '../../../../src/machines/pods/sources/httpMachine.ts';
import { goldenTable } from '../table.ts';

const NOW = Date.UTC(2026, 0, 1);
const named = (name: string, uid = name, more: Partial<Pod['metadata']> = {}, status: Pod['status'] = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns', uid, ...more },
  spec: { containers: [{ name: 'c', image: 'i' }] },
  status,
});

// ---- files -------------------------------------------------------------------------------------------------------
const good = (path: string, name = path): FileReading => ({ path, kind: 'pod', pod: named(name), digest: `${path}-good` });
const bad = (path: string): FileReading => ({ path, kind: 'bad', message: 'line 1: no', digest: `${path}-bad` });
const stored = (...readings: FileReading[]): FileStore => applyReadings(emptyFileStore, readings).store;
const shown = (store: FileStore, changes: readonly FileChange[] = []) => {
  const { pods, errors } = toSet(store);
  return { pods: pods.map((p) => p.metadata.name), errors, changes: changes.map((c) => c.what) };
};
const read = (before: FileStore, ...readings: FileReading[]) => {
  const { store, changes } = applyReadings(before, readings);
  return shown(store, changes);
};
const list = (before: FileStore, ...readings: FileReading[]) => {
  const { store, changes } = applyListing(before, readings, true);
  return shown(store, changes);
};

// ---- the URL -----------------------------------------------------------------------------------------------------
const context = (more: Partial<HttpSourceContext> = {}): HttpSourceContext => ({
  shown: 'http://example.test/pods',
  checkFrequencyMs: 20_000,
  digest: 'old',
  documentError: null,
  notes: [],
  failures: 0,
  startedAtMs: 0,
  ...more,
});
const polled = (poll: Poll, more: Partial<HttpSourceContext> = {}) => {
  const { next, post, log } = afterPoll(context(more), poll);
  const { failures, digest, documentError } = { ...context(more), ...next };
  const said = post.kind === 'set' ? { ...post, pods: post.pods.map((p) => p.metadata.name) } : post;
  return { said, log, failures, digest, documentError };
};

// ---- defaults ----------------------------------------------------------------------------------------------------
const decoded = (spec: object, o: { metadata?: object; source?: 'file' | 'http' } = {}): Pod => {
  const doc = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...o.metadata },
    spec: { containers: [{ name: 'c', image: 'busybox:1' }], ...spec },
    status: { phase: 'Running' },
  };
  const result = decodeManifest(doc, {
    source: o.source ?? 'file',
    where: '/m/web.yaml',
    nodeName: 'Node-A',
    md5Hex: (text) => `md5-${text.length}`,
    preventApiReferences: false,
  });
  const [pod] = result.ok ? result.pods : [];
  if (pod === undefined) throw new Error(result.ok ? 'no pod' : result.errors.join('; '));
  return pod;
};
const c = (more: object) => ({ containers: [{ name: 'c', image: 'busybox:1', ...more }] });
const container = (more: object, spec: object = {}) => decoded({ ...c(more), ...spec }).spec.containers[0];

// ---- podConfig ---------------------------------------------------------------------------------------------------
const opsOf = (before: Pod[] | null, after: Pod[], source: 'api' | 'file' = 'api') => {
  const state = before === null ? emptyPodStorage : mergeSet(emptyPodStorage, { source, pods: before, nowWallMs: NOW }).state;
  const { ops, duplicates } = mergeSet(state, { source, pods: after, nowWallMs: NOW });
  return {
    ops: ops.map(({ op, pods }) => [op, ...pods.map((p) => p.metadata.uid)]),
    duplicates: duplicates.map((d) => [d.pod.metadata.uid, d.same]),
  };
};
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const one = (more: Partial<Pod['metadata']>, status: Pod['status'] = {}) => opsOf([named('a')], [named('a', 'a', more, status)]);

goldenTable('pods of the sources are as recorded', 'manager/sources', {
  '1.2 file: appears': () => read(emptyFileStore, good('a')),
  '1.2 file: changes': () => read(stored(good('a', 'one')), good('a', 'two')),
  '1.2 file: as before': () => read(stored(good('a')), { path: 'a', kind: 'same', digest: 'a-good' }),
  '1.2 file: is being written': () => read(stored(good('a')), { path: 'a', kind: 'changing' }),
  '1.2 file: goes': () => read(stored(good('a'), good('b')), { path: 'a', kind: 'gone' }),
  '1.2 file: goes, and was never known': () => read(stored(good('b')), { path: 'a', kind: 'gone' }),
  '1.2 file: cannot be used from the start': () => read(emptyFileStore, bad('a')),
  '1.2 file: cannot be used any more': () => read(stored(good('a')), bad('a')),
  '1.2 file: becomes a directory': () => read(stored(good('a')), { path: 'a', kind: 'skipped', message: 'a directory is not entered' }),
  '1.2 listing: what is not in it is gone': () => list(stored(good('a'), good('b')), good('b')),
  '1.2 listing: is empty': () => list(stored(good('a'))),
  '1.2 listing: a file that fails is left out, others go on': () => list(emptyFileStore, bad('a'), good('b')),
  '1.2 listing: first found bad by it': () => list(stored(good('a')), bad('a')),
  '1.2 listing: bad before it, and still': () => list(stored(good('a'), bad('a')), bad('a')),
  '1.2 listing: bad before it, and good again': () => list(stored(good('a'), bad('a')), good('a')),
  '1.2 listing: two files of one name': () => list(emptyFileStore, good('a', 'same'), good('b', 'same')),
  '1.2 listing: of two files of one name the first goes': () => list(stored(good('a', 'same'), good('b', 'same')), good('b', 'same')),

  '1.3 answer: transport error': () => polled({ kind: 'failed', message: 'connect ECONNREFUSED' }),
  '1.3 answer: empty body': () => polled({ kind: 'empty', digest: 'new' }),
  '1.3 answer: the bytes of before': () => polled({ kind: 'same' }),
  '1.3 answer: the bad bytes of before': () => polled({ kind: 'same' }, { documentError: 'no Pod', failures: 2 }),
  '1.3 answer: new pods': () => polled({ kind: 'pods', pods: [named('a'), named('b')], digest: 'new' }, { failures: 7 }),
  '1.3 answer: new bytes that are no pods': () => polled({ kind: 'bad', message: 'kind: required', digest: 'new' }),
  '1.3 failures: the third is loud': () => polled({ kind: 'failed', message: 'status 500' }, { failures: 2 }),
  '1.3 failures: the fourth says that it is the last': () => polled({ kind: 'failed', message: 'status 500' }, { failures: 3 }),
  '1.3 failures: the fifth is quiet': () => polled({ kind: 'failed', message: 'status 500' }, { failures: 4 }),

  '1.5 UID, name, namespace, node, hash, toleration, phase': () => {
    const { metadata, spec, status } = decoded({});
    return { metadata, nodeName: spec.nodeName, tolerations: spec.tolerations, status };
  },
  '1.5 UID of the manifest': () => decoded({}, { metadata: { uid: 'pinned' } }).metadata,
  '1.5 namespace of the manifest': () => decoded({}, { metadata: { namespace: 'kube-system' } }).metadata.namespace,
  '1.5 toleration: not from a URL': () => decoded({}, { source: 'http' }).spec.tolerations,
  '1.5 toleration: once': () => decoded({ tolerations: [{ operator: 'Exists', effect: 'NoExecute' }, { key: 'a' }] }).spec.tolerations,
  '1.5 defaults of a pod': () => {
    const { containers: _, nodeName: __, tolerations: ___, ...rest } = decoded({}).spec;
    return rest;
  },
  '1.5 defaults of a container': () => container({}),
  '1.5 pull policy: latest': () => container({ image: 'busybox:latest' })?.imagePullPolicy,
  '1.5 pull policy: no tag': () => container({ image: 'example.org:5000/busybox' })?.imagePullPolicy,
  '1.5 pull policy: a tag': () => container({ image: 'busybox:1' })?.imagePullPolicy,
  '1.5 pull policy: a digest': () => container({ image: `busybox@sha256:${'0'.repeat(64)}` })?.imagePullPolicy,
  '1.5 pull policy: as it is said': () => container({ image: 'busybox:latest', imagePullPolicy: 'Never' })?.imagePullPolicy,
  '1.5 probe': () => container({ livenessProbe: { httpGet: { port: 80 } } })?.livenessProbe,
  '1.5 probe: as it is said': () =>
    container({
      readinessProbe: {
        httpGet: { port: 80, path: '/a', scheme: 'HTTPS' },
        timeoutSeconds: 2,
        periodSeconds: 3,
        successThreshold: 4,
        failureThreshold: 5,
      },
    })?.readinessProbe,
  '1.5 requests from limits, resource by resource': () =>
    container({ resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '100m' } } })?.resources,
  '1.5 ports on the network of the host': () => container({ ports: [{ containerPort: 80 }] }, { hostNetwork: true })?.ports,
  '1.5 ports on a network of its own': () => container({ ports: [{ containerPort: 80 }] })?.ports,

  '1.7 SET: the first, empty': () => opsOf(null, []),
  '1.7 SET: the second, empty': () => opsOf([], []),
  '1.7 SET: a new UID': () => opsOf([], [named('a')]),
  '1.7 SET: a UID that is gone': () => opsOf([named('a'), named('b')], [named('b')]),
  '1.7 SET: a new UID under an old name': () => opsOf([named('a', 'old')], [named('a', 'new')]),
  '1.7 SET: all kinds, in their order': () =>
    opsOf(
      [named('gone'), named('up'), named('del'), named('rec')],
      [named('rec', 'rec', {}, { phase: 'Failed' }), named('del', 'del', DELETED), named('up', 'up', { labels: { a: 'b' } }), named('new')],
    ),
  '1.7 upsert: a name twice': () => opsOf([], [named('a', 'u1'), named('a', 'u2')]),
  '1.7 upsert: a UID twice': () => opsOf([], [named('a', 'u1'), named('b', 'u1')]),
  '1.7 upsert: first seen deleted': () => opsOf([], [named('a', 'a', DELETED)]),
  '1.7 upsert: first seen over': () => opsOf([], [named('a', 'a', {}, { phase: 'Succeeded' })]),
  '1.7 compare: nothing differs': () => one({}),
  '1.7 compare: the status differs': () => one({}, { phase: 'Failed' }),
  '1.7 compare: a label differs': () => one({ labels: { a: 'b' } }),
  '1.7 compare: a label and the status differ': () => one({ labels: { a: 'b' } }, { phase: 'Failed' }),
  '1.7 compare: deleted': () => one(DELETED),
  '1.7 compare: deleted, and the grace differs': () =>
    opsOf([named('a', 'a', DELETED)], [named('a', 'a', { ...DELETED, deletionGracePeriodSeconds: 5 })]),
  '1.7 compare: an annotation differs': () => one({ annotations: { a: 'b' } }),
  '1.7 compare: annotations of the node itself differ': () =>
    one({ annotations: { 'kubernetes.io/config.seen': 'x', 'kubernetes.io/config.source': 'y', 'kubernetes.io/config.mirror': 'z' } }),
  '1.7 compare: empty annotations for none': () => one({ annotations: {} }),
  '1.7 compare: what is no desire differs': () => one({ resourceVersion: '9', finalizers: ['a'], generation: 5 }),
});
