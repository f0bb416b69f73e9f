/** The files of secret, config map, downward and projected volumes, row by row of the specification's table. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ObjectAnswer, queryKey } from '../../src/machines/kube/objects.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { Volume } from '../../src/machines/kube/volumeTable.ts';
import { hugePageBytes } from '../../src/machines/pod/volumes/kinds/emptyDir.ts';
import { commonUser, decodeVolume, nestedMountPoints, podVolumes, tmpfsBytes } from '../../src/machines/pod/volumes/volumes.ts';
import { buildPayload, objectsNeeded } from '../../src/machines/services/volumes/payload.ts';
import { FACTS } from '../machines/pods/fixtures.ts';

interface GoldenCase {
  name: string;
  volume: object;
  /** Of the pod's security contexts. */
  fsGroup?: number;
  users?: number[];
  files?: Record<string, string>;
  error?: string;
}

const text = (s: string) => new TextEncoder().encode(s);
const OBJECTS = new Map<string, ObjectAnswer>([
  ['secret login', { kind: 'secret', result: { kind: 'found', value: { data: { user: text('root'), password: text('s3cret') } } } }],
  ['secret gone', { kind: 'secret', result: { kind: 'absent' } }],
  ['secret away', { kind: 'secret', result: { kind: 'failed', message: 'the API server cannot be reached' } }],
  [
    'configMap site',
    { kind: 'configMap', result: { kind: 'found', value: { data: { 'index.html': '<p>' }, binaryData: { logo: text('\u0001') } } } },
  ],
  ['configMap gone', { kind: 'configMap', result: { kind: 'absent' } }],
  ['token 3600 ', { kind: 'token', result: { kind: 'found', value: { token: 'jwt' } } }],
  ['token 600 vault', { kind: 'token', result: { kind: 'found', value: { token: 'jwt-vault' } } }],
]);

function podWith(c: Pick<GoldenCase, 'fsGroup' | 'users'>, volume: Volume): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'shop',
      uid: 'uid-1',
      labels: { tier: 'front', app: 'web' },
      annotations: { note: 'two\nlines "quoted"' },
    },
    spec: {
      ...(c.fsGroup === undefined ? {} : { securityContext: { fsGroup: c.fsGroup } }),
      containers: (c.users ?? [undefined]).map((user, i) => ({
        name: i === 0 ? 'main' : `c${i}`,
        ...(user === undefined ? {} : { securityContext: { runAsUser: user } }),
        volumeMounts: [{ name: 'v', mountPath: '/v' }],
        resources: { limits: { cpu: '1500m' }, requests: { memory: '64Mi' } },
      })),
      volumes: [volume],
    },
    status: {},
  };
}

/** `MODE [UID] CONTENT` by path, or the error. */
function outcome(c: GoldenCase): Record<string, string> | string {
  const volume = { name: 'v', ...c.volume } as Volume;
  const pod = podWith(c, volume);
  const decoded = decodeVolume('uid-1', volume);
  if (!decoded.ok) return decoded.message;
  const { source } = decoded.volume;
  if (source.kind !== 'files') return 'not a volume of files';
  const payload = buildPayload({ pod, source, objects: OBJECTS, facts: FACTS, user: commonUser(pod) });
  if (!payload.ok) return payload.message;
  return Object.fromEntries(
    [...payload.value].map(([path, f]) => [
      path,
      `${f.mode.toString(8).padStart(4, '0')}${f.uid === null ? '' : ` uid ${f.uid}`} ${JSON.stringify(new TextDecoder().decode(f.data))}`,
    ]),
  );
}

const GOLDEN = JSON.parse(readFileSync(join(import.meta.dirname, 'payload.json'), 'utf8')) as GoldenCase[];

describe('the files of a volume', () => {
  it.each(GOLDEN.map((c) => [c.name, c] as const))('%s', (_, c) => {
    expect(outcome(c)).toEqual(c.files ?? c.error);
  });

  it('ask for each object once', () => {
    const sources = [
      { kind: 'secret' as const, name: 'a', optional: false, items: null },
      { kind: 'secret' as const, name: 'a', optional: true, items: null },
      { kind: 'configMap' as const, name: 'a', optional: false, items: null },
      { kind: 'token' as const, path: 't', audience: '', expirationSeconds: 600 },
      { kind: 'downwardAPI' as const, items: [] },
    ];
    expect(objectsNeeded(sources).map(queryKey)).toEqual(['secret a', 'configMap a', 'token 600 ']);
  });
});

