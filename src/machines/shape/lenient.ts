/** Parts of data from outside, read leniently: a part that is missing, or of another type, is as empty. */
import { isRecord } from './conform.ts';

/** What a text in JSON says; undefined: it is none. */
export function jsonOf(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof text === 'string' ? text : new TextDecoder().decode(text));
  } catch {
    return undefined;
  }
}
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
/** Elements of a list that are texts. */
export function textsOf(value: unknown): string[] {
  return listOf(value).filter((v) => typeof v === 'string');
}
export function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}
/** The record in a field of a record. */
export function partOf(value: unknown, key: string): Record<string, unknown> {
  return recordOf(recordOf(value)[key]);
}
export function textFieldsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(recordOf(value)).filter((e): e is [string, string] => typeof e[1] === 'string'));
}
/** A field of a record, as Go reads it: the case of its name does not matter. */
export function fieldOf(value: unknown, name: string): unknown {
  if (!isRecord(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : Object.entries(value).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
}
