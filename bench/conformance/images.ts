/**
 * Stand-ins for the images of the specs, made on the spot of programs of this machine. Each has what the specs ask of the image: its
 * program, its user, its shell. What has none stays away, and its specs are counted as not runnable.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '@actorlet/fleet/src/boot/plane/authority.ts';
import { busyboxFiles, dockerArchive, type ImageConfig } from '../../test/e2e/lab/images.ts';
import type { TarEntry } from '../../test/e2e/lab/tar.ts';

interface StandIn {
  /** Of the images that it stands for, with their registry and version. */
  pattern: RegExp;
  image: Omit<ImageConfig, 'tags'>;
}

const EFFECTIVE_UID = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("Effective uid: %d\\n", geteuid()); return 0; }\n';
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
/** Of a driver of volumes or devices only the proxy is there, which drivers inside of the test's own process need. */
const SOCKET_PROXY = join(import.meta.dirname, 'socketProxy.c');
/** Of the user database of agnhost, which specs of supplementary groups read. */
const AGNHOST_USERS: readonly TarEntry[] = [
  text('etc/passwd', 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n'),
  text('etc/group', 'root:x:0:\nnogroup:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n'),
];

function text(path: string, content: string): TarEntry {
  return { kind: 'file', path, data: Buffer.from(content) };
}

/** @param agnhost Path of the program. */
function standIns(agnhost: string): StandIn[] {
  const busybox = [...busyboxFiles(), ...moreApplets()];
  const withBash = [...busybox, ...hostProgram('/bin/bash')];
  const shell: readonly TarEntry[] = [
    ...withBash.filter(({ path }) => path !== 'bin/sh'),
    { kind: 'file', path: 'bin/sh', data: compiled(SHELL), mode: 0o755 },
  ];
  const withAgnhost: readonly TarEntry[] = [
    ...withBash.filter(({ path }) => !AGNHOST_USERS.some((users) => users.path === path)),
    ...AGNHOST_USERS,
    { kind: 'file', path: 'agnhost', data: readFileSync(agnhost), mode: 0o755 },
    link('agnhost-2', 'agnhost'),
    ...hostProgram('/usr/bin/curl').filter(({ path }) => !withBash.some((there) => there.path === path)),
    ...servingPair(),
    { kind: 'dir', path: 'uploads/' },
  ];
  const web = [
    'sh',
    '-c',
    'mkdir -p /usr/share/nginx/html && echo Welcome to nginx >/usr/share/nginx/html/index.html; exec httpd -f -p 80 -h /usr/share/nginx/html',
  ];
  return [
    { pattern: /\/(?:agnhost|pause):/, image: { layer: withAgnhost, entrypoint: ['/agnhost'], cmd: ['pause'] } },
    { pattern: /\/(?:kitten|nautilus):/, image: { layer: withAgnhost, entrypoint: ['/agnhost'], cmd: ['test-webserver'] } },
    { pattern: /\/busybox:/, image: { layer: shell, cmd: ['sh'] } },
    { pattern: /\/(?:httpd|nginx|httpd-new|nginx-new):/, image: { layer: busybox, cmd: web } },
    {
      pattern: /\/hostpathplugin:/,
      image: {
        layer: [...busybox, { kind: 'file', path: 'hostpathplugin', data: compiled(readFileSync(SOCKET_PROXY, 'utf8')), mode: 0o755 }],
      },
    },
    {
      pattern: /\/glibc-dns-testing:/,
      image: { layer: [...busybox.filter(({ path }) => path !== 'bin/hostname'), ...hostProgram('/bin/hostname')], cmd: ['sh'] },
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
    if (tags.length === 0) continue;
    const archive = join(o.dir, 'image.tar');
    writeFileSync(archive, dockerArchive({ ...image, tags }));
    o.ctr('images', 'import', archive);
    rmSync(archive);
    for (const tag of tags) made.add(tag);
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
