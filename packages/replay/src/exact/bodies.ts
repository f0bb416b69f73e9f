/** Long values of a recording, which lines name by number. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Input, Json } from '../entries.ts';
import { BODIES_MAX } from '../lines.ts';
import { type Maker, revive } from '../values.ts';

/** What {@link revive} has to look for. */
const MARKS: readonly string[] = ['"$', '"get '];

export class Bodies {
  /** No line names one that so many came after. */
  readonly #texts = new Map<number, string>();
  #count = 0;

  /** @param text JSON. */
  add(text: string): void {
    this.#texts.set(this.#count, text);
    this.#texts.delete(this.#count - BODIES_MAX);
    this.#count += 1;
  }

  /** The value itself where it is a number of one: made anew each time. @throws where there is none of this number. */
  in(json: Json): Json {
    const text = this.#textOf(json);
    return text === null ? json : parsed(text, json);
  }

  /** What {@link revive} makes of it. Made anew each time: the tree may change what it is given. */
  revived(json: Json, maker: Maker): unknown {
    const text = this.#textOf(json);
    if (text === null) return revive(json, maker);
    const value = parsed(text, json);
    return MARKS.some((mark) => text.includes(mark)) ? revive(value, maker) : value;
  }

  inInput(input: Input): Input {
    switch (input[0]) {
      case 'settled':
      case 'failed':
      case 'called':
        return [input[0], input[1], input[2], this.in(input[3])];
      default:
        return input;
    }
  }

  /** JSON text of the value. @throws as {@link in}. */
  textIn(json: Json): string {
    return this.#textOf(json) ?? JSON.stringify(json);
  }

  #textOf(json: Json): string | null {
    if (!isRecord(json) || json.$ !== 'B') return null;
    const number = Number(json.v);
    const text = this.#texts.get(number);
    if (text === undefined) throw new Error(`the recording names body ${number}, which it does not have`);
    return text;
  }
}

/** A body stays text until a line names it (`name`), so damage inside shows here first. @throws in words where it is no JSON. */
function parsed(text: string, name: Json): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new Error(`body ${isRecord(name) ? Number(name.v) : '?'} is damaged: ${messageOf(error)}`);
  }
}
