/** Entries of the flight recorder as numbers and a growing list of strings: most of them repeat. Pure. */
import type { RecorderEntry } from '../../machines/shown/recorderEntry.ts';
import { ENTRY_KINDS, type EntriesFrame, type PackedEntry } from './frames.ts';

/** A list that grew so long begins anew. */
const STRINGS_MAX = 8192;
/** Characters of one string. */
const CHARS_MAX = 1000;
const KIND_NUMBER: ReadonlyMap<string, number> = new Map(ENTRY_KINDS.map((kind, i) => [kind, i]));

export class Packer {
  #known = new Map<string, number>();
  #fresh: string[] = [];

  /** The next frame's list of strings begins anew: what was packed before is not needed to read it. */
  reset(): void {
    this.#known.clear();
  }

  pack(entries: readonly RecorderEntry[], lost: number): EntriesFrame {
    if (this.#known.size > STRINGS_MAX) this.reset();
    const base = this.#known.size;
    this.#fresh = [];
    const atMs = Math.round(entries[0]?.atMs ?? 0);
    const packed = entries.map((e) => this.#one(e, atMs));
    return { t: 'e', atMs, base, strings: this.#fresh, entries: packed, lost };
  }

  #one(e: RecorderEntry, atMs: number): PackedEntry {
    const head = [
      Math.round(e.atMs) - atMs,
      KIND_NUMBER.get(e.kind) ?? 0,
      this.#number(e.path),
      this.#number(e.what),
      this.#number(e.detail),
      this.#number(e.from),
    ] as const;
    if (e.causes.length === 0) return head;
    return [...head, e.causes.map((c) => [Math.round(c.atMs) - atMs, this.#number(c.by), this.#number(c.what)] as const)];
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

/** Shown for a text whose string was in a damaged frame. */
const LOST_TEXT = '(lost)';

export class Unpacker {
  /** By number: those of a damaged frame are missing, and the others keep theirs. */
  #strings = new Map<number, string>();

  /** Entries of the frame, numbered from `n`. */
  unpack(frame: EntriesFrame, n: number): RecorderEntry[] {
    if (frame.base === 0) this.#strings = new Map();
    frame.strings.forEach((string, i) => {
      this.#strings.set(frame.base + i, string);
    });
    const text = (i: number): string => this.#strings.get(i) ?? LOST_TEXT;
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
