/** Texts that hold others: JSON, base64, credentials of registries. */
import { fromBase64 } from '@actorlet/kubelet/machines/data/base64.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '../entries.ts';

/** No document that the tree reads is nested as deep. The stack holds some thousand levels. */
const LEVELS_MAX = 200;

export function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Credentials of registries: with `auths`, or of each registry. */
export function isCredentials(text: string): boolean {
  if (!text.includes('"auth') && !text.includes('"password"')) return false;
  const document = documentOf(text);
  if (!isRecord(document)) return false;
  const all = Object.values(isRecord(document.auths) ? document.auths : document);
  return all.length > 0 && all.every((one) => isRecord(one) && ('auth' in one || 'username' in one || 'password' in one));
}

export const decodedBase64 = fromBase64;

export function encodedBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** What a text of JSON holds; undefined for any other, and for a value alone. */
export function documentOf(text: string): Json | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    const parsed = JSON.parse(text) as Json;
    return isDeep(parsed) ? undefined : parsed;
  } catch {
    return undefined;
  }
}

export function isDeep(value: unknown, levels = LEVELS_MAX): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeep(item, levels - 1));
}
