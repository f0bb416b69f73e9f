/**
 * Kinds of volumes (resources and volumes 8.11 to 8.16): what each type of a hostPath finds, media of an emptyDir and the size
 * of what lies in memory, names in volumes of files, bits of a volume that is given to a group, and the age of tokens.
 */
import { SimMounts } from '@actorlet/world/src/disk/mounts.ts';
import { Plugins } from '../../../../src/actors/services/volumes/plugins.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { Volume } from '../../../../src/machines/kube/volumeTable.ts';
import { HOST_PATH_TYPES } from '../../../../src/machines/pod/volumes/kinds/hostPath.ts';
import { commonUser, decodeVolume, nestedMountPoints, tmpfsBytes } from '../../../../src/machines/pod/volumes/volumes.ts';
import { toHeldToken } from '../../../../src/machines/services/objects/tokenRules.ts';
import { groupMode, pathProblem, topNames } from '../../../../src/machines/services/volumes/atomic.ts';
import type { Mounter, PathKind } from '../../../../src/ports/machine/mounter.ts';
import { memFs } from '../../../integration/memFs.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { collectingLogger } from '../../../supervision/fakePorts.ts';
import { container, FACTS, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const decoded = (source: object) => {
  const result = decodeVolume('uid-1', { name: 'v', ...source } as Volume);
  return result.ok ? result.volume.source : result.message;
};

/** What is found at a path of the host, or what is wrong with it; and what was to be made. */
async function hostPath(type: string, there: PathKind, path = '/srv/it'): Promise<unknown> {
  const time = virtualTime();
  const fs = memFs(time.clock);
  fs.makeDir('/srv');
  const special = new Map<string, PathKind>();
  if (there === 'dir') fs.makeDir(path);
  else if (there === 'file') fs.put(path, '');
  else if (there !== 'absent') special.set(path, there);
  const disk = { fs, special, emptyDir: () => undefined };
  const real = new SimMounts().connect({ disk, clock: time.clock, power: { on: true } });
  const asked: string[] = [];
  const mounter: Mounter = {
    ...real,
    makeDir: (p, mode, call) => {
      asked.push(`directory ${mode.toString(8)} asked for`);
      return real.makeDir(p, mode, call);
    },
    makeFile: (p, mode, call) => {
      asked.push(`file ${mode.toString(8)} asked for`);
      return real.makeFile(p, mode, call);
    },
  };
  const options = { ports: { fs, clock: time.clock, mounter }, log: collectingLogger([]), facts: () => FACTS };
  const plugins = new Plugins(options as unknown as ConstructorParameters<typeof Plugins>[0]);
  const p: Pod = pod({ volumes: [{ name: 'v', hostPath: { path, type } }] });
  const volume = decodeVolume('uid-1', { name: 'v', hostPath: { path, type } });
  if (!volume.ok) return volume.message;
  let outcome: string | undefined;
  plugins.setUp({ volume: volume.volume, pod: p, first: true }, new AbortController().signal).then(
    () => {
      outcome = 'taken';
    },
    (error: unknown) => {
      outcome = error instanceof Error ? error.message : String(error);
    },
  );
  while (outcome === undefined) await time.advance(1);
  return [outcome, ...asked].join('; ');
}
const KINDS: PathKind[] = ['absent', 'dir', 'file', 'socket', 'char', 'block'];

const withMemory = (...limits: (string | undefined)[]): Pod =>
  pod({ containers: limits.map((memory, i) => container(`c${i}`, memory === undefined ? {} : { resources: { limits: { memory } } })) });
const users = (own: number | undefined, ...of: (number | undefined)[]): Pod =>
  pod({
    ...(own === undefined ? {} : { securityContext: { runAsUser: own } }),
    containers: of.map((runAsUser, i): Container => container(`c${i}`, runAsUser === undefined ? {} : { securityContext: { runAsUser } })),
  });
const mounting = (...mounts: { name: string; mountPath: string; subPath?: string }[]): Pod =>
  pod({ containers: [container('web', { volumeMounts: mounts })] });

const EXPIRES_MS = Date.UTC(2026, 0, 2);
/** Seconds before its end at which a token is asked for anew. */
const dueBefore = (lifeSeconds: number, random: number) => {
  const body = {
    spec: { expirationSeconds: lifeSeconds },
    status: { token: 'jwt', expirationTimestamp: new Date(EXPIRES_MS).toISOString() },
  };
  const token = toHeldToken(body, random);
  return token === null ? null : (token.expiresAtMs - token.refreshAtMs) / 1000;
};
const octal = (mode: number, dir: boolean, readOnly: boolean) => groupMode(mode, { dir, readOnly }).toString(8);

goldenTable('kinds of volumes are as recorded', 'volumes/volumeKinds', {
  ...Object.fromEntries(
    HOST_PATH_TYPES.flatMap((type) => KINDS.map((kind) => [`hostPath: type ${type || 'none'}, ${kind}`, () => hostPath(type, kind)])),
  ),
  'hostPath: type FileOrCreate, below what is not there': () => hostPath('FileOrCreate', 'absent', '/srv/no/it'),
  'hostPath: type DirectoryOrCreate, below what is not there': () => hostPath('DirectoryOrCreate', 'absent', '/srv/no/it'),
  'hostPath: no known type': () => hostPath('Floppy', 'dir'),
  'hostPath: a path that goes up': () => hostPath('', 'absent', '/srv/../etc'),
  'hostPath: a relative path': () => hostPath('', 'absent', 'srv'),

  'emptyDir: on disk': () => decoded({ emptyDir: {} }),
  'emptyDir: with a limit': () => decoded({ emptyDir: { sizeLimit: '1Gi' } }),
  'emptyDir: a limit of nothing is none': () => decoded({ emptyDir: { sizeLimit: '0' } }),
  'emptyDir: in memory': () => decoded({ emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }),
  'emptyDir: huge pages': () => decoded({ emptyDir: { medium: 'HugePages' } }),
  'emptyDir: huge pages of a size': () => decoded({ emptyDir: { medium: 'HugePages-2Mi' } }),
  'emptyDir: huge pages of no size': () => decoded({ emptyDir: { medium: 'HugePages-many' } }),
  'emptyDir: another medium': () => decoded({ emptyDir: { medium: 'Paper' } }),

  'in memory: nothing is known': () => tmpfsBytes(pod(), null, undefined),
  'in memory: what pods may use of the node': () => tmpfsBytes(pod(), null, '4Gi'),
  'in memory: the limit of the volume': () => tmpfsBytes(pod(), 1024, '4Gi'),
  'in memory: the limits of all containers together': () => tmpfsBytes(withMemory('1Mi', '2Mi'), null, '4Gi'),
  'in memory: one container has no limit': () => tmpfsBytes(withMemory('1Mi', undefined), null, '4Gi'),
  'in memory: the least of them': () => tmpfsBytes(withMemory('1Mi'), 2048, '1Ki'),

  'files: a configMap lies on disk': () => decoded({ configMap: { name: 'c', defaultMode: 0o400 } }),
  'files: a secret lies in memory': () =>
    decoded({ secret: { secretName: 's', optional: true, items: [{ key: 'k', path: 'p', mode: 0o440 }] } }),
  'files: a downward volume lies in memory': () =>
    decoded({ downwardAPI: { items: [{ path: 'n', fieldRef: { fieldPath: 'metadata.name' } }] } }),
  'files: a projected volume lies in memory': () => decoded({ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }),
  'files: a token of an audience and a life': () =>
    decoded({ projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'vault', expirationSeconds: 600 } }] } }),

  'path: plain': () => pathProblem('a/b'),
  'path: dots within a name': () => pathProblem('a..b/..c'),
  'path: empty': () => pathProblem(''),
  'path: absolute': () => pathProblem('/a'),
  'path: up': () => pathProblem('a/../b'),
  'path: a name of the writer’s own': () => pathProblem('..data'),
  'path: of 4096 characters': () => pathProblem('a/'.repeat(2048).slice(0, 4096)),
  'path: of 4097 characters': () => pathProblem(`${'a/'.repeat(2048)}b`),
  'path: a name of 255 characters': () => pathProblem('a'.repeat(255)),
  'path: a name of 256 characters': () => pathProblem(`x/${'a'.repeat(256)}`),
  'path: only first elements are links': () => [...topNames(['a', 'b/c', 'b/d/e'])],

  'mounted below: a directory for it': () =>
    nestedMountPoints(mounting({ name: 'v', mountPath: '/v/' }, { name: 'w', mountPath: '/v/a/b' }), 'v'),
  'mounted below: of a part': () =>
    nestedMountPoints(mounting({ name: 'v', mountPath: '/v', subPath: 'sub' }, { name: 'w', mountPath: '/v/a' }), 'v'),
  'mounted below: beside it': () => nestedMountPoints(mounting({ name: 'v', mountPath: '/v' }, { name: 'w', mountPath: '/vv' }), 'v'),
  'mounted below: by a path that goes up': () =>
    nestedMountPoints(mounting({ name: 'v', mountPath: '/v' }, { name: 'w', mountPath: '/v/../etc' }), 'v'),

  'user: one of all containers': () => commonUser(users(undefined, 7, 7)),
  'user: one of the pod': () => commonUser(users(7, undefined, undefined)),
  'user: of the pod, save for one container': () => commonUser(users(7, undefined, 8)),
  'user: of one container only': () => commonUser(users(undefined, 7, undefined)),
  'user: nobody says': () => commonUser(users(undefined, undefined)),
  'user: root': () => commonUser(users(0, undefined)),

  'group: a file': () => octal(0o600, false, false),
  'group: a file that is only read': () => octal(0o600, false, true),
  'group: a directory': () => octal(0o700, true, false),
  'group: a directory that is only read': () => octal(0o700, true, true),
  'group: what others may do stays': () => octal(0o604, false, false),

  'token: of an hour, a fifth before its end': () => dueBefore(3600, 0),
  'token: earlier by chance, 10 s at most': () => dueBefore(3600, 0.5),
  'token: of two days, when it is a day old': () => dueBefore(2 * 86_400, 0),
  'token: of 30 hours, whichever comes first': () => dueBefore(30 * 3600, 0),
  'token: an answer without one': () => toHeldToken({ spec: { expirationSeconds: 600 }, status: {} }, 0),
});
