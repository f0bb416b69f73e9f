/** The lines of a recording as they are written, until there is no room for more. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Json } from './entries.ts';

/** Shorter values stand in their line. */
const BODY_CHARS_MIN = 96;
/** Why a recording ended for which there was no more room. */
export const FULL = 'the recording is full';
/** Bodies that are remembered; an older one is written again when it comes back. */
export const BODIES_MAX = 20_000;

export interface LinesOutput {
  /** Takes a line, without its end. False: there is no room, and the recording is over. */
  write(line: string): boolean;
  /** The recording ended, and why. */
  ended(why: string): void;
}

export class Lines {
  readonly digest: (text: string) => string;
  readonly #o: LinesOutput;
  readonly #bodies = new Map<string, number>();
  #count = 0;
  #on = true;

  constructor(o: LinesOutput, digest: (text: string) => string) {
    this.#o = o;
    this.digest = digest;
  }

  /** False: nothing is written any more. */
  get on(): boolean {
    return this.#on;
  }

  write(line: string): void {
    if (this.#on && !this.#o.write(line)) this.#stop(FULL);
  }

  /** The text of a value inside a line. A long one is written once, and named from then on. */
  value(json: Json): string {
    const text = JSON.stringify(json);
    if (text.length < BODY_CHARS_MIN) return text;
    const digest = this.digest(text);
    let body = this.#bodies.get(digest);
    if (body === undefined) {
      body = this.#count++;
      if (this.#bodies.size >= BODIES_MAX) this.#bodies.clear();
      this.#bodies.set(digest, body);
      this.write(`["body",${text}]`);
    }
    return `{"$":"B","v":${body}}`;
  }

  /** What `write` gives. A value that cannot be written, as one nested deeper than the stack, ends the recording and not the node. */
  orEnd<T>(write: () => T, otherwise: T): T {
    try {
      return write();
    } catch (error) {
      this.end(`a value cannot be written: ${messageOf(error)}`);
      return otherwise;
    }
  }

  end(why: string): void {
    if (!this.#on) return;
    // A broken disk takes no line more, and is no full recording.
    this.#o.write(JSON.stringify(['end', why]));
    this.#stop(why);
  }

  #stop(why: string): void {
    if (!this.#on) return;
    this.#on = false;
    this.#o.ended(why);
  }
}
