/** Go duration text (`1m30s`, `300ms`, `2h45m`) to and from milliseconds. Pure. */
import { own } from '../../data/own.ts';

const NS_PER_UNIT: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  '\u00b5s': 1e3,
  '\u03bcs': 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};
/** Go keeps a duration in a signed 64-bit count of nanoseconds. */
const NS_MAX = 2 ** 63;

/** Milliseconds (with a fraction where finer), or undefined when the text is not a Go duration. */
export function parseGoDuration(text: string): number | undefined {
  const sign = text.startsWith('-') ? -1 : 1;
  let rest = /^[+-]/.test(text) ? text.slice(1) : text;
  if (rest === '0') return 0;
  if (rest === '') return undefined;
  let ns = 0;
  while (rest !== '') {
    const m = /^(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/.exec(rest);
    const factor = m?.[2] === undefined ? undefined : own(NS_PER_UNIT, m[2]);
    if (m?.[1] === undefined || factor === undefined) return undefined;
    ns += Number(m[1]) * factor;
    rest = rest.slice(m[0].length);
  }
  if (ns >= NS_MAX) return undefined;
  return ns === 0 ? 0 : (sign * Math.round(ns)) / 1e6;
}

/** The text Go prints for this many milliseconds: `1m0s`, `100ms`, `1.5s`, `0s`. */
export function formatGoDuration(ms: number): string {
  const ns = BigInt(Math.round(ms * 1e6));
  if (ns === 0n) return '0s';
  const abs = ns < 0n ? -ns : ns;
  return (ns < 0n ? '-' : '') + (abs < 1_000_000_000n ? belowSecond(abs) : fromSecond(abs));
}

function belowSecond(ns: bigint): string {
  if (ns < 1_000n) return `${ns}ns`;
  return ns < 1_000_000n ? `${decimal(ns, 3)}\u00b5s` : `${decimal(ns, 6)}ms`;
}

function fromSecond(ns: bigint): string {
  const minutes = ns / 60_000_000_000n;
  const seconds = `${decimal(ns % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** `value / 10^digits` without trailing zeros. */
function decimal(value: bigint, digits: number): string {
  const scale = 10n ** BigInt(digits);
  const fraction = (value % scale).toString().padStart(digits, '0').replace(/0+$/, '');
  return fraction === '' ? `${value / scale}` : `${value / scale}.${fraction}`;
}
