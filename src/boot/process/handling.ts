/**
 * The note of what is being handled, in a file that is mapped as memory, so that it outlives whatever ends the process
 * (watchdog, out of memory, SIGKILL); and the suspects that earlier deaths left, one small file each.
 */

import { createHash } from 'node:crypto';
import { closeSync, ftruncateSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openOwnSync, readRegularSync, writeOwnSync } from '@actorlet/process/src/regularFile.ts';
import type { Pod } from '../../machines/kube/types.ts';
import {
  definitionText,
  isSetAside,
  isSuspect,
  SUBJECT_BYTES_MAX,
  SUBJECTS_MAX,
  type Suspect,
  strike,
  whyAside,
} from '../../machines/pod/setAside.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Handling } from '../../ports/handling.ts';
import type { Logger } from '../../ports/ports.ts';
import type { Libc } from './libc.ts';

/** Layout of the note, which the watchdog thread writes to as well: whether, of what, how many bytes, who. */
export const NOTE = { busy: 0, how: 1, length: 4, text: 8, bytes: 8 + SUBJECT_BYTES_MAX } as const;
/** What the process died of, where somebody could still say so. */
const DIED_OF = ['killed, by the kernel for want of memory perhaps', 'its main thread was stuck', 'an uncaught error'] as const;
const FILE_MODE = 0o600;
const SUSPECT_BYTES_MAX = 1024 * 1024;
export const DIED_STUCK = 1;
const DIED_UNCAUGHT = 2;

export interface HandlingOptions {
  rootDir: string;
  libc: Pick<Libc, 'mapShared'>;
  wallMs(): number;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
}
export interface OwnHandling extends Handling {
  /** This process is about to end over an error that nothing caught: what threw it is on record again. */
  died(error: unknown): void;
}

export function noteFile(rootDir: string): string {
  return join(rootDir, 'actorlet', 'handling');
}

/** @throws when the note cannot be kept: file or mapping. */
export function openHandling(o: HandlingOptions): OwnHandling {
  const dir = join(o.rootDir, 'actorlet', 'suspects');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const suspects = new Suspects(dir, o);
  const last = readNote(noteFile(o.rootDir));
  if (last !== null) suspects.died(last);
  return new MappedHandling(mapped(noteFile(o.rootDir), o.libc), suspects);
}

function readNote(file: string): { subject: string; how: string } | null {
  let bytes: Buffer;
  try {
    bytes = readRegularSync(file, { own: true, bytesMax: NOTE.bytes });
  } catch {
    return null;
  }
  if (bytes.length !== NOTE.bytes || bytes[NOTE.busy] !== 1) return null;
  const length = Math.min(bytes.readUInt32LE(NOTE.length), SUBJECT_BYTES_MAX);
  return { subject: bytes.toString('utf8', NOTE.text, NOTE.text + length), how: DIED_OF[bytes[NOTE.how] ?? 0] ?? DIED_OF[0] };
}

function mapped(file: string, libc: Pick<Libc, 'mapShared'>): Uint8Array {
  const fd = openOwnSync(file, FILE_MODE);
  try {
    ftruncateSync(fd, NOTE.bytes);
    return libc.mapShared(fd, NOTE.bytes);
  } finally {
    closeSync(fd);
  }
}

class MappedHandling implements OwnHandling {
  readonly #note: Uint8Array;
  readonly #length: DataView;
  readonly #suspects: Suspects;
  readonly #encoder = new TextEncoder();
  #subject: string | null = null;
  /** What the newest error passed through on its way out. */
  #threw: { subject: string; error: unknown } | null = null;

  constructor(note: Uint8Array, suspects: Suspects) {
    this.#note = note;
    this.#length = new DataView(note.buffer, note.byteOffset + NOTE.length, 4);
    this.#suspects = suspects;
  }

