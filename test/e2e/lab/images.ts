/** Builds the two images the tests need as docker archives: no registry is asked. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TarEntry, tar } from './tar.ts';

export const PAUSE_IMAGE = 'actorlet.test/pause:1';
/** `image: busybox` in a manifest resolves to the first of these. */
export const BUSYBOX_IMAGES = ['docker.io/library/busybox:latest', 'docker.io/library/busybox:1.35', 'actorlet.test/busybox:1'] as const;

const APPLETS =
  'sh ash cat echo sleep true false ls ps kill env id hostname date mkdir rm cp mv touch test [ grep sed awk head tail wc sort nc wget httpd ip ' +
  'ifconfig ping nslookup mount umount df du stat chmod chown ln pwd printf seq tr cut uname which xargs yes timeout tee dd find nproc whoami';

/** Holds a pod's namespaces: reaps children, ends on TERM or INT. */
const PAUSE_C = `
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, reap);
  for (;;) pause();
}
`;

export interface ImageConfig {
  tags: readonly string[];
  layer: readonly TarEntry[];
  entrypoint?: string[];
  cmd?: string[];
  /** That the process runs as. */
  user?: string;
}

export function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

function imageParts(image: ImageConfig): { layer: Buffer; config: Buffer } {
  const layer = tar(image.layer);
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: {
        Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
        ...(image.entrypoint ? { Entrypoint: image.entrypoint } : {}),
        ...(image.cmd ? { Cmd: image.cmd } : {}),
        ...(image.user === undefined ? {} : { User: image.user }),
      },
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
      history: [{ created: '1970-01-01T00:00:00Z', created_by: 'actorlet test lab' }],
    }),
  );
  return { layer, config };
}

/** What `ctr images import` takes. */
export function dockerArchive(image: ImageConfig): Buffer {
  const { layer, config } = imageParts(image);
  const configName = `${sha256(config)}.json`;
  const manifest = Buffer.from(JSON.stringify([{ Config: configName, RepoTags: image.tags, Layers: ['layer.tar'] }]));
  return tar([
    { kind: 'file', path: configName, data: config },
    { kind: 'file', path: 'layer.tar', data: layer },
    { kind: 'file', path: 'manifest.json', data: manifest },
  ]);
}

function findBusybox(): string {
  for (const dir of ['/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/local/bin']) {
    const path = join(dir, 'busybox');
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  throw new Error('no busybox on this machine: run scripts/setup/e2e-setup.sh first');
}

function compilePause(): Uint8Array | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-pause-'));
  try {
    writeFileSync(join(dir, 'pause.c'), PAUSE_C);
    execFileSync('gcc', ['-static', '-Os', '-s', '-o', join(dir, 'pause'), join(dir, 'pause.c')], { stdio: 'pipe' });
    return readFileSync(join(dir, 'pause'));
  } catch {
    return undefined;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export const ROOT: readonly TarEntry[] = ['bin/', 'etc/', 'tmp/', 'proc/', 'sys/', 'dev/'].map((path) => ({
  kind: 'dir',
  path,
  mode: path === 'tmp/' ? 0o1777 : 0o755,
}));

/** For a registry: an uncompressed layer and its configuration. `mark` makes it another image than any other. */
export function busyboxParts(mark: string): { layer: Buffer; config: Buffer } {
  const layer: TarEntry[] = [...busyboxFiles(), { kind: 'file', path: 'etc/mark', data: Buffer.from(mark) }];
  return imageParts({ tags: [], layer, cmd: ['sh'] });
}

export function busyboxFiles(): TarEntry[] {
  return [
    ...ROOT,
    { kind: 'file', path: 'bin/busybox', data: readFileSync(findBusybox()), mode: 0o755 },
    ...APPLETS.split(' ').map((name): TarEntry => ({ kind: 'symlink', path: `bin/${name}`, target: 'busybox' })),
    {
      kind: 'file',
      path: 'etc/passwd',
      data: Buffer.from('root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'),
    },
    { kind: 'file', path: 'etc/group', data: Buffer.from('root:x:0:\nnogroup:x:65534:\n') },
  ];
}

/** `pauseFrom` says what the pause process is: compiled C, or, where no compiler works, busybox running a shell loop that obeys TERM. */
export function buildImages(): { pause: Buffer; busybox: Buffer; pauseFrom: 'gcc' | 'busybox' } {
  const compiled = compilePause();
  const busyboxLayer = busyboxFiles();
  const pause: ImageConfig =
    compiled === undefined
      ? {
          tags: [PAUSE_IMAGE],
          layer: busyboxLayer,
          entrypoint: ['/bin/sh', '-c', 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait; done'],
        }
      : { tags: [PAUSE_IMAGE], layer: [...ROOT, { kind: 'file', path: 'pause', data: compiled, mode: 0o755 }], entrypoint: ['/pause'] };
  return {
    pause: dockerArchive(pause),
    busybox: dockerArchive({ tags: BUSYBOX_IMAGES, layer: busyboxLayer, cmd: ['sh'] }),
    pauseFrom: compiled === undefined ? 'busybox' : 'gcc',
  };
}
