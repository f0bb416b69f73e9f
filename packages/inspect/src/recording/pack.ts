/** Entries of the flight recorder and rows of actors as numbers and a growing list of strings: most of them repeat. Pure. */

import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { RowFact } from './facts/row.ts';
import {
  ACTOR_TYPES,
  ENTRY_KINDS,
  type EntriesFrame,
  type PackedEntry,
  type PackedMail,
  type PackedRow,
  type RowsFrame,
} from './frames.ts';

/** A list that grew so long begins anew. */
const STRINGS_MAX = 8192;
/** Characters of one string. */
const CHARS_MAX = 16_384;
const KIND_NUMBER: ReadonlyMap<string, number> = new Map(ENTRY_KINDS.map((kind, i) => [kind, i]));

export class Packer {
  #known = new Map<string, number>();
  #fresh: string[] = [];

  /** The next frame's list of strings begins anew: what was packed before is not needed to read it. */
  reset(): void {
    this.#known.clear();
  }

  #begin(): number {
    if (this.#known.size > STRINGS_MAX) this.reset();
    this.#fresh = [];
    return this.#known.size;
  }

  pack(entries: readonly RecorderEntry[], lost: number): EntriesFrame {
    const base = this.#begin();
    const atMs = entries[0]?.atMs ?? 0;
    const packed = entries.map((e) => this.#one(e, atMs));
    return { t: 'e', atMs, base, strings: this.#fresh, entries: packed, lost };
  }

  packRows(facts: readonly RowFact[]): RowsFrame {
    const base = this.#begin();
    const atMs = facts[0]?.atMs ?? 0;
    const rows = facts.map((fact) => this.#row(fact, fact.atMs - atMs));
    return { t: 'r', atMs, base, strings: this.#fresh, rows };
  }

  #row({ path, row }: RowFact, dt: number): PackedRow {
    if (row === null) return [dt, this.#number(path)];
    const { state: a, sinceMonoMs, sleptMonoMs, oldestMonoMs, chart } = row;
    const mail = a.mailbox;
    const packed = [
      ...([dt, this.#number(path), ACTOR_TYPES.indexOf(a.type), this.#number(a.lifecycle), this.#number(a.state)] as const),
      ...([this.#number(a.reason), this.#number(a.message), sinceMonoMs, a.incarnation, a.restarts] as const),
      a.lastError === undefined ? -1 : this.#number(a.lastError),
      chart,
      mail === undefined ? null : ([mail.depth, mail.depthMax, oldestMonoMs, mail.coalesced, mail.dropped, mail.suspended] as const),
    ] as const;
    return sleptMonoMs === null ? packed : [...packed, sleptMonoMs];
  }

  #one(e: RecorderEntry, atMs: number): PackedEntry {
    const head = [
      e.atMs - atMs,
      KIND_NUMBER.get(e.kind) ?? 0,
      this.#number(e.path),
      this.#number(e.what),
      this.#number(e.detail),
      this.#number(e.from),
    ] as const;
    if (e.causes.length === 0) return head;
    return [...head, e.causes.map((c) => [c.atMs - atMs, this.#number(c.by), this.#number(c.what)] as const)];
  }

  #number(text: string): number {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const number = this.#known.size;
    this.#known.set(text, number);
    this.#fresh.push(text.length > CHARS_MAX ? `${text.slice(0, CHARS_MAX - 1)}…` : text);
    return number;
  }
}

/** An actor of a recording. Times are monotonic. */
export interface RecordedRow extends Pick<ActorView, 'type' | 'lifecycle' | 'state' | 'reason' | 'message' | 'incarnation' | 'restarts'> {
  sinceMonoMs: number;
  /** Since when it sleeps; null: it does not. */
  sleptMonoMs: number | null;
  lastError: string | null;
  /** Number of its chart; -1: it is no machine. */
  chart: number;
  mail: PackedMail | null;
}

/** Shown for a text whose string was in a damaged frame. */
const LOST_TEXT = '(lost)';

export class Unpacker {
  /** By number: those of a damaged frame are missing, and the others keep theirs. */
  #strings = new Map<number, string>();

  #texts(frame: Pick<EntriesFrame, 'base' | 'strings'>): (i: number) => string {
    if (frame.base === 0) this.#strings = new Map();
    frame.strings.forEach((string, i) => {
      this.#strings.set(frame.base + i, string);
    });
    const strings = this.#strings;
    return (i) => strings.get(i) ?? LOST_TEXT;
  }

  /** Rows of the frame, each at its time; null: that actor is gone. */
  unpackRows(frame: RowsFrame): { atMs: number; path: string; row: RecordedRow | null }[] {
    const text = this.#texts(frame);
    return frame.rows.map((packed) => {
      const at = { atMs: frame.atMs + packed[0], path: text(packed[1]) };
      if (packed.length === 2) return { ...at, row: null };
      const [, , type, lifecycle, state, reason, message, sinceMonoMs, incarnation, restarts, error, chart, mail, slept] = packed;
      const row = {
        ...{
          type: ACTOR_TYPES[type] ?? 'actor',
          lifecycle: text(lifecycle),
          state: text(state),
          reason: text(reason),
          message: text(message),
        },
        ...{ sinceMonoMs, sleptMonoMs: slept ?? null, incarnation, restarts, chart, mail },
        lastError: error < 0 ? null : text(error),
      };
      return { ...at, row };
    });
  }

  /** Entries of the frame, numbered from `n`. */
  unpack(frame: EntriesFrame, n: number): RecorderEntry[] {
    const text = this.#texts(frame);
    return frame.entries.map(([dt, kind, path, what, detail, from, causes], i) => ({
      n: n + i,
      atMs: frame.atMs + dt,
      kind: ENTRY_KINDS[kind] ?? 'note',
      path: text(path),
      what: text(what),
      detail: text(detail),
      from: text(from),
      causes: (causes ?? []).map(([d, by, cause]) => ({ atMs: frame.atMs + d, by: text(by), what: text(cause) })),
    }));
  }
}
