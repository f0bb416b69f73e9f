/**
 * For tests of the kind `oci`: images made here, a registry on loopback, and a user who is not root. That user, its ids and a
 * /dev/net/tun that it may open exist in a mount namespace of the test's own, so nothing of the machine is changed.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildImages, sha256 } from '../lab/images.ts';
import { type TarEntry, tar } from '../lab/tar.ts';

const USER = 'actorlet-test';
export const USER_ID = 4242;

/** Whether this machine has what the kind needs; e2e-setup.sh installs it. */
export function canRunOci(): boolean {
  if (process.geteuid?.() !== 0) return false;
  try {
    execFileSync('sh', ['-c', 'command -v skopeo umoci newuidmap busybox && { command -v crun || command -v runc; }'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** One layer and its configuration, as `startRegistry` takes them. */
export function imageParts(layer: readonly TarEntry[], o: { config?: unknown; architecture?: string; more?: readonly TarEntry[][] } = {}) {
  const [plain = Buffer.alloc(0), ...more] = [layer, ...(o.more ?? [])].map((entries) => tar(entries));
  const architecture = o.architecture ?? (process.arch === 'arm64' ? 'arm64' : 'amd64');
  const rootfs = { type: 'layers', diff_ids: [plain, ...more].map((data) => `sha256:${sha256(data)}`) };
  return {
    ...{ layer: plain, more },
    config: Buffer.from(JSON.stringify({ architecture, os: 'linux', config: o.config ?? { Cmd: ['sh'] }, rootfs })),
  };
}

export interface Rig {
  /** Folder that the user may read. */
  dir: string;
  /** Starts a command as that user. */
  launch: readonly string[];
  env: NodeJS.ProcessEnv;
  /** An archive as `docker save` writes it, with busybox as docker.io/library/busybox:latest. */
  archive: string;
  close(): void;
}

export function makeRig(): Rig {
  const dir = mkdtempSync(join(tmpdir(), 'oci-'));
  chmodSync(dir, 0o755);
  const etc = (name: string, line: string, from = `/etc/${name}`) => {
    const file = join(dir, name);
    writeFileSync(file, `${from === '' ? '' : readFileSync(from, 'utf8')}${line}\n`);
    return file;
  };
  const home = join(dir, 'home');
  mkdirSync(home);
  execFileSync('chown', [String(USER_ID), home]);
  const over = [
    [etc('passwd', `${USER}:x:${USER_ID}:${USER_ID}::${home}:/bin/sh`), '/etc/passwd'],
    [etc('group', `${USER}:x:${USER_ID}:`), '/etc/group'],
    [etc('subuid', `${USER}:500000:65536`, ''), '/etc/subuid'],
    [etc('subgid', `${USER}:500000:65536`, ''), '/etc/subgid'],
  ].map(([from, to]) => `mount --bind ${from} ${to}`);
  const tun = ['mount -t tmpfs none /dev/net', 'mknod -m 666 /dev/net/tun c 10 200'];
  const become = `exec setpriv --reuid=${USER_ID} --regid=${USER_ID} --clear-groups "$@"`;
  const script = ['touch /etc/subuid /etc/subgid; mkdir -p /dev/net', ...over, ...tun, become].join(' && ');
  const archive = join(dir, 'busybox.tar');
  writeFileSync(archive, buildImages().busybox);
  return {
    dir,
    launch: ['unshare', '--mount', 'sh', '-c', script, 'rig'],
    env: { HOME: home, XDG_RUNTIME_DIR: '' },
    archive,
    close: () => rmSync(dir, { recursive: true, force: true }),
  };
}
