/** What is changed of a recording on its way to the tree: pods and events that are left out, and names. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';

export interface Renaming {
  /** JSON text as it was recorded, with the stand-ins. */
  into(text: string): string;
  back(text: string): string;
}

export class Edit {
  readonly names: Renaming | null;
  readonly #pods: readonly string[];
  readonly #inputs: ReadonlySet<number>;
  readonly #only: ReadonlySet<number> | null;
  /** With `only`: timers fire that were cleared, where what cleared them is left out. */
  readonly firesCleared: boolean;

  /** @param o `pods`: UIDs of those that are left out. `inputs`: numbers of events that are. `only`: of all inputs that come. */
  constructor(o: {
    pods?: readonly string[];
    inputs?: ReadonlySet<number>;
    only?: ReadonlySet<number>;
    names?: Renaming | null;
    firesCleared?: boolean;
  }) {
    this.firesCleared = o.firesCleared ?? false;
    this.#pods = o.pods ?? [];
    this.#inputs = o.inputs ?? new Set();
    this.#only = o.only ?? null;
    this.names = o.names ?? null;
  }

  /** Nothing comes but inputs of the recording. */
  get isPart(): boolean {
    return this.#only !== null;
  }

  keeps(order: number): boolean {
    return !this.#inputs.has(order) && this.#only?.has(order) !== false;
  }

  /** An event that is not told: it is about a pod that is left out, or left out itself. */
  leavesOut(order: number, value: Json): boolean {
    return !this.keeps(order) || this.#isAbout(JSON.stringify(without(value, this.#pods)));
  }

  into(json: Json): Json {
    if (this.names === null && this.#pods.length === 0) return json;
    const text = JSON.stringify(json);
    const less = this.#isAbout(text) ? JSON.stringify(without(json, this.#pods)) : text;
    return JSON.parse(this.names === null ? less : this.names.into(less)) as Json;
  }

  /** What the tree says, in the words of the recording. */
  back(json: Json): Json {
    return this.names === null ? json : (JSON.parse(this.names.back(JSON.stringify(json))) as Json);
  }

  #isAbout(text: string): boolean {
    return this.#pods.some((uid) => text.includes(uid));
  }
}

/** Lists without what names one of these pods; texts that are JSON likewise. */
function without(json: Json, uids: readonly string[]): Json {
  if (typeof json === 'string') return uids.some((uid) => json.includes(uid)) ? textWithout(json, uids) : json;
  if (Array.isArray(json)) {
    const kept = (json as readonly Json[]).map((item) => without(item, uids));
    return kept.filter((item) => !uids.some((uid) => JSON.stringify(item).includes(uid)));
  }
  if (!isRecord(json)) return json;
  return Object.fromEntries(Object.entries(json).map(([key, item]) => [key, without(item as Json, uids)]));
}

function textWithout(text: string, uids: readonly string[]): string {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    return JSON.stringify(without(JSON.parse(text) as Json, uids)) + (text.endsWith('\n') ? '\n' : '');
  } catch {
    return text;
  }
}
