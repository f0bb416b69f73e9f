/**
 * Stand-ins for the images of the specs, made on the spot of programs of this machine. Each has what the specs ask of the image: its
 * program, its user, its shell. What has none stays away, and its specs are counted as not runnable.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '@actorlet/fleet/src/boot/plane/authority.ts';
import { busyboxFiles, dockerArchive, type ImageConfig, ROOT } from '../../test/e2e/lab/images.ts';
import type { TarEntry } from '../../test/e2e/lab/tar.ts';
import { optionalAsset } from './programs.ts';

interface StandIn {
  /** Of the images that it stands for, with their registry and version. */
  pattern: RegExp;
  image: Omit<ImageConfig, 'tags'>;
}

const EFFECTIVE_UID = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("Effective uid: %d\\n", geteuid()); return 0; }\n';
/** `nmeter -d0 %3t`, which Debian's busybox has not. */
const MILLISECONDS = `#include <stdio.h>
#include <time.h>
int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct tm *at = gmtime(&now.tv_sec);
  printf("%02d:%02d:%02d.%03ld\\n", at->tm_hour, at->tm_min, at->tm_sec, now.tv_nsec / 1000000);
  return 0;
}
`;
/**
 * The shell of the image is one of busybox that passes variables on whose names are no identifiers. Debian's busybox drops these; bash, whose
 * errors read otherwise, keeps them.
 */
