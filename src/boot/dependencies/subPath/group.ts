/**
 * Gives a volume to the group of its pod, even while containers change the volume (resources and volumes 8.16). Each entry
 * is opened below its directory, which is held open, and no link is followed: what is changed is what was looked at.
 * Blocks: for the helper process, which has nothing else to do.
 */

import { chmodSync, chownSync, closeSync, constants, fstatSync, opendirSync, openSync, type Stats } from 'node:fs';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { O_PATH } from './walk.ts';

const { O_DIRECTORY, O_NOFOLLOW } = constants;
const MODE_BITS = 0o7777;
const DIRECTORY_BITS = 0o2770;
const FILE_BITS = 0o660;
/** chown(2): leaves that id as it is. */
const KEEP_OWNER = -1;
/** Each level holds two descriptors; the hard limit of a process is 4,096 where it is small. */
const DEPTH_MAX = 1000;
/** What is told of what could not be changed: the caller keeps 4,096 characters. */
const FAILURES_MAX = 10;
const FAILURE_CHARS_MAX = 300;

export interface GroupRequest {
  path: string;
  gid: number;
  onRootMismatch: boolean;
}

interface Walk {
  gid: number;
  /** Other file systems are not entered. */
  dev: number;
  /** One more entry is done. */
  done(): void;
  failed(where: string, error: unknown): void;
}

/** The root comes last, so that it can stand for the whole. What could not be changed, in lines; throws where the root cannot be opened. */
export function giveToGroup({ path, gid, onRootMismatch }: GroupRequest, done: () => void): string {
  const root = openSync(path, O_PATH | O_DIRECTORY);
  try {
    const info = fstatSync(root);
    if (onRootMismatch && info.gid === gid && (info.mode & DIRECTORY_BITS) === DIRECTORY_BITS) return '';
    const failures: string[] = [];
    let failed = 0;
    const walk: Walk = {
      gid,
      dev: info.dev,
      done,
      failed: (where, error) => {
        failed += 1;
        if (failed > FAILURES_MAX) return;
        failures.push(`${where}: ${messageOf(error)}`.slice(0, FAILURE_CHARS_MAX));
      },
    };
    directory(root, info, { walk, depth: 0, shown: '.' });
    return [...failures, ...(failed > FAILURES_MAX ? [`and ${failed - FAILURES_MAX} more`] : [])].join('\n');
  } finally {
    closeSync(root);
  }
}

function directory(fd: number, info: Stats, at: { walk: Walk; depth: number; shown: string }): void {
  const { walk, depth, shown } = at;
  try {
    if (depth >= DEPTH_MAX) throw new Error(`it lies deeper than ${DEPTH_MAX} directories; what is in it is left as it is`);
    // As bytes: a name need not be UTF-8.
    const entries = opendirSync(`/proc/self/fd/${fd}`, { encoding: 'latin1' });
    try {
      for (let next = entries.readSync(); next !== null; next = entries.readSync()) entry(fd, next.name, at);
    } finally {
      entries.closeSync();
    }
  } catch (error) {
    walk.failed(shown, error);
  }
  change(fd, info, { walk, bits: DIRECTORY_BITS, shown });
}

function entry(dir: number, name: string, { walk, depth, shown }: { walk: Walk; depth: number; shown: string }): void {
  walk.done();
  const bytes = Buffer.from(name, 'latin1');
  const inside = `${shown}/${bytes.toString('utf8')}`.slice(-FAILURE_CHARS_MAX);
  let fd: number;
  try {
    fd = openSync(Buffer.concat([Buffer.from(`/proc/self/fd/${dir}/`), bytes]), O_PATH | O_NOFOLLOW);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') walk.failed(inside, error);
    return;
  }
  try {
    const info = fstatSync(fd);
    if (info.isSymbolicLink() || info.dev !== walk.dev) return;
    if (info.isDirectory()) directory(fd, info, { walk, depth: depth + 1, shown: inside });
    else change(fd, info, { walk, bits: FILE_BITS, shown: inside });
  } finally {
    closeSync(fd);
  }
}

/** By the descriptor: whatever its name leads to by now. */
function change(fd: number, { gid, mode }: Stats, o: { walk: Walk; bits: number; shown: string }): void {
  const path = `/proc/self/fd/${fd}`;
  try {
    if (gid !== o.walk.gid) chownSync(path, KEEP_OWNER, o.walk.gid);
    // A new group takes setuid away from a program: it is not restored.
    const now = (gid === o.walk.gid ? mode : fstatSync(fd).mode) & MODE_BITS;
    if ((now & o.bits) !== o.bits) chmodSync(path, now | o.bits);
  } catch (error) {
    o.walk.failed(o.shown, error);
  }
}
