/**
 * What is mounted at one path and below, by listmount(2) and statmount(2) of Linux 6.13 and later: numbers of all mounts, and what each stands
 * for, which is asked once. The kernel gives no number twice. To write the whole table out takes it milliseconds, and a burst of pods
 * that end asks for it once a pod.
 */
import koffi from 'koffi';
import type { MountEntry } from '../../../machines/host/mountinfo.ts';

/** The same on every processor. */
const [STATMOUNT, LISTMOUNT] = [457, 458];
/** `LSMT_ROOT`: all mounts below the root of this process. */
const ALL = 0xffff_ffff_ffff_ffffn;
/** `struct mnt_id_req` in its first version. */
const REQUEST_BYTES = 24;
/** `SB_BASIC | MNT_ROOT | MNT_POINT | FS_TYPE | FS_SUBTYPE | SB_SOURCE` */
const [SB_BASIC, MNT_ROOT, MNT_POINT, FS_TYPE, FS_SUBTYPE, SB_SOURCE] = [0x1n, 0x8n, 0x10n, 0x20n, 0x100n, 0x200n];
const ASKED = SB_BASIC | MNT_ROOT | MNT_POINT | FS_TYPE | FS_SUBTYPE | SB_SOURCE;
/** Without these it is an older kernel. A file system need not have a subtype. */
const NEEDED = SB_BASIC | MNT_ROOT | MNT_POINT | FS_TYPE | SB_SOURCE;
/** Of `struct statmount`: where its fields are, and where its texts begin. */
const AT = { mask: 8, major: 16, minor: 20, type: 36, root: 104, point: 108, subtype: 120, source: 124, texts: 512 } as const;
const IDS_PER_CALL = 1_024;
/** Three paths and two words; a longer one does not fit, and the table is read instead. */
const ANSWER_BYTES = 16 * 1_024;

export interface MountCalls {
  /**
   * Mounts at this path and below, in the order in which they were made. Null: the table tells. That is so where the kernel cannot be
   * asked, and where nothing is found at the path itself: a mount that was moved keeps its number, so nobody can rely on what is not found.
   */
  at(path: string): readonly MountEntry[] | null;
}

type Syscall = (number: number, request: Buffer, answer: Buffer, size: number, flags: number) => number;

export function createMountCalls(): MountCalls {
  let syscall: Syscall | null | undefined;
  let known = new Map<bigint, MountEntry | null>();
  const request = Buffer.alloc(REQUEST_BYTES);
  const ids = Buffer.alloc(8 * IDS_PER_CALL);
  const answer = Buffer.alloc(ANSWER_BYTES);
  const ask = (id: bigint, param: bigint): Buffer => {
    request.writeUInt32LE(REQUEST_BYTES, 0);
    request.writeBigUInt64LE(id, 8);
    request.writeBigUInt64LE(param, 16);
    return request;
  };
  const text = (field: number): string => {
    const from = AT.texts + answer.readUInt32LE(field);
    return answer.toString('utf8', from, answer.indexOf(0, from));
  };

  /** Null: it went meanwhile, or cannot be reached from the root. Undefined: it cannot be told. */
  const told = (call: Syscall, id: bigint): MountEntry | null | undefined => {
    if (call(STATMOUNT, ask(id, ASKED), answer, answer.length, 0) !== 0) return koffi.errno() === koffi.os.errno.ENOENT ? null : undefined;
    const mask = answer.readBigUInt64LE(AT.mask);
    if ((mask & NEEDED) !== NEEDED) return undefined;
    const path = text(AT.point);
    if (!path.startsWith('/')) return null;
    const subtype = (mask & FS_SUBTYPE) === 0n ? '' : text(AT.subtype);
    const type = text(AT.type);
    return {
      path,
      root: text(AT.root),
      type: subtype === '' ? type : `${type}.${subtype}`,
      source: text(AT.source),
      device: `${answer.readUInt32LE(AT.major)}:${answer.readUInt32LE(AT.minor)}`,
    };
  };

  /** Null where it cannot be told. */
  const numbers = (call: Syscall): bigint[] | null => {
    const all: bigint[] = [];
    for (;;) {
      const count = call(LISTMOUNT, ask(ALL, all.at(-1) ?? 0n), ids, IDS_PER_CALL, 0);
      if (count < 0) return null;
      for (let i = 0; i < count; i++) all.push(ids.readBigUInt64LE(8 * i));
      if (count < IDS_PER_CALL) return all;
    }
  };

  const found = (call: Syscall, path: string): readonly MountEntry[] | null => {
    const all = numbers(call);
    if (all === null) return null;
    const next = new Map<bigint, MountEntry | null>();
    const here: MountEntry[] = [];
    const isHere = (entry: MountEntry | null | undefined): entry is MountEntry =>
      entry !== null && entry !== undefined && (entry.path === path || entry.path.startsWith(`${path}/`));
    for (const id of all) {
      let entry = known.get(id);
      if (entry === undefined || isHere(entry)) entry = told(call, id);
      if (entry === undefined) return null;
      next.set(id, entry);
      if (isHere(entry)) here.push(entry);
    }
    known = next;
    return here;
  };

  return {
    at(path) {
      if (syscall === undefined) syscall = loaded();
      if (syscall === null) return null;
      const here = found(syscall, path);
      if (here === null) {
        syscall = null;
        known = new Map();
      }
      return here?.some((entry) => entry.path === path) === true ? here : null;
    },
  };
}

/** Null on another C library, and where numbers are stored the other way round. */
function loaded(): Syscall | null {
  try {
    if (new Uint8Array(new Uint16Array([1]).buffer)[0] !== 1) return null;
    return koffi.load('libc.so.6').func('long syscall(long number, void *request, void *answer, size_t size, unsigned int flags)');
  } catch {
    return null;
  }
}
