/** What a node says, as it is kept to name the field that differs: without secrets, and a long text by its length and digest. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';

/** Longer texts and bytes tell too little for their place. */
const TEXT_CHARS_MAX = 4_096;
/** Values are not looked into deeper: an answer or a request of Kubernetes is not. */
const LEVELS_MAX = 40;
const DIGEST_CHARS = 8;

/** @param json As it is compared (`secrets/masks.ts`). @param digest Of a text, as hexadecimal text. */
export function saidOf(json: Json, digest: (text: string) => string): Json {
  return shortened(json, digest, 0);
}

function shortened(json: Json, digest: (text: string) => string, level: number): Json {
  if (typeof json === 'string') return json.length > TEXT_CHARS_MAX ? hidden(json, digest) : json;
  if (json === null || typeof json !== 'object') return json;
  if (level > LEVELS_MAX) return hidden(JSON.stringify(json), digest);
  if (Array.isArray(json)) return json.map((item: Json) => shortened(item, digest, level + 1));
  const record = json as { readonly [key: string]: Json };
  // Functions are numbered in the order of all that was said: the number says nothing of this.
  if (record.$ === 'i') return { $: 'i' };
  if (record.$ === 'b') return hidden(String(record.v), digest);
  return Object.fromEntries(Object.entries(record).map(([key, item]) => [key, shortened(item, digest, level + 1)]));
}

function hidden(text: string, digest: (text: string) => string): Json {
  return { $: 'h', v: digest(text).slice(0, DIGEST_CHARS), n: text.length };
}

/** Of {@link hidden}. */
export function isHidden(json: Json): json is { readonly $: 'h'; readonly v: string; readonly n: number } {
  return isRecord(json) && json.$ === 'h' && typeof json.n === 'number';
}

/** Functions in it. */
export function functionsIn(said: Json): number {
  return JSON.stringify(said).split('{"$":"i"}').length - 1;
}
