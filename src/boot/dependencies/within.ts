/**
 * A path that may not leave some folders, opened so that nobody learns from it what lies outside. Each component is opened below the one
 * before, which is held open; links are walked from here, and one that leads out is refused before anything is looked at there.
 */
import { closeSync, constants, fstatSync, readlinkSync } from 'node:fs';
import { readlink } from 'node:fs/promises';
import { openFd } from '@actorlet/process/src/regularFile.ts';

/** Linux; Node does not name it. */
export const O_PATH = 0o10_000_000;
/** Links that a walk follows, as in the kernel. */
const LINKS_MAX = 40;

interface Root {
  fd: number;
  /** As it was named, and where it really is. */
  names: readonly string[];
}

const failure = (code: string, message: string): Error => Object.assign(new Error(`${code}: ${message}`), { code });
const fdPath = (fd: number): string => `/proc/self/fd/${fd}`;
const partsOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.');

/**
 * Gives a descriptor, which the caller closes. `nofollow`: a link at the very end is opened itself. Rejects with `EACCES` where the path
 * leads out. Only what walks the disk is a job of the pool: what is asked of a place that was just opened waits for nothing.
 */
export async function openWithin(path: string, folders: readonly string[], o: { nofollow?: boolean } = {}): Promise<number> {
  const roots: Root[] = [];
  const stack: number[] = [];
  const held = (fd: number): boolean => stack.includes(fd) || roots.some((r) => r.fd === fd);
  const out = () => failure('EACCES', `${path} leads out of the folders it may be in`);
  try {
    for (const folder of folders) {
      const fd = await openFd(folder, O_PATH).catch(() => null);
      if (fd !== null) roots.push({ fd, names: [folder, readlinkSync(fdPath(fd))] });
    }
    const enter = (absolute: string): string[] => {
      for (const { fd, names } of roots) {
        const name = names.find((n) => absolute === n || absolute.startsWith(n === '/' ? n : `${n}/`));
        if (name === undefined) continue;
        for (const one of stack.splice(0)) if (!held(one)) closeSync(one);
        stack.push(fd);
        return partsOf(absolute.slice(name.length));
      }
      throw out();
    };
    const left = enter(path);
    for (let links = 0; left.length > 0; ) {
      const name = left.shift() ?? '';
      const at = stack.at(-1);
      if (at === undefined) throw out();
      if (name === '..') {
        if (stack.length === 1) throw out();
        stack.pop();
        if (!held(at)) closeSync(at);
        continue;
      }
      const next = await openFd(`${fdPath(at)}/${name}`, O_PATH | constants.O_NOFOLLOW);
      if (!fstatSync(next).isSymbolicLink() || (o.nofollow === true && left.length === 0)) {
        stack.push(next);
        continue;
      }
      closeSync(next);
      links += 1;
      if (links > LINKS_MAX) throw failure('ELOOP', `${path} has more than ${LINKS_MAX} links`);
      // Another link may stand there by now: that one is walked, by the same rules.
      const target = await readlink(`${fdPath(at)}/${name}`);
      left.unshift(...(target.startsWith('/') ? enter(target) : partsOf(target)));
    }
    const last = stack.pop();
    if (last === undefined) throw out();
    // The last is one of the folders themselves: they are closed below.
    return held(last) ? await openFd(fdPath(last), O_PATH) : last;
  } finally {
    for (const fd of new Set([...stack, ...roots.map((r) => r.fd)])) closeSync(fd);
  }
}
