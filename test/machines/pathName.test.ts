/** Names that become files: which are let in, for each kind, and that what builds paths stays below its folder. */
import { join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../src/machines/kube/types.ts';
import { isPathName, pathName, UnsafeName, unsafeName } from '../../src/machines/pod/pathName.ts';
import { groupByPod } from '../../src/machines/pod/runtime/listed.ts';
import { containerLogDir, containerLogLink, podFolder } from '../../src/machines/pod/runtime/logNames.ts';
import { inlineCsi, persistentCsi } from '../../src/machines/pod/volumes/kinds/csi.ts';
import { podDir, volumePath, volumeRef } from '../../src/machines/pod/volumes/volumePaths.ts';
import { containerSecurity } from '../../src/machines/pods/workers/config/security.ts';
import { decodeVolumeData } from '../../src/machines/services/volumes/csi/data.ts';
import { CRI_LABELS, type CriContainer, type PodSandbox } from '../../src/machines/wire/cri.ts';
import { HOSTILE_NAMES } from '../hostileNames.ts';
import { container, FACTS, pod } from './pods/fixtures.ts';

const ODD = ['..a', 'a..', '-', ' ', '~', 'ä'.repeat(127), 'x'.repeat(255), '名前', '$(rm)', 'a\\b', 'a:b'];

/** Fixed draws: parts of names that lead somewhere, in any order. */
function* drawn(count: number): Iterable<string> {
  const parts = ['..', '/', '.', 'a', '\0', '\n', '//', '~', '%2e%2e', 'é', ' ', '\u202e', 'x'.repeat(100)];
  let state = 1;
  for (let i = 0; i < count; i++) {
    let name = '';
    for (let length = 1 + (i % 5); length > 0; length--) {
      state = (state * 48_271) % 2_147_483_647;
      name += parts[state % parts.length];
    }
    yield name;
  }
}

describe('a name that may be a file', () => {
  it('leads nowhere and fits', () => {
    for (const name of HOSTILE_NAMES) expect(isPathName(name), JSON.stringify(name)).toBe(false);
    for (const name of ODD) expect(isPathName(name), name).toBe(true);
    for (const name of drawn(5_000)) {
      if (!isPathName(name)) expect(() => pathName(name)).toThrow(UnsafeName);
      else expect(normalize(join('/r', name))).toBe(`/r/${name}`);
    }
  });

  it('keeps what is built of it below its folder', () => {
    for (const name of [...HOSTILE_NAMES, ...ODD, ...drawn(2_000)]) {
      const built = [
        () => podDir('/r/node', pathName(name)),
        () => volumePath('/r/node', volumeRef('u', 'kubernetes.io~empty-dir', name)),
        () => volumePath('/r/node', volumeRef(name, 'kubernetes.io~empty-dir', 'v')),
        () => containerLogDir('/r/node', podFolder({ uid: 'u', namespace: 'n', name }), pathName('c')),
        () => containerLogDir('/r/node', podFolder({ uid: 'u', namespace: 'n', name: 'p' }), pathName(name)),
        () =>
          containerLogLink('/r/node', podFolder({ uid: 'u', namespace: 'n', name: 'p' }), { container: pathName('c'), id: pathName(name) }),
      ];
      for (const build of built) {
        let path = '';
        try {
          path = build();
        } catch (error) {
          expect(error).toBeInstanceOf(UnsafeName);
          continue;
        }
        expect(normalize(path)).toBe(path);
        expect(path.startsWith('/r/node/')).toBe(true);
      }
    }
  });
});

describe('where names come in', () => {
  const named: Record<string, (name: string) => Pod> = {
    'metadata.uid': (uid) => ({ ...pod({}), metadata: { ...pod({}).metadata, uid } }),
    'metadata.name': (name) => ({ ...pod({}), metadata: { ...pod({}).metadata, name } }),
    'metadata.namespace': (namespace) => ({ ...pod({}), metadata: { ...pod({}).metadata, namespace } }),
    'spec.containers[0].name': (name) => pod({ containers: [container(name)] }),
    'spec.initContainers[0].name': (name) => pod({ initContainers: [container(name)] }),
    'spec.ephemeralContainers[0].name': (name) => pod({ ephemeralContainers: [{ name, image: 'i' }] }),
    'spec.volumes[0].name': (name) => pod({ volumes: [{ name, emptyDir: {} }] }),
  };
  it.each(Object.entries(named))('a pod is refused for its %s', (field, of) => {
    expect(unsafeName(of('fine'))).toBeNull();
    for (const name of HOSTILE_NAMES) expect(unsafeName(of(name))).toContain(`${field}: `);
  });

  it('what the runtime lists under such names is nobody’s', () => {
    const sandbox = (over: Partial<PodSandbox>, names: object = {}): PodSandbox => ({
      ...{ id: 'a', state: 'SANDBOX_READY', createdAt: '1', labels: {}, annotations: {}, runtimeHandler: '', ...over },
      metadata: { uid: 'u', name: 'p', namespace: 'n', attempt: 0, ...names },
    });
    const one = (over: Partial<CriContainer>, labels: object = {}): CriContainer => ({
      ...{ id: 'c', podSandboxId: 'a', metadata: null, image: null, imageRef: '', state: 'CONTAINER_RUNNING', createdAt: '1' },
      ...{ annotations: {}, ...over },
      labels: {
        ...{ [CRI_LABELS.podUid]: 'u', [CRI_LABELS.podName]: 'p', [CRI_LABELS.podNamespace]: 'n', [CRI_LABELS.containerName]: 'main' },
        ...labels,
      },
    });
    for (const name of HOSTILE_NAMES) {
      const sandboxes = [sandbox({}, { uid: name }), sandbox({}, { name }), sandbox({}, { namespace: name }), sandbox({ id: name })];
      const labels = [CRI_LABELS.podUid, CRI_LABELS.podName, CRI_LABELS.podNamespace, CRI_LABELS.containerName];
      const containers = [one({ id: name }), ...labels.map((label) => one({}, { [label]: name }))];
      expect([...groupByPod(sandboxes, containers)]).toEqual([]);
      const beside = groupByPod([...sandboxes, sandbox({})], [...containers, one({})]).get('u');
      expect([beside?.sandboxes.length, beside?.containers.length]).toEqual([1, 1]);
    }
  });

  it('drivers of volumes, in a pod, in a persistent volume and on disk', () => {
    for (const name of HOSTILE_NAMES) {
      expect(inlineCsi({ driver: name }).ok).toBe(false);
      expect(persistentCsi({ csi: { driver: name, volumeHandle: 'h' } }, { volume: 'pv', readOnly: false }).ok).toBe(false);
      expect(decodeVolumeData(JSON.stringify({ driverName: name, volumeHandle: 'h' }))).toBeNull();
    }
    expect(inlineCsi({ driver: 'd.example.com' }).ok).toBe(true);
  });

  it('no profile of seccomp outside its folder is named to the runtime', () => {
    const profiled = (localhostProfile: string) => {
      const one = container('main', { securityContext: { seccompProfile: { type: 'Localhost', localhostProfile } } });
      return containerSecurity({
        pod: pod({ containers: [one] }),
        container: one,
        facts: FACTS,
        imageUser: null,
        userNamespace: undefined,
      });
    };
    expect(profiled('a/b.json').ok).toBe(true);
    for (const name of ['..', '../x', 'a/../../x', '../../../etc/shadow']) expect(profiled(name).ok).toBe(false);
  });
});
