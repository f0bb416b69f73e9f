import { describe, expect, it } from 'vitest';
import { defaultPullPolicy } from '../../../src/machines/kube/pullPolicy.ts';
import { decodeManifest } from '../../../src/machines/pods/sources/decode.ts';
import { atUrl, errorsOf, inFile, manifest, pod, podOf } from './pods.ts';

describe('decoding a manifest', () => {
  it('fills in defaults of volumes and references', () => {
    const env = [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }];
    const p = pod('web', { volumes: [{ name: 'a' }, { name: 'b', secret: { secretName: 's' } }] }, { env });
    expect(p.spec.volumes).toEqual([
      { name: 'a', emptyDir: {} },
      { name: 'b', secret: { secretName: 's', defaultMode: 420 } },
    ]);
    expect(p.spec.containers[0]?.env?.[0]?.valueFrom?.fieldRef?.apiVersion).toBe('v1');
  });

  it.each([
    ['nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1.25', 'IfNotPresent'],
    ['reg:5000/nginx', 'Always'],
    ['reg:5000/nginx:v1', 'IfNotPresent'],
    ['nginx@sha256:abc', 'IfNotPresent'],
    [`nginx:latest@sha256:${'ab'.repeat(32)}`, 'Always'],
    ['nginx:latest@sha256:abc', 'IfNotPresent'],
    ['NGINX', 'IfNotPresent'],
    ['Registry/nginx', 'Always'],
  ])('pulls %s by default: %s', (image, policy) => {
    expect(defaultPullPolicy(image)).toBe(policy);
  });
});

describe('the UID of a static pod', () => {
  const uid = (doc: Record<string, unknown>, where?: string) => podOf(decodeManifest(doc, inFile(where))).metadata.uid;

  it('hashes the place after the content: one manifest in two files is two pods', () => {
    expect(uid(manifest(), '/m/a.yaml')).not.toBe(uid(manifest(), '/m/b.yaml'));
    expect(uid(manifest(), '/m/a.yaml')).not.toBe(podOf(decodeManifest(manifest(), atUrl('/m/a.yaml'))).metadata.uid);
  });
  it('does not depend on the order of keys', () => {
    const { kind, apiVersion, spec, metadata } = manifest();
    expect(uid({ spec, metadata, kind, apiVersion })).toBe(uid(manifest()));
  });
  it('changes with any change of meaning', () => {
    expect(uid(manifest('web', {}, { image: 'busybox:1.37' }))).not.toBe(uid(manifest()));
  });
  it('differs between nodes for files', () => {
    expect(podOf(decodeManifest(manifest(), { ...inFile(), nodeName: 'other' })).metadata.uid).not.toBe(uid(manifest()));
  });
  it('is taken from the manifest when written there, and is the hash annotation then too', () => {
    const p = podOf(decodeManifest({ ...manifest(), metadata: { name: 'web', uid: 'pinned-1' } }, inFile()));
    expect([p.metadata.uid, p.metadata.annotations?.['kubernetes.io/config.hash']]).toEqual(['pinned-1', 'pinned-1']);
  });
});

