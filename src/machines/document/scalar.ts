/**
 * What a plain scalar of YAML means to Kubernetes: the rules of YAML 1.1 as its Go programs have them. `y`, `yes` and `on`
 * are booleans, `0644` and `0o644` are octal, `1_000` is a number; dates and sexagesimal numbers are text. Pure.
 */

import { fromBase64 } from '../data/base64.ts';

const WORDS: ReadonlyMap<string, boolean | null | number> = new Map<string, boolean | null | number>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((w): [string, boolean] => [w, true]),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((w): [string, boolean] => [w, false]),
  ...['', '~', 'null', 'Null', 'NULL'].map((w): [string, null] => [w, null]),
  ...['.nan', '.NaN', '.NAN'].map((w): [string, number] => [w, Number.NaN]),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((w): [string, number] => [w, Number.POSITIVE_INFINITY]),
  ...['-.inf', '-.Inf', '-.INF'].map((w): [string, number] => [w, Number.NEGATIVE_INFINITY]),
]);

const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;
/** Digits of an integer that can still have 64 bits, in binary. A longer one is not read as one. */
const DIGITS_MAX = 70;
const INT_MIN = -(2n ** 63n);
const UINT_MAX = 2n ** 64n - 1n;

export type Scalar = string | number | boolean | null;

function integer(text: string): number | null {
  const m = text.length > DIGITS_MAX ? null : INTEGER.exec(text);
  if (m === null) return null;
  const [, sign, hex, binary, octal, decimal = ''] = m;
  const digits = hex !== undefined ? `0x${hex}` : binary !== undefined ? `0b${binary}` : octal !== undefined ? `0o${octal}` : decimal;
  const value = sign === '-' ? -BigInt(digits) : BigInt(digits);
  // A positive sign is for signed integers only.
  return value < INT_MIN || value > (sign === '+' ? 2n ** 63n - 1n : UINT_MAX) ? null : Number(value);
}

function float(text: string): number | null {
  const value = FLOAT.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}

/** A scalar without quotes and without a tag. */
export function plainScalar(text: string): Scalar {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (text.startsWith('.')) return float(text) ?? text;
  if (!/^[-+0-9]/.test(text)) return text;
  const digits = text.replaceAll('_', '');
  return integer(digits) ?? float(digits) ?? text;
}

const PREFIX = 'tag:yaml.org,2002:';

/** A scalar with a tag, whatever its quotes. Undefined: the text is not of that tag. */
export function taggedScalar(tag: string, text: string): Scalar | undefined {
  if (!tag.startsWith(PREFIX)) return text;
  const value = plainScalar(text);
  switch (tag.slice(PREFIX.length)) {
    case 'str':
    case 'timestamp':
      return text;
    case 'bool':
      return typeof value === 'boolean' ? value : undefined;
    case 'int':
      return typeof value === 'number' && Number.isInteger(value) ? value : undefined;
    case 'float':
      return typeof value === 'number' ? value : undefined;
    case 'null':
      return null;
    case 'binary':
      return decodeBinary(text);
    default:
      return text;
  }
}

function decodeBinary(text: string): string | undefined {
  const bytes = fromBase64(text.replaceAll(/[\r\n]/g, ''));
  return bytes === null ? undefined : new TextDecoder().decode(bytes);
}

/** The name that a scalar is as a key: Kubernetes' objects have text as keys. Undefined: a key cannot be that. */
export function keyOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(value)) return value > 0 ? '.inf' : '-.inf';
  return String(value);
}