const SHELL = `#include <ctype.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments) {
  const char *shell = "/bin/busybox";
  for (char **variable = environ; *variable; variable++)
    for (char *at = *variable; *at && *at != '='; at++)
      if (*at != '_' && !(at > *variable ? isalnum(*at) : isalpha(*at))) shell = "/bin/bash";
  execv(shell, arguments);
  return 127;
}
`;
const SOCKET_PROXY = join(import.meta.dirname, 'socketProxy.c');
/** Of the user database of agnhost, which specs of supplementary groups read. */
const AGNHOST_USERS: readonly TarEntry[] = [
  text('etc/passwd', 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n'),
  text('etc/group', 'root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n'),
];

function text(path: string, content: string): TarEntry {
  return { kind: 'file', path, data: Buffer.from(content) };
}

/** The real programs, where KUBEBUILDER_ASSETS has them. */
const SIDECARS = [
  ...['csi-attacher', 'csi-external-health-monitor-controller', 'csi-node-driver-registrar', 'csi-provisioner', 'csi-resizer'],
  ...['csi-snapshotter', 'livenessprobe', 'sample-device-plugin'],
];

function ofProgram(name: string, layer: readonly TarEntry[]): StandIn[] {
  const path = optionalAsset(name);
  if (path === undefined) return [];
  const program: TarEntry = { kind: 'file', path: name, data: readFileSync(path), mode: 0o755 };
  const folders = [...ROOT, ...['tmp/', 'etc/'].map((path): TarEntry => ({ kind: 'dir', path, mode: path === 'tmp/' ? 0o1777 : 0o755 }))];
  return [
    {
      pattern: new RegExp(`/${name}:`),
      image: {
        layer: [...folders.filter((of) => !layer.some((there) => there.path === of.path)), ...layer, program],
        entrypoint: [`/${name}`],
      },
    },
  ];
}

/** The driver, or of it the proxy alone, which drivers inside of the test's own process need. */
function hostpathPlugin(busybox: readonly TarEntry[]): StandIn {
  const mounts = ['mount', 'umount', 'losetup', 'blkid', 'findmnt', 'mkfs.ext4'].flatMap((name) =>
    ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
      .map((folder) => `${folder}/${name}`)
      .filter(existsSync)
      .slice(0, 1)
      .flatMap(hostProgram),
  );
  const real = ofProgram('hostpathplugin', unique([...mounts, ...busybox]))[0];
  const proxy: TarEntry = { kind: 'file', path: 'hostpathplugin', data: compiled(readFileSync(SOCKET_PROXY, 'utf8')), mode: 0o755 };
  return real ?? { pattern: /\/hostpathplugin:/, image: { layer: [...busybox, proxy] } };
}

/** The first of each path. */
function unique(entries: readonly TarEntry[]): TarEntry[] {
  return [...new Map(entries.toReversed().map((entry) => [entry.path, entry])).values()].toReversed();
}

/** @param agnhost Path of the program. */
function standIns(agnhost: string): StandIn[] {
  const nmeter: TarEntry = { kind: 'file', path: 'bin/nmeter', data: compiled(MILLISECONDS), mode: 0o755 };
  const busybox = [...busyboxFiles(), ...moreApplets().filter(({ path }) => path !== nmeter.path), nmeter];
  const withBash = [...busybox, ...hostProgram('/bin/bash')];
  const shell: readonly TarEntry[] = [
    ...withBash.filter(({ path }) => path !== 'bin/sh'),
    { kind: 'file', path: 'bin/sh', data: compiled(SHELL), mode: 0o755 },
  ];
  const coredns = [optionalAsset('coredns')].filter((path) => path !== undefined);
  /** Of netcat, that of OpenBSD: busybox's lacks options that specs of services give. */
  const ofNetwork = ['/usr/bin/getent', '/usr/bin/dig', '/bin/nc', '/usr/bin/ss'].filter(existsSync).flatMap(hostProgram);
  const withAgnhost: readonly TarEntry[] = unique([
    // That of busybox runs busybox's own shell, and not the node's.
    ...hostProgram('/usr/bin/nsenter'),
    ...ofNetwork,
    // The shell of busybox prefers its own programs to those of the image.
    link('bin/sh', 'bash'),
    ...withBash.filter(({ path }) => !AGNHOST_USERS.some((users) => users.path === path)),
    ...AGNHOST_USERS,
    { kind: 'file', path: 'agnhost', data: readFileSync(agnhost), mode: 0o755 },
    ...coredns.map((path): TarEntry => ({ kind: 'file', path: 'coredns', data: readFileSync(path), mode: 0o755 })),
    link('agnhost-2', 'agnhost'),
    ...hostProgram('/usr/bin/curl'),
    ...servingPair(),
    { kind: 'dir', path: 'uploads/' },
  ]);
  const web = [
    'sh',
    '-c',
    'mkdir -p /usr/share/nginx/html && echo Welcome to nginx >/usr/share/nginx/html/index.html; exec httpd -f -p 80 -h /usr/share/nginx/html',
  ];
  return [
    { pattern: /\/(?:agnhost|pause):/, image: { layer: withAgnhost, entrypoint: ['/agnhost'], cmd: ['pause'] } },
    ...['kitten', 'nautilus'].map((name) => ({
      pattern: new RegExp(`/${name}:`),
      image: {
        layer: [...withAgnhost, text('data.json', `{"image": "${name}.jpg"}\n`), text('etc/os-release', 'NAME="Alpine Linux"\n')],
        ...{ entrypoint: ['/agnhost'], cmd: ['test-webserver'] },
      },
    })),
    { pattern: /\/busybox:/, image: { layer: shell, cmd: ['sh'] } },
    { pattern: /\/(?:httpd|nginx|httpd-new|nginx-new):/, image: { layer: busybox, cmd: web } },
    hostpathPlugin(busybox),
    ...SIDECARS.flatMap((name) => ofProgram(name, [])),
    {
      pattern: /\/glibc-dns-testing:/,
      image: { layer: unique([...hostProgram('/bin/hostname'), ...ofNetwork, ...busybox]), cmd: ['sh'] },
    },
    { pattern: /\/nonroot:/, image: { layer: busybox, cmd: ['sh'], user: '1234' } },
    {
      pattern: /\/ipc-utils:/,
      image: { layer: [...busybox, ...hostProgram('/usr/bin/ipcs'), ...hostProgram('/usr/bin/ipcmk')], cmd: ['sh'] },
    },
    {
      pattern: /\/nonewprivs:/,
      image: {
        layer: [...busybox, { kind: 'file', path: 'usr/local/bin/nnp', data: compiled(EFFECTIVE_UID), mode: 0o6755 }],
        cmd: ['nnp'],
      },
    },
  ];
}

/** Those of `wanted` that none stands for. `ctr`: of the runtime that gets them. */
export function importImages(wanted: readonly string[], o: { agnhost: string; dir: string; ctr: (...args: string[]) => string }): string[] {
  const made = new Set<string>();
  for (const { pattern, image } of standIns(o.agnhost)) {
    // Specs of images that must not be there ask for these.
    const tags = wanted.filter((name) => pattern.test(name) && !/invalid|authenticated/.test(name));
    for (const tag of tags) {
      const archive = join(o.dir, 'image.tar');
      // Each is an image of its own: a runtime tells one name of an image that has several.
      writeFileSync(archive, dockerArchive({ ...image, layer: [...image.layer, text('image', tag)], tags: [tag] }));
      o.ctr('images', 'import', archive);
      rmSync(archive);
      made.add(tag);
    }
  }
  return wanted.filter((name) => !made.has(name));
}

function link(path: string, target: string): TarEntry {
  return { kind: 'symlink', path, target };
}

/** Images of the specs have all of busybox; those of the other labs a part. */
function moreApplets(): TarEntry[] {
  const there = new Set(busyboxFiles().map(({ path }) => path));
  const applets = execFileSync('busybox', ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean);
  return applets
    .map((name) => `bin/${name}`)
    .filter((path) => !there.has(path))
    .map((path) => link(path, 'busybox'));
}

/** A program of this machine with the libraries that it loads. */
function hostProgram(path: string): TarEntry[] {
  const libraries = [...execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)].map(([, of = '']) => of);
  return [path, ...libraries].map((of) => ({
    ...{ kind: 'file' as const, data: readFileSync(realpathSync(of)), mode: 0o755 },
    path: of === path ? `bin/${of.split('/').at(-1)}` : of.slice(1),
  }));
}

/** What agnhost serves HTTPS with. */
function servingPair(): TarEntry[] {
  const dir = mkdtempSync(join(tmpdir(), 'pair-'));
  try {
    const { certFile, keyFile } = new Authority(dir, 'ca').issue('localhost', { name: 'localhost', hosts: ['localhost', '127.0.0.1'] });
    return [text('localhost.crt', readFileSync(certFile, 'utf8')), text('localhost.key', readFileSync(keyFile, 'utf8'))];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function compiled(source: string): Uint8Array {
  const dir = mkdtempSync(join(tmpdir(), 'c-'));
  try {
    writeFileSync(join(dir, 'main.c'), source);
    execFileSync('gcc', ['-static', '-Os', '-s', '-o', join(dir, 'main'), join(dir, 'main.c')], { stdio: 'pipe' });
    return readFileSync(join(dir, 'main'));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