describe('bad documents are named by what is wrong with them', () => {
  it.each<[string, unknown, string]>([
    ['nothing', null, 'the document is empty'],
    ['a bare string', 'hello', 'the document is a bare string, not a Pod'],
    ['a list', [], 'the document is a list, not a Pod'],
    ['no kind', { apiVersion: 'v1' }, 'kind: required; a manifest holds a Pod of apiVersion v1'],
    ['no apiVersion', { kind: 'Pod' }, 'apiVersion: required; a Pod has apiVersion v1'],
    [
      'a Deployment',
      { apiVersion: 'apps/v1', kind: 'Deployment' },
      'apiVersion apps/v1, kind Deployment: not supported here; a manifest holds a Pod of apiVersion v1',
    ],
    ['a Service', { apiVersion: 'v1', kind: 'Service' }, 'kind Service: not accepted here; a manifest holds a Pod of apiVersion v1'],
    [
      'a List',
      { apiVersion: 'v1', kind: 'List', items: [] },
      'kind List: not accepted here; one file holds one Pod; put each pod in a file of its own',
    ],
    [
      'a PodList',
      { apiVersion: 'v1', kind: 'PodList', items: [] },
      'kind PodList: not accepted here; one file holds one Pod; put each pod in a file of its own',
    ],
    ['no spec', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }, 'spec: required'],
    ['no name', { ...manifest(), metadata: {} }, 'metadata.name: required'],
    ['no containers', { ...manifest(), spec: {} }, 'spec.containers: required, at least one container'],
    [
      'a number for an image',
      manifest('web', {}, { image: 5 }),
      'spec.containers[0].image: must be a string, not a number (put it in quotes)',
    ],
    ['a string for a flag', manifest('web', { hostNetwork: 'yes' }), 'spec.hostNetwork: must be true or false, not a string'],
    ['a mapping for a list', manifest('web', {}, { env: { A: 'b' } }), 'spec.containers[0].env: must be a list, not a mapping'],
    [
      'a fraction for a port',
      manifest('web', {}, { ports: [{ containerPort: 1.5 }] }),
      'spec.containers[0].ports[0].containerPort: must be an integer, not a number',
    ],
  ])('%s', (_, doc, error) => {
    expect(errorsOf(decodeManifest(doc, inFile()))).toEqual([error]);
  });

  it('what has no value is taken for the zero value, with a note', () => {
    const doc = manifest('web', { nodeSelector: { disk: null }, terminationGracePeriodSeconds: -5 }, { args: ['a', null], env: null });
    const decoded = decodeManifest(doc, inFile());
    if (!decoded.ok) throw new Error(decoded.errors.join('; '));
    const [pod] = decoded.pods;
    expect(pod?.spec).toMatchObject({ nodeSelector: { disk: '' }, terminationGracePeriodSeconds: 1, containers: [{ args: ['a', ''] }] });
    expect(decoded.notes.sort()).toEqual([
      'spec.containers[0].args[1]: has no value; it is taken for ""',
      'spec.nodeSelector.disk: has no value; it is taken for ""',
      'spec.terminationGracePeriodSeconds: -5 is taken for 1',
    ]);
  });

  it('kind and apiVersion are found in whatever case', () => {
    const { kind, apiVersion, ...rest } = manifest('web') as Record<string, unknown>;
    expect(decodeManifest({ Kind: kind, APIVERSION: apiVersion, ...rest }, inFile()).ok).toBe(true);
  });

  it('a document that cannot be used says which pod it would be', () => {
    expect(decodeManifest(manifest('web', { priority: 'x' }), inFile())).toMatchObject({
      ok: false,
      holds: expect.stringMatching(/^web-.*_default$/),
    });
  });

  it('reports every type error of a document at once', () => {
    expect(errorsOf(decodeManifest(manifest('web', { priority: 'x', hostPID: 1 }, { tty: 'no' }), inFile()))).toHaveLength(3);
  });

  it('treats null as absent', () => {
    expect(pod('web', { volumes: null, nodeSelector: null }, { command: null }).spec.containers[0]).not.toHaveProperty('command');
  });

  it('keeps a key named __proto__ as plain data', () => {
    const doc: unknown = JSON.parse(
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"__proto__":"x"}},"spec":{"containers":[{"name":"a","image":"b"}]}}',
    );
    expect(errorsOf(decodeManifest(doc, inFile()))).toEqual([expect.stringContaining('metadata.labels[__proto__]')]);
  });
});

it('refuses references to API objects where the gate asks for it, naming each', () => {
  const spec = {
    serviceAccountName: 'a',
    volumes: [
      { name: 'v', projected: { sources: [{ secret: { name: 's' } }] } },
      { name: 'h', hostPath: { path: '/x' } },
      { name: 'p', persistentVolumeClaim: { claimName: 'c' } },
      {
        name: 'e',
        ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1' } } } } },
      },
      { name: 'd', csi: { driver: 'x.test' } },
    ],
    imagePullSecrets: [{ name: 'pull' }],
    resourceClaims: [{ name: 'r', resourceClaimName: 'r' }],
  };
  const doc = manifest('web', spec, { envFrom: [{ configMapRef: { name: 'c' } }] });
  expect(errorsOf(decodeManifest(doc, inFile()))).toEqual([]);
  const paths = errorsOf(decodeManifest(doc, { ...inFile(), preventApiReferences: true })).map((e) => e.slice(0, e.indexOf(':')));
  expect(paths).toEqual([
    'spec.serviceAccountName',
    'spec.imagePullSecrets',
    'spec.resourceClaims',
    'spec.volumes[0].projected.sources[0].secret',
    'spec.volumes[2].persistentVolumeClaim',
    'spec.volumes[3].ephemeral',
    'spec.volumes[4].csi',
    'spec.containers[0].envFrom[0].configMapRef',
  ]);
});

describe('a PodList over HTTP', () => {
  it('gives every pod, without the toleration of file pods', () => {
    const d = decodeManifest(
      { apiVersion: 'v1', kind: 'PodList', items: [manifest('a'), { ...manifest('b'), kind: undefined, apiVersion: undefined }] },
      atUrl(),
    );
    expect(d.ok && d.pods.map((p) => p.metadata.name)).toEqual(['a-node1', 'b-node1']);
    expect(d.ok && d.pods[0]?.spec.tolerations).toBeUndefined();
  });
  it('is refused as a whole when one item is bad, naming the item', () => {
    const d = decodeManifest({ apiVersion: 'v1', kind: 'PodList', items: [manifest('a'), manifest('b', {}, { image: '' })] }, atUrl());
    expect(errorsOf(d)).toEqual(['items[1].spec.containers[0].image: required']);
  });
});
