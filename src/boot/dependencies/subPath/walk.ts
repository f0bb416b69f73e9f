/**
 * A path inside a volume, opened so that no container that writes to the volume can lead it out (resources and volumes
 * 8.21). Each component is opened below the one before, which is held open, and no link is followed by the kernel: what
 * a link says is walked from here, and may not leave the volume.
 */

import { constants } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, readlink } from 'node:fs/promises';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { ifThere } from '../../../ports/ifThere.ts';

/** Linux: a place in the tree, not the file there: no FIFO blocks, no device is woken. Node does not name it. */
export const O_PATH = 0o10_000_000;
const { O_DIRECTORY, O_NOFOLLOW } = constants;
/** As the kernel has it. */
const LINKS_MAX = 40;
/** Another process may remove what was just made: not for ever. */
const MAKES_MAX = 16;
const MODE_BITS = 0o7777;

export class SubPathError extends Error {
  readonly step: 'create' | 'prepare';
  constructor(step: 'create' | 'prepare', message: string) {
    super(message);
    this.name = 'SubPathError';
    this.step = step;
  }
}

interface Part {
  name: string;
  /** It comes from a link: never made, and `..` goes up, though not out. */
  linked: boolean;
}
function partsOf(path: string, linked: boolean): Part[] {
  return path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .map((name) => ({ name, linked }));
}
/** What is open there, as a path that no renaming changes. */
export function fdPath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/**
 * The caller closes it. Rejects with {@link SubPathError} where it leads out of the volume or cannot be made, else with
 * the error of the system call.
 */
export async function openBelow(volume: string, subPath: string): Promise<FileHandle> {
  if (subPath.startsWith('/')) throw new SubPathError('prepare', `${subPath} is absolute`);
  const stack = [await open(volume, O_PATH)];
  try {
    await walk(stack, partsOf(subPath, false));
    const [last] = stack.splice(-1);
    if (last === undefined) throw new Error(`nothing is open of ${volume}`);
    return last;
  } finally {
    for (const handle of stack) await handle.close();
  }
}

/** `stack`: the directories from the volume down to where it is; each of them stays open, so that `..` needs no name. */
async function walk(stack: FileHandle[], path: readonly Part[]): Promise<void> {
  const [root] = stack;
  if (root === undefined) throw new Error('the volume is not open');
  const left = [...path];
  let links = 0;
  let makes = 0;
  const closeTo = async (length: number): Promise<void> => {
    for (const handle of stack.splice(length)) await handle.close();
  };
  for (let part = left.shift(); part !== undefined; part = left.shift()) {
    const { name, linked } = part;
    if (name === '..') {
      if (!linked || stack.length === 1) throw new SubPathError('prepare', 'it leads out of the volume with ".."');
      await closeTo(stack.length - 1);
      continue;
    }
    const at = stack.at(-1) ?? root;
    // Null: there is nothing of that name. A link is opened itself.
    const next = await ifThere(open(`${fdPath(at)}/${name}`, O_PATH | O_NOFOLLOW));
    if (next === null) {
      makes += 1;
      if (linked) throw new SubPathError('create', `a link leads to ${name}, which is not there`);
      if (makes > MAKES_MAX) throw new SubPathError('create', `${name} goes away as soon as it is made`);
      stack.push(...(await make(root, at, name)));
      // Another process was quicker: look again.
      if (stack.at(-1) === at) left.unshift(part);
      continue;
    }
    if (!(await next.stat()).isSymbolicLink()) {
      stack.push(next);
      continue;
    }
    await next.close();
    links += 1;
    if (links > LINKS_MAX) throw new SubPathError('prepare', `more than ${LINKS_MAX} links`);
    // Another link may stand there by now: that one is walked, by the same rules.
    const target = await readlink(`${fdPath(at)}/${name}`);
    if (!target.startsWith('/')) {
      left.unshift(...partsOf(target, true));
      continue;
    }
    const real = await readlink(fdPath(root));
    if (target !== real && !target.startsWith(`${real}/`))
      throw new SubPathError('prepare', `a link leads out of the volume, to ${target}`);
    await closeTo(1);
    left.unshift(...partsOf(target.slice(real.length), true));
  }
}

/** A directory with the mode of the volume's own, setgid and sticky bits included. None: something else is there now. */
async function make(root: FileHandle, dir: FileHandle, name: string): Promise<FileHandle[]> {
  const mode = (await root.stat()).mode & MODE_BITS;
  const path = `${fdPath(dir)}/${name}`;
  try {
    await mkdir(path, mode);
    const made = await open(path, O_PATH | O_NOFOLLOW | O_DIRECTORY);
    // mkdir passes through the umask.
    try {
      await chmod(fdPath(made), mode);
    } catch (error) {
      await made.close();
      throw error;
    }
    return [made];
  } catch (error) {
    if (['EEXIST', 'ENOENT', 'ELOOP', 'ENOTDIR'].includes(codeOf(error))) return [];
    throw new SubPathError('create', `${name} cannot be made: ${messageOf(error)}`);
  }
}
