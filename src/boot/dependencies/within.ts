/**
 * A path that may not leave some folders, opened so that nobody learns from it what lies outside. Each component is
 * opened below the one before, which is held open; links are walked from here, and one that leads out is refused before
 * anything is looked at there.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readlink } from 'node:fs/promises';

/** Linux; Node does not name it. */
export const O_PATH = 0o10_000_000;
/** As the kernel has it. */
const LINKS_MAX = 40;

interface Root {
  handle: FileHandle;
  /** As it was named, and where it really is. */
  names: readonly string[];
}

const failure = (code: string, message: string): Error => Object.assign(new Error(`${code}: ${message}`), { code });
const fdPath = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;
const partsOf = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.');

/** The caller closes it. `nofollow`: a link at the very end is opened itself. Rejects with `EACCES` where the path leads out. */
export async function openWithin(path: string, folders: readonly string[], o: { nofollow?: boolean } = {}): Promise<FileHandle> {
  const roots: Root[] = [];
  const stack: FileHandle[] = [];
  const held = (handle: FileHandle): boolean => stack.includes(handle) || roots.some((r) => r.handle === handle);
  const out = () => failure('EACCES', `${path} leads out of the folders it may be in`);
  try {
    for (const folder of folders) {
      const handle = await open(folder, O_PATH).catch(() => null);
      if (handle !== null) roots.push({ handle, names: [folder, await readlink(fdPath(handle))] });
    }
    const enter = async (absolute: string): Promise<string[]> => {
      for (const { handle, names } of roots) {
        const name = names.find((n) => absolute === n || absolute.startsWith(n === '/' ? n : `${n}/`));
        if (name === undefined) continue;
        for (const one of stack.splice(0)) if (!held(one)) await one.close();
        stack.push(handle);
        return partsOf(absolute.slice(name.length));
      }
      throw out();
    };
    const left = await enter(path);
    for (let links = 0; left.length > 0; ) {
      const name = left.shift() ?? '';
      const at = stack.at(-1);
      if (at === undefined) throw out();
      if (name === '..') {
        if (stack.length === 1) throw out();
        stack.pop();
        if (!held(at)) await at.close();
        continue;
      }
      const next = await open(`${fdPath(at)}/${name}`, O_PATH | constants.O_NOFOLLOW);
      if (!(await next.stat()).isSymbolicLink() || (o.nofollow === true && left.length === 0)) {
        stack.push(next);
        continue;
      }
      await next.close();
      links += 1;
      if (links > LINKS_MAX) throw failure('ELOOP', `${path} has more than ${LINKS_MAX} links`);
      // Another link may stand there by now: that one is walked, by the same rules.
      const target = await readlink(`${fdPath(at)}/${name}`);
      left.unshift(...(target.startsWith('/') ? await enter(target) : partsOf(target)));
    }
    const last = stack.pop();
    if (last === undefined) throw out();
    // The last is one of the folders themselves: they are closed below.
    return held(last) ? await open(fdPath(last), O_PATH) : last;
  } finally {
    for (const handle of new Set([...stack, ...roots.map((r) => r.handle)])) await handle.close();
  }
}
