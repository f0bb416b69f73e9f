/** A pod has at most so many parts, and what is told of a document's errors has an end. */
import { describe, expect, it } from 'vitest';
import { parseManifest } from '../../../../src/actors/pods/sources/manifest.ts';
import { beyondBounds } from '../../../../src/machines/pod/bounds.ts';
import { nestedMountPoints } from '../../../../src/machines/pod/volumes/volumes.ts';
import { admit } from '../../../../src/machines/pods/admission/admission.ts';
import { toApiPod } from '../../../../src/machines/pods/sources/apiPod.ts';
import { decodeManifest } from '../../../../src/machines/pods/sources/decode.ts';
import { buildPayload } from '../../../../src/machines/services/volumes/payload.ts';
import { atUrl, errorsOf, inFile, manifest } from '../../sources/pods.ts';
import { container, FACTS, pod } from '../fixtures.ts';

const many = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));
const ability = { sysctls: [], strictGroups: true };
const node = { name: 'n', labels: {}, taints: [] };
const judge = (p: ReturnType<typeof pod>) =>
  admit({ pod: p, others: [], podsMax: 110, allocatable: { cpu: '4', memory: '8Gi' }, node, ability });

describe('a pod with too many parts', () => {
  it('of the API is refused at admission, with what is too many', () => {
    const p = pod({ containers: many(501, (i) => container(`c${i}`)) });
    const message = 'spec: has 501 containers of all kinds, at most 500 are taken';
    expect(judge(p)).toEqual({ reason: 'PodOutOfBounds', message, about: 'pod' });
    expect(judge(pod({ containers: many(500, (i) => container(`c${i}`)) }))?.reason).not.toBe('PodOutOfBounds');
  });

  it('in a manifest is an error of it', () => {
    const volumes = many(501, (i) => ({ name: `v${i}`, emptyDir: {} }));
    expect(errorsOf(decodeManifest(manifest('web', { volumes }), inFile()))).toEqual([
      'spec.volumes: has 501 entries, at most 500 are taken',
    ]);
  });

  it('has no ephemeral containers beyond them, which come after admission', () => {
    const spec = { containers: [{ name: 'c' }], ephemeralContainers: many(600, (i) => ({ name: `e${i}` })) };
    const p = toApiPod({ metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec });
    expect(p?.spec.ephemeralContainers?.at(-1)?.name).toBe('e498');
    expect(p?.spec.ephemeralContainers).toHaveLength(499);
  });

  it('is told where', () => {
    const mounts = many(501, (i) => ({ name: 'v', mountPath: `/${i}` }));
    const limits = Object.fromEntries(many(65, (i) => [`hugepages-${i}Mi`, '1']));
    expect(beyondBounds(pod({ initContainers: [container('a', { volumeMounts: mounts, resources: { limits } })] }))).toEqual([
      'spec.initContainers[0].resources.limits: has 65 entries, at most 64 are taken',
      'spec.initContainers[0].volumeMounts: has 501 entries, at most 500 are taken',
    ]);
    const env = many(501, (i) => ({ name: `E${i}`, valueFrom: { secretKeyRef: { name: `s${i}`, key: 'k' } } }));
    const resourceClaims = many(65, (i) => ({ name: `c${i}`, resourceClaimName: `c${i}` }));
    expect(beyondBounds(pod({ containers: [container('a', { env })], resourceClaims }))).toEqual([
      'spec.resourceClaims: has 65 entries, at most 64 are taken',
      'spec: names 501 Secrets and ConfigMaps, at most 500 are taken',
    ]);
  });
});