  of<T>(subject: string, fn: () => T): T {
    const outer = this.#subject;
    this.#write(subject);
    try {
      return fn();
    } catch (error) {
      if (this.#threw?.error !== error) this.#threw = { subject, error };
      throw error;
    } finally {
      this.#write(outer);
    }
  }

  #write(subject: string | null): void {
    if (subject === this.#subject) return;
    this.#subject = subject;
    this.#note[NOTE.busy] = 0;
    if (subject === null) return;
    const { written } = this.#encoder.encodeInto(subject, this.#note.subarray(NOTE.text));
    this.#length.setUint32(0, written, true);
    this.#note[NOTE.how] = 0;
    this.#note[NOTE.busy] = 1;
  }

  died(error: unknown): void {
    if (this.#threw === null || this.#threw.error !== error) return;
    this.#write(this.#threw.subject);
    this.#note[NOTE.how] = DIED_UNCAUGHT;
  }

  documentAside(subject: string): string | null {
    return this.#suspects.aside(subject);
  }

  podAside(pod: Pod): string | null {
    return this.#suspects.podAside(pod);
  }
}

class Suspects {
  readonly #dir: string;
  readonly #o: HandlingOptions;
  readonly #all = new Map<string, Suspect>();

  constructor(dir: string, o: HandlingOptions) {
    this.#dir = dir;
    this.#o = o;
    for (const name of readdirSync(dir)) {
      try {
        const suspect: unknown = JSON.parse(readRegularSync(join(dir, name), { own: true, bytesMax: SUSPECT_BYTES_MAX }).toString('utf8'));
        if (isSuspect(suspect) && this.#file(suspect.subject) === join(dir, name)) this.#all.set(suspect.subject, suspect);
        else rmSync(join(dir, name), { force: true });
      } catch (error) {
        o.log.warn(
          { file: join(dir, name), err: messageOf(error) },
          'a file about what an earlier start died of cannot be read; it counts as absent',
        );
      }
    }
  }

  /** The process before this one died over `subject`. */
  died({ subject, how }: { subject: string; how: string }): void {
    const now = strike(this.#all.get(subject), subject, { atMs: this.#o.wallMs(), how });
    this.#put(now);
    const fields = { subject, deaths: now.strikes.length, file: this.#file(subject) };
    if (isSetAside(now)) this.#o.log.error(fields, `the daemon died over ${subject} again (${how}): it is set aside`);
    else this.#o.log.warn(fields, `the daemon died while it handled ${subject} (${how}); a second time, and it is set aside`);
  }

  aside(subject: string): string | null {
    const suspect = this.#all.get(subject);
    return suspect !== undefined && isSetAside(suspect) ? whyAside(suspect, this.#file(subject)) : null;
  }

  podAside(pod: Pod): string | null {
    const own = this.#all.get(`pod ${pod.metadata.uid}`);
    // The digest of a large definition is work, and there may be thousands: only where it can tell anything.
    if (own === undefined && !this.#holdsDefinition()) return null;
    const digest = createHash('sha256').update(definitionText(pod)).digest('hex');
    // Deaths are held against a definition: the first look after a death says which, another one begins anew.
    if (own !== undefined && own.digest === undefined) this.#put({ ...own, digest });
    else if (own !== undefined && own.digest !== digest) this.#drop(own.subject);
    for (const suspect of this.#all.values()) {
      if (suspect.digest === digest && isSetAside(suspect)) return whyAside(suspect, this.#file(suspect.subject));
    }
    return null;
  }

  #holdsDefinition(): boolean {
    for (const suspect of this.#all.values()) if (suspect.digest !== undefined && isSetAside(suspect)) return true;
    return false;
  }

  #file(subject: string): string {
    return join(this.#dir, `${createHash('sha256').update(subject).digest('hex').slice(0, 16)}.json`);
  }

  #put(suspect: Suspect): void {
    this.#all.delete(suspect.subject);
    this.#all.set(suspect.subject, suspect);
    const oldest = this.#all.keys().next().value;
    if (this.#all.size > SUBJECTS_MAX && oldest !== undefined) this.#drop(oldest);
    const file = this.#file(suspect.subject);
    try {
      writeOwnSync(`${file}.tmp`, `${JSON.stringify(suspect)}\n`, FILE_MODE);
      renameSync(`${file}.tmp`, file);
    } catch (error) {
      this.#o.log.warn({ file, err: messageOf(error) }, 'what the daemon died over cannot be written; a later start will not know');
    }
  }

  #drop(subject: string): void {
    this.#all.delete(subject);
    rmSync(this.#file(subject), { force: true });
  }
}
