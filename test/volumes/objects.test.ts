/** Volumes of API objects, against a scripted API, a disk in memory and a mount table: what is asked, kept, shown and taken back. */
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Plugins } from '../../src/actors/services/volumes/plugins.ts';
import { createEntropy } from '../../src/boot/dependencies/clock.ts';
import type { ApiSecret, ObjectResult, ObjectSource, TokenRequest } from '../../src/machines/kube/objects.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { podVolumes } from '../../src/machines/pod/volumes/volumes.ts';
import type { PathKind } from '../../src/ports/machine/mounter.ts';
import { type MemFs, memFs } from '../integration/memFs.ts';
import { virtualTime } from '../integration/virtualTime.ts';
import { FACTS } from '../machines/pods/fixtures.ts';
import { quietPlugins } from './kinds/tools.ts';

const ROOT = FACTS.rootDir;
const bytes = (s: string) => new TextEncoder().encode(s);
const signal = new AbortController().signal;

let fs: MemFs;
let mounts: SimMounts;
let special: Map<string, PathKind>;
let plugins: Plugins;
let secret: ObjectResult<ApiSecret>;
let tokens: TokenRequest[];
let settle: <T>(work: Promise<T>) => Promise<T>;

beforeEach(() => {
  const time = virtualTime();
  fs = memFs(time.clock);
  mounts = new SimMounts();
  fs.isMountPoint = (path) => mounts.table.some((m) => m.path === path);
  tokens = [];
  secret = { kind: 'found', value: { data: { user: bytes('root') } } };
  const objects: ObjectSource = {
    secret: async () => secret,
    configMap: async () => ({ kind: 'found', value: { data: { a: 'one' }, binaryData: {} } }),
    token: async (request) => {
      tokens.push(request);
      return { kind: 'found', value: { token: 'jwt' } };
    },
    trustAnchors: async () => ({ kind: 'absent' }),
    podCertificate: async () => ({ kind: 'failed', message: 'not issued' }),
    forget: () => undefined,
  };
  special = new Map();
  const disk = {
    fs,
    special,
    emptyDir: (path: string) => {
      for (const p of fs.below(path)) fs.drop(p);
    },
  };
  const ports = {
    fs,
    clock: time.clock,
    entropy: createEntropy(),
    mounter: mounts.connect({ disk, clock: time.clock, power: { on: true } }),
  };
  plugins = quietPlugins({ ports, objects });
  settle = (work) => time.during(work);
});

function podWith(volume: object, spec: object = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop', uid: 'uid-1' },
    spec: {
      serviceAccountName: 'builder',
      containers: [{ name: 'main', volumeMounts: [{ name: 'v', mountPath: '/v' }] }],
      volumes: [{ name: 'v', ...volume }],
      ...spec,
    },
    status: {},
  };
}
function jobOf(pod: Pod, first = true) {
  const [volume] = podVolumes(pod).volumes;
  if (volume === undefined) throw new Error('no volume');
  return { volume, pod, first };
}
const at = (plugin: string) => `${ROOT}/pods/uid-1/volumes/kubernetes.io~${plugin}/v`;
async function shown(plugin: string, file: string): Promise<string> {
  const data = await fs.readlink(`${at(plugin)}/..data`);
  return new TextDecoder().decode(await fs.readFile(`${at(plugin)}/${data}/${file}`, { bytesMax: 1 << 10 }));
}

describe('a secret', () => {
  const pod = podWith({ secret: { secretName: 's', defaultMode: 0o400 } });

  it('stands on a tmpfs without swap, a config map on disk (trap 53)', async () => {
    await settle(plugins.setUp(jobOf(pod), signal));
    expect(mounts.table).toMatchObject([{ path: at('secret'), type: 'tmpfs', options: [expect.stringMatching(/^size=/), 'noswap'] }]);
    expect(await shown('secret', 'user')).toBe('root');
    await settle(plugins.setUp(jobOf(podWith({ configMap: { name: 'c' } })), signal));
    expect(mounts.table).toHaveLength(1);
    expect(await shown('configmap', 'a')).toBe('one');
  });

  it('that changes is shown anew; one that cannot be asked for, or is gone, leaves what is shown', async () => {
    await settle(plugins.setUp(jobOf(pod), signal));
    secret = { kind: 'found', value: { data: { user: bytes('admin') } } };
    await settle(plugins.setUp(jobOf(pod, false), signal));
    expect(await shown('secret', 'user')).toBe('admin');
    for (const [result, words] of [
      [{ kind: 'failed', message: 'no route to the API' }, 'no route to the API'],
      [{ kind: 'absent' }, 'secret "s" not found'],
    ] as const) {
      secret = result;
      await expect(settle(plugins.setUp(jobOf(pod, false), signal))).rejects.toThrow(words);
      expect(await shown('secret', 'user')).toBe('admin');
    }
  });

  it('that is not there touches nothing', async () => {
    secret = { kind: 'absent' };
    await expect(settle(plugins.setUp(jobOf(pod), signal))).rejects.toThrow('secret "s" not found');
    expect(mounts.table).toEqual([]);
    expect(fs.has(`${ROOT}/pods`)).toBe(false);
  });

  it('whose first write fails is taken down again; a later failure is not', async () => {
    fs.failing = (op, path) => (op === 'symlink' && path.endsWith('..data_tmp') ? 'ENOSPC' : undefined);
    await expect(settle(plugins.setUp(jobOf(pod), signal))).rejects.toThrow('ENOSPC');
    expect(mounts.table).toEqual([]);
    expect(fs.has(at('secret'))).toBe(false);
    // What it shares with the pod's other volumes of its kind stays: containers may run on them (seed 101020).
    expect(fs.has(at('secret').replace(/\/v$/, ''))).toBe(true);
    fs.failing = () => undefined;
    await settle(plugins.setUp(jobOf(pod), signal));
    secret = { kind: 'found', value: { data: { user: bytes('admin') } } };
    fs.failing = (op, path) => (op === 'symlink' && path.endsWith('..data_tmp') ? 'ENOSPC' : undefined);
    await expect(settle(plugins.setUp(jobOf(pod, false), signal))).rejects.toThrow('ENOSPC');
    expect(await shown('secret', 'user')).toBe('root');
    expect(mounts.table).toHaveLength(1);
  });

  it('is written anew when its tmpfs is gone after a boot of the machine', async () => {
    await settle(plugins.setUp(jobOf(pod), signal));
    mounts.take(at('secret'));
    for (const p of fs.below(at('secret'))) fs.drop(p);
    await settle(plugins.setUp(jobOf(pod), signal));
    expect(mounts.table).toHaveLength(1);
    expect(await shown('secret', 'user')).toBe('root');
  });

  it('goes without a trace, twice if need be', async () => {
    await settle(plugins.setUp(jobOf(pod), signal));
    await settle(plugins.tearDown(jobOf(pod).volume, signal));
    await settle(plugins.tearDown(jobOf(pod).volume, signal));
    expect(mounts.table).toEqual([]);
    expect(fs.below(`${ROOT}/pods/uid-1/volumes`)).toEqual([]);
    expect(fs.below(`${ROOT}/pods/uid-1/plugins/kubernetes.io~empty-dir`)).toEqual([]);
  });
});