describe('a pod', () => {
  it('gives a user to its volumes only when all its containers have the same', () => {
    expect(commonUser(podWith({ users: [7, 7] }, { name: 'v' }))).toBe(7);
    expect(commonUser(podWith({ users: [7, 8] }, { name: 'v' }))).toBeNull();
    expect(commonUser(podWith({}, { name: 'v' }))).toBeNull();
  });

  it('limits a tmpfs by the least of the node, its own memory limit and the volume', () => {
    const pod = podWith({}, { name: 'v' });
    expect(tmpfsBytes(pod, null, '4Gi')).toBe(4 * 1024 ** 3);
    expect(tmpfsBytes(pod, 1024, '4Gi')).toBe(1024);
    const limited = { ...pod, spec: { ...pod.spec, containers: [{ name: 'a', resources: { limits: { memory: '1Mi' } } }] } };
    expect(tmpfsBytes(limited, null, '4Gi')).toBe(1024 ** 2);
    const half = { ...pod, spec: { ...pod.spec, containers: [...limited.spec.containers, { name: 'b' }] } };
    expect(tmpfsBytes(half, null, '4Gi')).toBe(4 * 1024 ** 3);
    expect(tmpfsBytes(pod, null, undefined)).toBeNull();
  });

  it('limits a tmpfs by what the pod as a whole is held to: init containers, sidecars, limits of the pod and overhead count', () => {
    const Mi = 1024 ** 2;
    const limited = (name: string, memory?: string) => ({ name, ...(memory === undefined ? {} : { resources: { limits: { memory } } }) });
    const bytes = (spec: Partial<Pod['spec']>) => {
      const pod = podWith({}, { name: 'v' });
      return tmpfsBytes({ ...pod, spec: { ...pod.spec, containers: [limited('a', '1Mi')], ...spec } }, null, '4Gi');
    };
    expect(bytes({ initContainers: [limited('i', '8Mi')] })).toBe(8 * Mi);
    expect(bytes({ initContainers: [{ ...limited('s', '2Mi'), restartPolicy: 'Always' }] })).toBe(3 * Mi);
    expect(bytes({ initContainers: [limited('i')] })).toBe(4096 * Mi);
    expect(bytes({ containers: [limited('a')], resources: { limits: { memory: '16Mi' } } })).toBe(16 * Mi);
    expect(bytes({ overhead: { memory: '4Mi' } })).toBe(5 * Mi);
  });

  it('takes the size of huge pages from what the pod as a whole asks for, too', () => {
    const pod = podWith({}, { name: 'v' });
    const whole = { ...pod, spec: { ...pod.spec, resources: { requests: { 'hugepages-2Mi': '4Mi' } } } };
    expect(hugePageBytes(whole, 'HugePages')).toEqual({ ok: true, value: 2 * 1024 ** 2 });
    expect(hugePageBytes(pod, 'HugePages').ok).toBe(false);
  });

  it('uses no volume that no container mounts, and names what cannot be decoded', () => {
    const pod = podWith({}, { name: 'v', hostPath: { path: '/a/../b' } });
    pod.spec.volumes?.push({ name: 'unused', quobyte: {} });
    expect(podVolumes(pod)).toEqual({ volumes: [], failed: [{ name: 'v', message: expect.stringContaining('".."') }] });
  });

  it('needs directories in a volume of files where other volumes are mounted below it', () => {
    const pod = podWith({}, { name: 'v' });
    const [main] = pod.spec.containers;
    main?.volumeMounts?.push({ name: 'w', mountPath: '/v/deep/er' }, { name: 'x', mountPath: '/v' }, { name: 'y', mountPath: '/vv' });
    expect(nestedMountPoints(pod, 'v')).toEqual({ ok: true, value: ['deep/er'] });
  });
});
