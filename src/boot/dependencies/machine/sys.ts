/**
 * The real Sys port. Watching a directory stands on `fs.watch`, which is inotify inside Node's own event loop: no
 * thread and no polling, and everybody who watches treats events as hints.
 */

import { type FSWatcher, statSync, watch } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { FsEvent, Sys } from '../../../ports/ports.ts';

export interface SysOptions {
  /** Sends a datagram to the init system's notify socket; false when there is none. */
  notify: (state: string) => boolean;
}

/**
 * Watches one directory. Throws when the watch cannot be opened (`ENOENT`, `EMFILE`, `ENOSPC`, ...). A name that appears or vanishes is
 * looked at once, to tell which of the two it was; the order of events of one name may differ from the order of its changes.
 */
export function watchDirectory(path: string, onEvent: (e: FsEvent) => void, onEnd: (error: Error) => void): Disposable {
  const before = statSync(path);
  if (!before.isDirectory()) throw Object.assign(new Error(`ENOTDIR: ${path} is not a directory`), { code: 'ENOTDIR' });
  let watcher: FSWatcher | null = null;
  const close = () => {
    const open = watcher;
    watcher = null;
    open?.close();
  };
  const end = (error: Error) => {
    if (watcher === null) return;
    close();
    onEnd(error);
  };
  const emit = (e: FsEvent) => {
    if (watcher !== null) onEvent(e);
  };
  // inotify reports the removal or renaming of the directory itself under its own name.
  const self = basename(path);
  const turns = new Map<string, object>();
  const checkSelf = async () => {
    try {
      const now = await stat(path);
      if (now.dev !== before.dev || now.ino !== before.ino) end(new Error(`${path} was replaced by another directory`));
    } catch (error) {
      const gone = Object.assign(new Error(`${path} can no longer be watched: ${messageOf(error)}`), {
        code: codeOf(error),
      });
      end(gone);
    }
  };
  // Anything but "not there" leaves open what became of the name: the reader will find out.
  const isThere = (name: string): Promise<boolean> =>
    lstat(join(path, name)).then(
      () => true,
      (error: unknown) => codeOf(error) !== 'ENOENT',
    );
  const onChange = async (type: string, name: string | null, justBefore: string) => {
    if (name === null || name === self) {
      await checkSelf();
      if (name === null) return emit({ kind: 'modify', name: '' });
    }
    if (type === 'change') return emit({ kind: 'modify', name });
    const turn = {};
    turns.set(name, turn);
    const there = await isThere(name);
    // Where it came or went once more meanwhile, this was its end, and that one its return: unless the file just before became it.
    const isLast = turns.get(name) === turn;
    if (isLast) turns.delete(name);
    const isThereStill = there && (isLast || (justBefore !== '' && !(await isThere(justBefore))));
    emit({ kind: isThereStill ? 'create' : 'delete', name });
  };
  let last = '';
  watcher = watch(path, { persistent: false, encoding: 'utf8' }, (type, name) => {
    void onChange(type, name, last === name ? '' : last);
    last = type === 'rename' && name !== null ? name : '';
  });
  watcher.on('error', end);
  return { [Symbol.dispose]: close };
}

export function createSys(options: SysOptions): Sys {
  return { watchDir: watchDirectory, notify: (state) => options.notify(state) };
}
