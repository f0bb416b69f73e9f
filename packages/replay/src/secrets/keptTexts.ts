/**
 * Values of annotations and of ConfigMaps, which the node writes into volumes and reads again. What is written for one stays the
 * same, whatever secrets are met later: else the node would find another text on the disk than it wrote.
 */
import { goQuote } from '@actorlet/kubelet/machines/text/go/goQuote.ts';
import { textOf } from '../values.ts';
import type { Door } from './doors.ts';
import { decodedBase64, encodedBase64 } from './encodings.ts';

const OPEN_DOORS: ReadonlySet<Door> = new Set<Door>(['open', 'free', 'kept', 'annotated']);
const NO_TEXT = Uint8Array.of(0xff);

/** Texts that are remembered, and their characters. */
const TEXTS_MAX = 20_000;
const CHARS_MAX = 8 * 1024 * 1024;
/** A longer one is not in a file with others. */
const QUOTED_CHARS_MAX = 8_192;

export class KeptTexts {
  /** Null: it stays as it is. */
  readonly #texts = new Map<string, string | null>();
  #chars = 0;

  of(text: string, make: (text: string) => string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known ?? text;
    const made = make(text);
    this.#note(text, made);
    if (text.length <= QUOTED_CHARS_MAX) this.#note(goQuote(text), goQuote(made));
    return made;
  }

  /** Of what a text holds in base64. Bytes that are no text stay. */
  ofBase64(text: string, make: (text: string) => string): string {
    const inner = textOf(decodedBase64(text) ?? NO_TEXT);
    if (inner === null) this.#note(text, text);
    const made = inner === null ? null : this.of(inner, make);
    return made === null || made === inner ? text : encodedBase64(new TextEncoder().encode(made));
  }

  /** What was made of it; null: it was not here. */
  known(text: string): string | null {
    const made = this.#texts.get(text);
    return made === undefined ? null : (made ?? text);
  }

  /** Whether bytes that are no text stay as they are. */
  keepsBytes(door: Door, bytes: Uint8Array): boolean {
    return OPEN_DOORS.has(door) || (door === 'mixed' && this.known(encodedBase64(bytes)) !== null);
  }

  #note(text: string, made: string): void {
    if (this.#texts.size >= TEXTS_MAX || this.#chars > CHARS_MAX) {
      this.#texts.clear();
      this.#chars = 0;
    }
    this.#texts.set(text, made === text ? null : made);
    this.#chars += text.length;
  }
}
