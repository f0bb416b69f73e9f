/**
 * Kubernetes quantities (`500m`, `1Gi`, `1.5`, `2e3`): exact parsing, rounding up, and the canonical text that the
 * reference writes when it encodes a pod.
 */

import { own } from '../data/own.ts';
import type { Quantity } from './types.ts';

/** Exactly `mantissa * 2^binary * 10^decimal`, with the family of suffix it was written in. */
export interface ParsedQuantity {
  mantissa: bigint;
  decimal: number;
  binary: number;
  format: 'decimalSI' | 'binarySI' | 'decimalExponent';
}

const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const SUFFIX_OF = new Map(Object.entries(DECIMAL).map(([suffix, exponent]) => [exponent, suffix]));
/** Larger exponents name no real resource and would only make huge integers. */
const EXPONENT_MAX = 64;
/** Longest quantity of a manifest. The largest amount of Kubernetes has 19 digits before and 9 after the point. */
export const QUANTITY_CHARS_MAX = 64;
/** Longest text that is read as one: sums of many have more digits than their parts. */
const TEXT_CHARS_MAX = 1_024;

/** Undefined when the text is not a quantity. Numbers are read through their decimal text. */
export function parseQuantity(value: Quantity | undefined | null): ParsedQuantity | undefined {
  if (value === undefined || value === null) return undefined;
  const text = String(value);
  if (text.length > TEXT_CHARS_MAX) return undefined;
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text.trim());
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent, suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const mantissa = BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n);
  const shift = -fraction.length;
  if (exponent !== undefined) {
    const power = Number(exponent.slice(1));
    if (Math.abs(power) > EXPONENT_MAX) return undefined;
    return { mantissa, decimal: shift + power, binary: 0, format: 'decimalExponent' };
  }
  const binary = own(BINARY, suffix);
  if (binary !== undefined) return { mantissa, decimal: shift, binary, format: 'binarySI' };
  return { mantissa, decimal: shift + (own(DECIMAL, suffix) ?? 0), binary: 0, format: 'decimalSI' };
}

/** Division of integers rounding towards plus infinity. */
export function ceilDiv(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  const exact = quotient * denominator === numerator;
  return !exact && numerator > 0n === denominator > 0n ? quotient + 1n : quotient;
}

/** The quantity in units of `10^scale`, rounded up; undefined when unparsable. */
export function scaledCeil(value: Quantity | undefined | null, scale: number): bigint | undefined {
  const parsed = parseQuantity(value);
  if (parsed === undefined) return undefined;
  const power = parsed.decimal - scale;
  const base = parsed.mantissa * (1n << BigInt(parsed.binary));
  return power >= 0 ? base * 10n ** BigInt(power) : ceilDiv(base, 10n ** BigInt(-power));
}

/** Whole units (bytes, for memory), rounded up; 0 when absent or unparsable. */
export function quantityToInteger(value: Quantity | undefined | null): number {
  return Number(scaledCeil(value, 0) ?? 0n);
}

/** Thousandths (milliCPU), rounded up; 0 when absent or unparsable. */
export function quantityToMilli(value: Quantity | undefined | null): number {
  return Number(scaledCeil(value, -3) ?? 0n);
}

/** Negative, zero or positive as a is less than, equal to or greater than b; exact to a billionth. */
export function compareQuantity(a: Quantity | undefined, b: Quantity | undefined): number {
  const left = scaledCeil(a, -9) ?? 0n;
  const right = scaledCeil(b, -9) ?? 0n;
  return left < right ? -1 : left > right ? 1 : 0;
}

export function isZeroQuantity(value: Quantity | undefined): boolean {
  return (parseQuantity(value)?.mantissa ?? 0n) === 0n;
}

/** Sum in whole billionths, rendered in `format`'s canonical text. */
export function addQuantities(values: readonly Quantity[]): Quantity {
  let sum = 0n;
  let format: ParsedQuantity['format'] = 'decimalSI';
  for (const [index, value] of values.entries()) {
    sum += scaledCeil(value, -9) ?? 0n;
    if (index === 0) format = parseQuantity(value)?.format ?? format;
  }
  return render(sum, -9, format);
}

/**
 * The text the reference encodes: no factor of ten or 1024 left in the number (`1000m` -> `1`, `0.5` -> `500m`,
 * `1024Ki` -> `1Mi`), at most nine decimal places, rounded up. An unparsable value is returned as written.
 */
export function canonicalQuantity(value: Quantity): string {
  const parsed = parseQuantity(value);
  if (parsed === undefined) return String(value);
  const nano = scaledCeil(value, -9) ?? 0n;
  return render(nano, -9, parsed.format);
}

/** Bytes as the reference writes those of a node: in the largest of Ki, Mi, ... that leaves a whole number. */
export function bytesQuantity(bytes: number | bigint): string {
  return render(BigInt(bytes), 0, 'binarySI');
}

function render(amount: bigint, scale: number, format: ParsedQuantity['format']): string {
  if (amount === 0n) return '0';
  const unit = 10n ** BigInt(-scale);
  if (format === 'binarySI' && amount % unit === 0n) {
    let whole = amount / unit;
    if (whole >= 1024n || whole <= -1024n) {
      let power = 0;
      while (power < 60 && whole % 1024n === 0n) {
        whole /= 1024n;
        power += 10;
      }
      const suffix = Object.keys(BINARY).find((name) => BINARY[name] === power) ?? '';
      return `${whole}${suffix}`;
    }
  }
  let mantissa = amount;
  let exponent = scale;
  while (mantissa % 10n === 0n) {
    mantissa /= 10n;
    exponent += 1;
  }
  while (exponent % 3 !== 0) {
    mantissa *= 10n;
    exponent -= 1;
  }
  while (exponent > 18) {
    mantissa *= 1000n;
    exponent -= 3;
  }
  if (format === 'decimalExponent') return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${SUFFIX_OF.get(exponent) ?? ''}`;
}