describe('errors of a document', () => {
  it('are told up to ten, with how many more there are', () => {
    const errors = errorsOf(decodeManifest({ apiVersion: 'v1', kind: 'PodList', items: many(300, (i) => i) }, atUrl()));
    expect(errors).toHaveLength(11);
    expect(errors.at(-1)).toBe('and 290 more');
    const one = { metadata: { name: 'a' }, spec: { containers: many(300_000, () => 1) } };
    const deep = errorsOf(decodeManifest({ apiVersion: 'v1', kind: 'PodList', items: [one] }, atUrl()));
    expect(deep.at(-1)).toBe('and 299990 more');
  });

  it('quote no more than the beginning of what is wrong', () => {
    const [error = ''] = errorsOf(decodeManifest(manifest('web', { dnsPolicy: 'x'.repeat(100_000) }), inFile()));
    expect(error).toMatch(/^spec\.dnsPolicy: "x{100}\.\.\." must be one of /);
  });

  it('of more than a thousand pods in one document come to one', () => {
    const items = many(1_001, (i) => manifest(`p${i}`));
    expect(errorsOf(decodeManifest({ apiVersion: 'v1', kind: 'PodList', items }, atUrl()))).toEqual([
      'items: has 1001 pods, at most 1000 are taken',
    ]);
  });
});

describe('YAML that costs more than it says', () => {
  const parse = (text: string) => {
    const parsed = parseManifest(new TextEncoder().encode(text));
    return parsed.ok ? parsed.value : parsed.message;
  };
  it.each([
    ['? '.repeat(400), 'line 1, column 3: a key must be text, not null, a list or a mapping'],
    ['['.repeat(501), 'line 1, column 1: nested too deeply'],
    [`a: ${'{'.repeat(501)}`, 'line 1, column 1: nested too deeply'],
    [`a: &a x\nb:\n${'- *a\n'.repeat(1_001)}`, 'line 1003, column 3: more than 1000 aliases'],
    [
      `a: &a ${'x'.repeat(100_000)}\nb:\n${'- *a\n'.repeat(50)}`,
      'line 1, column 1: larger than 1572864 characters with its aliases written out',
    ],
  ])('%.20s is refused', (text, message) => expect(parse(text)).toEqual(message));
  it('is not what is merely long', () => {
    expect(parse(JSON.stringify({ a: Array.from({ length: 300_000 }, () => 1) }))).toHaveProperty('a');
  });
  it('merges and aliases as before', () => {
    expect(parse('a: &a {x: 1}\nb: {<<: *a, z: 2}\nc: *a')).toEqual({ a: { x: 1 }, b: { x: 1, z: 2 }, c: { x: 1 } });
  });
});

describe('files of a volume', () => {
  const build = (sources: Parameters<typeof buildPayload>[0]['source']['sources'], annotation = '') =>
    buildPayload({
      pod: pod({}, { metadata: { annotations: { a: annotation } } }),
      source: { kind: 'files', memory: false, defaultMode: 0o644, sources },
      objects: new Map(),
      facts: FACTS,
      user: null,
    });
  const item = (path: string) => ({ path, mode: null, fieldPath: 'metadata.annotations', resource: null });

  it('have so many bytes together', () => {
    const items = many(300, (i) => item(`p${i}`));
    const message = 'the files of the volume have more than 67108864 bytes together';
    expect(build([{ kind: 'downwardAPI', items }], 'x'.repeat(256 * 1024))).toEqual({ ok: false, message });
  });

  it.each([
    [['a', 'a.b', 'a/b'], 'a'],
    [['x/y/z', 'x/y'], 'x/y'],
  ])('%j: a file that is a directory too is named', (paths, clash) => {
    expect(build([{ kind: 'downwardAPI', items: paths.map(item) }])).toEqual({
      ok: false,
      message: `"${clash}" is a file and a directory at once`,
    });
  });

  it('have so many mount points inside', () => {
    const own = many(40, (i) => ({ name: 'v', mountPath: '/'.repeat(i + 1), subPath: `s${i}` }));
    const others = many(40, (i) => ({ name: 'w', mountPath: `/m${i}` }));
    const message = 'more than 1000 mount points lie inside volume "v"';
    expect(nestedMountPoints(pod({ containers: [container('c', { volumeMounts: [...own, ...others] })] }), 'v')).toEqual({
      ok: false,
      message,
    });
  });
});
