/** The file system and its watches behind the fault injector: full, slow, failing and deaf disks. */

import type { Clock, HostFs, Rng, Sys } from '@actorlet/kubelet/ports/ports.ts';
import type { DiskCode, FsOp } from '../../types.ts';
import type { ActiveFaults, FaultOf } from '../activeFaults.ts';
import { override, pause } from './pause.ts';

interface FileOptions {
  activeFaults: ActiveFaults;
  clock: Clock;
  rng: Rng;
}

/** What each method does, in the words of `select.ops`; null: it is about the file system, not about a file. */
const OPS: Readonly<Record<keyof HostFs, FsOp | null>> = {
  readFile: 'read',
  readTail: 'read',
  openRead: 'read',
  writeFile: 'write',
  rename: 'rename',
  fsyncDir: 'sync',
  mkdirp: 'mkdir',
  readdir: 'read',
  stat: 'read',
  lstat: 'read',
  readlink: 'read',
  symlink: 'symlink',
  chmod: 'chmod',
  unlink: 'remove',
  rmdir: 'remove',
  statfs: null,
};
/** What takes room. */
const GROWS: readonly FsOp[] = ['write', 'mkdir', 'symlink'];

const WORDS: Readonly<Record<DiskCode, string>> = {
  EIO: 'input/output error',
  ENOSPC: 'no space left on device',
  EROFS: 'read-only file system',
  EACCES: 'permission denied',
  EXDEV: 'cross-device link not permitted',
  EMFILE: 'too many open files',
};

function diskError(code: DiskCode, op: FsOp, path: string): Error {
  return Object.assign(new Error(`${code}: ${WORDS[code]}, ${op} '${path}' (injected fault)`), { code, path });
}

export function interceptFs(fs: HostFs, o: FileOptions): HostFs {
  const { activeFaults } = o;
  const touches = (f: FaultOf<'disk.full' | 'disk.slow' | 'disk.error'>, paths: readonly string[]): boolean =>
    paths.some((path) => activeFaults.match.any(f.select.paths, path));

  async function before(op: FsOp, paths: readonly string[]): Promise<void> {
    const what = `${op} ${paths.join(' ')}`;
    const slow = activeFaults.first('disk.slow', what, (f) => activeFaults.match.one(f.select.ops, op) && touches(f, paths));
    if (slow !== undefined) await pause(o.clock, o.rng.next() * slow.fault.delayMs, { healed: slow.healed });
    const path = paths[0] ?? '';
    if (GROWS.includes(op) && activeFaults.first('disk.full', what, (f) => touches(f, paths)) !== undefined)
      throw diskError('ENOSPC', op, path);
    // Reads fail only where they are named: a node that cannot read at all cannot start anything worth testing.
    const named = (f: FaultOf<'disk.error'>): boolean =>
      f.select.ops === undefined ? op !== 'read' : activeFaults.match.one(f.select.ops, op);
    const bad = activeFaults.first('disk.error', what, (f) => named(f) && touches(f, paths));
    if (bad !== undefined) throw diskError(bad.fault.code, op, path);
  }

  const wrapped: Partial<HostFs> = {};
  for (const name of Object.keys(OPS) as (keyof HostFs)[]) {
    const op = OPS[name];
    if (op === null) continue;
    const method = fs[name].bind(fs) as (...args: unknown[]) => Promise<unknown>;
    // Both names of a rename or a link count: a fault may be aimed at either.
    const both = name === 'rename' || name === 'symlink';
    const guarded = async (...args: unknown[]): Promise<unknown> => {
      const paths = args.slice(0, both ? 2 : 1).map(String);
      await before(op, paths);
      return method(...args);
    };
    Object.assign(wrapped, { [name]: guarded });
  }
  wrapped.statfs = async (path) => {
    const real = await fs.statfs(path);
    const hit = activeFaults.first('pressure.disk', `statfs ${path}`, (f) => activeFaults.match.any(f.select.paths, path));
    return hit === undefined ? real : { ...real, bytesAvailable: Math.min(real.bytesAvailable, hit.fault.availableBytes) };
  };
  return override(fs, wrapped);
}

interface Watch {
  path: string;
  end(error: Error): void;
}

export function interceptSys(sys: Sys, o: Pick<FileOptions, 'activeFaults'>): Sys {
  const { activeFaults } = o;
  const open = new Set<Watch>();
  activeFaults.onBegin('watch.break', (active) => {
    if (active.fault.kind !== 'watch.break') return 0;
    const { paths } = active.fault.select;
    for (const watch of [...open]) {
      if (!activeFaults.match.any(paths, watch.path) || !activeFaults.strikes(active, `watch ${watch.path}`)) continue;
      watch.end(new Error(`the watch of ${watch.path} broke (injected fault)`));
    }
    return active.hits;
  });
  return override(sys, {
    watchDir(path, onEvent, onEnd) {
      const real = sys.watchDir(
        path,
        (e) => {
          const file = `${path}/${e.name}`;
          const deaf = activeFaults.first(
            'disk.deaf',
            `watch ${file}`,
            ({ select: { paths } }) => activeFaults.match.any(paths, file) || activeFaults.match.any(paths, path),
          );
          if (deaf === undefined) onEvent(e);
        },
        (error) => {
          open.delete(watch);
          onEnd(error);
        },
      );
      const watch: Watch = {
        path,
        end(error) {
          open.delete(watch);
          real[Symbol.dispose]();
          onEnd(error);
        },
      };
      open.add(watch);
      return {
        [Symbol.dispose]: () => {
          open.delete(watch);
          real[Symbol.dispose]();
        },
      };
    },
  });
}
