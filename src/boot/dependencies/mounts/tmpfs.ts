/**
 * Mounts of a tmpfs by system call. Other file systems are mounted by processes, since a call on a dead network file system
 * never returns. A tmpfs waits for nobody, and a pod that starts mounts one for its token: a shell and mount(8) took 20 ms of
 * processor time each, in a burst of a hundred pods on two cores.
 */
import koffi, { type KoffiFunc } from 'koffi';
import type { MountCall } from '../../../ports/machine/mounter.ts';
import { MountError } from './mountError.ts';

export const TMPFS = 'tmpfs';
/** `UMOUNT_NOFOLLOW` of umount2(2): a link at the very end is no mount of ours. */
const UMOUNT_NOFOLLOW = 8;
/** Options that the file system itself reads; any other is left to mount(8), which knows flags and names of users. */
const OPTION = /^(?:size=\d+|mode=[0-7]+|noswap)$/;

/** Each is false where nothing was done: mount(8) or umount(8) does it then, or says in words why it cannot be done. */
export interface TmpfsCalls {
  mount(path: string, options: readonly string[], call: MountCall): Promise<boolean>;
  unmount(path: string, call: MountCall): Promise<boolean>;
}

interface Libc {
  mount: KoffiFunc<(...args: readonly unknown[]) => number>;
  umount2: KoffiFunc<(...args: readonly unknown[]) => number>;
}

export function createTmpfsCalls(): TmpfsCalls {
  let libc: Libc | null | undefined;
  const load = (): Libc | null => {
    try {
      const lib = koffi.load('libc.so.6');
      return {
        mount: lib.func('int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)'),
        umount2: lib.func('int umount2(const char *target, int flags)'),
      };
    } catch {
      // Another C library.
      return null;
    }
  };
  const run = (name: keyof Libc, { path, args }: { path: string; args: readonly unknown[] }, call: MountCall): Promise<boolean> => {
    const { timeoutMs, signal } = call;
    if (libc === undefined) libc = load();
    const fn = libc?.[name];
    if (fn === undefined || signal.aborted) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new MountError('ETIMEDOUT', `${name} ${path}: no end within ${timeoutMs} ms; what became of it is not known`)),
        timeoutMs,
      );
      // On a thread of the pool: the removal of a mount waits for all processors.
      fn.async(...args, (error: unknown, result: number) => {
        clearTimeout(late);
        if (error !== null && error !== undefined) reject(error);
        else resolve(result === 0);
      });
    });
  };
  // C would see the text up to a zero byte as the whole.
  const sayable = (...words: string[]): boolean => words.every((word) => !word.includes('\0'));
  return {
    async mount(path, options, call) {
      if (!options.every((option) => OPTION.test(option)) || !sayable(path)) return false;
      return run('mount', { path, args: [TMPFS, path, TMPFS, 0, options.join(',')] }, call);
    },
    async unmount(path, call) {
      return sayable(path) && run('umount2', { path, args: [path, UMOUNT_NOFOLLOW] }, call);
    },
  };
}