describe('an emptyDir', () => {
  it('is given to the group of its pod, and a file system that does not allow it does not fail the mount (trap 57)', async () => {
    const pod = podWith({ emptyDir: {} }, { securityContext: { fsGroup: 2000 } });
    await settle(plugins.setUp(jobOf(pod), signal));
    expect(mounts.owners.get(at('empty-dir'))).toBe('-:2000');
    expect((await fs.lstat(at('empty-dir'))).mode).toBe(0o2777);
    await settle(plugins.tearDown(jobOf(pod).volume, signal));
    mounts.trouble.failing = (op) => (op === 'chown' ? 'EPERM' : undefined);
    await settle(plugins.setUp(jobOf(pod), signal));
    expect((await fs.lstat(at('empty-dir'))).mode).toBe(0o777);
  });
});

describe('a hostPath', () => {
  it.each([
    ['', 'absent', null],
    ['Directory', 'absent', 'is not a directory'],
    ['Directory', 'file', 'is not a directory'],
    ['DirectoryOrCreate', 'file', 'is not a directory'],
    ['File', 'dir', 'is not a file'],
    ['FileOrCreate', 'dir', 'is not a file'],
    ['Socket', 'file', 'is not a socket file'],
    ['CharDevice', 'block', 'is not a character device'],
    ['BlockDevice', 'char', 'is not a block device'],
    ['BlockDevice', 'block', null],
    ['Directory', 'dir', null],
  ] as const)('of type %j where there is %s: %s (trap 59)', async (type, kind, words) => {
    if (kind === 'dir') fs.makeDir('/srv/it');
    else if (kind === 'file') {
      fs.makeDir('/srv');
      fs.put('/srv/it', '');
    } else if (kind !== 'absent') special.set('/srv/it', kind);
    const work = settle(plugins.setUp(jobOf(podWith({ hostPath: { path: '/srv/it', type } })), signal));
    if (words === null) await work;
    else await expect(work).rejects.toThrow(`hostPath type check failed: /srv/it ${words}`);
  });
});

describe('a projected volume', () => {
  it('asks for a token that is bound to its pod', async () => {
    const sources = [{ serviceAccountToken: { path: 'token', audience: 'vault', expirationSeconds: 900 } }, { configMap: { name: 'c' } }];
    await settle(plugins.setUp(jobOf(podWith({ projected: { sources } })), signal));
    expect(tokens).toEqual([
      {
        namespace: 'shop',
        serviceAccount: 'builder',
        audiences: ['vault'],
        expirationSeconds: 900,
        pod: { name: 'web', uid: 'uid-1' },
      },
    ]);
    expect([await shown('projected', 'token'), await shown('projected', 'a')]).toEqual(['jwt', 'one']);
  });

  it('is given to the group of its pod, the token readable to it (trap 55)', async () => {
    const pod = podWith({ projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }, { securityContext: { fsGroup: 2000 } });
    await settle(plugins.setUp(jobOf(pod), signal));
    const data = `${at('projected')}/${await fs.readlink(`${at('projected')}/..data`)}`;
    expect((await fs.lstat(`${data}/token`)).mode).toBe(0o640);
    expect(mounts.owners.get(`${data}/token`)).toBe('-:2000');
  });

  it('of a pod with other mounts below it has directories for them', async () => {
    const pod = podWith({ configMap: { name: 'c' } });
    pod.spec.containers[0]?.volumeMounts?.push({ name: 'w', mountPath: '/v/below' });
    await settle(plugins.setUp(jobOf(pod), signal));
    expect((await fs.lstat(`${at('configmap')}/below`)).kind).toBe('dir');
  });
});
