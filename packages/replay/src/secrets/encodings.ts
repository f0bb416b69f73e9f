/** Texts that hold others: JSON, base64, credentials of registries. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { documentOf } from './masks.ts';

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

/** Null: it is no base64. */
export function decodedBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}

export function encodedBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
