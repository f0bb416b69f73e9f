/** Long values of a recording, which lines name by number. */
import { isRecord } from '../../machines/shape/conform.ts';
import type { Input, Json } from '../entries.ts';

export class Bodies {
  readonly #texts: string[] = [];

  add(value: unknown): void {
    this.#texts.push(JSON.stringify(value));
  }

  /** The value itself where it is a number of one: made anew each time. @throws where there is none of this number. */
  in(json: Json): Json {
    if (!isRecord(json) || json.$ !== 'B') return json;
    const text = this.#texts[Number(json.v)];
    if (text === undefined) throw new Error(`the recording names body ${Number(json.v)}, which it does not have`);
    return JSON.parse(text) as Json;
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
}
