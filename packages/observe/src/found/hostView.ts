/**
 * Where files of the kubelet lie here. In a container the machine's root is a folder (`/host`), and links of the machine that begin
 * with a slash lead elsewhere: they are followed below that folder, by hand.
 */
import { readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@actorlet/kubelet/machines/text/errors.ts';

export interface HostView {
  /** The folder that is the kubelet's root, without a slash at its end; '' = it is the root here. */
  readonly root: string;
  /** Where a path of the kubelet is read. */
  at(path: string): Promise<string>;
  /** A path as the kubelet calls it. */
  named(path: string): string;
  /** Whether a path leads to the same file here as for the kubelet: what runs on the kubelet's own paths needs it. */
  same(path: string): Promise<boolean>;
}

const LINKS_MAX = 40;
/** Where `kubectl debug node/...` puts the root of the machine. */
const DEBUG_ROOT = '/host';

/** @param hostRoot What a person says; null: found out. */
export async function hostViewOf({ proc, pid }: { proc: string; pid: number }, hostRoot: string | null): Promise<HostView> {
  if (hostRoot !== null) return viewBelow(hostRoot.replace(/\/+$/, ''));
  const theirs = await identity(`${proc}/${pid}/root/`);
  if (theirs !== null && theirs === (await identity('/'))) return viewBelow('');
  // Without CAP_SYS_PTRACE the kubelet's root is not shown: a container tells by what is mounted there.
  if (theirs === null ? await isMounted(DEBUG_ROOT) : theirs === (await identity(DEBUG_ROOT))) return viewBelow(DEBUG_ROOT);
  return viewBelow(theirs === null ? '' : `${proc}/${pid}/root`);
}

function viewBelow(root: string): HostView {
  if (root === '')
    return { root, at: (path) => Promise.resolve(path), named: (path) => path, same: async (p) => (await identity(p)) !== null };
  const view: HostView = {
    root,
    async at(path) {
      return (await view.same(path)) ? path : resolvedBelow(root, path);
    },
    named: (path) => (path.startsWith(`${root}/`) ? path.slice(root.length) : path),
    async same(path) {
      const here = await identity(path);
      return here !== null && here === (await identity(await resolvedBelow(root, path)));
    },
  };
  return view;
}

/** Where a path leads if `root` is the root. What is not there is the path itself below it. @throws on too many links */
export async function resolvedBelow(root: string, path: string): Promise<string> {
  const left = path.split('/').reverse();
  const at: string[] = [];
  for (let links = 0; left.length > 0; ) {
    const part = left.pop() ?? '';
    if (part === '' || part === '.') continue;
    if (part === '..') {
      at.pop();
      continue;
    }
    const target = await readlink(join(root, ...at, part)).catch((error: unknown) => {
      // EINVAL: no link.
      if (['EINVAL', 'ENOENT', 'ENOTDIR', 'EACCES'].includes(codeOf(error) ?? '')) return null;
      throw error;
    });
    if (target === null) {
      at.push(part);
      continue;
    }
    if (++links > LINKS_MAX) throw new Error(`${path} has more than ${LINKS_MAX} links`);
    if (target.startsWith('/')) at.length = 0;
    left.push(...target.split('/').reverse());
  }
  return [root, ...at].join('/');
}

/** A root that is mounted. The folder of the image itself holds nothing but places for single mounts. */
async function isMounted(root: string): Promise<boolean> {
  const [here, there] = await Promise.all([stat('/'), stat(`${root}/etc`).then(() => stat(root))].map((s) => s.catch(() => null)));
  return here != null && there != null && here.dev !== there.dev;
}

/** Null: it is not there, or may not be looked at. */
async function identity(path: string): Promise<string | null> {
  return stat(path, { bigint: true }).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => null,
  );
}
