/** What every flag comes to, the configuration file taken in, as text for people. Nothing secret. */

import type { KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import { formatGoDuration } from '../../machines/text/go/goDuration.ts';
import { MASKED, shownUrl } from '../../machines/text/shownUrl.ts';
import { getPath } from '../config/paths.ts';
import type { GivenFlag } from './parse.ts';
import { FLAGS } from './table.ts';
import type { FlagSpec } from './types.ts';

type Values = { flags: Readonly<KubeletFlags>; config: Readonly<KubeletConfiguration> };

/** Their values may be tokens. */
const SECRET = ['manifest-url-header', 'storage-driver-password'];

/** Undefined: the flag stands for no value of its own. */
export function flagValue(flag: FlagSpec, { flags, config }: Values): unknown {
  return flag.cfg === undefined ? (flag.flag === undefined ? undefined : flags[flag.flag]) : getPath(config, flag.cfg);
}

/** `empty`: what stands for an empty text, list and mapping. */
export function valueText(flag: FlagSpec, value: unknown, empty: { text: string; list: string; map: string }): string {
  if (typeof value === 'number' && flag.type === 'duration') return formatGoDuration(value);
  if (typeof value === 'string') return value === '' ? empty.text : value;
  if (Array.isArray(value)) return value.length === 0 ? empty.list : value.map(itemText).join(',');
  if (typeof value === 'object' && value !== null) {
    const pairs = Object.entries(value).map(([k, v]: [string, unknown]) => `${k}${flag.type === 'langleMap' ? '<' : '='}${itemText(v)}`);
    return pairs.length === 0 ? empty.map : pairs.join(',');
  }
  return String(value);
}

function itemText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

/** The flags of a command line, by name, without dashes. */
export function shownGiven(given: ReadonlyMap<string, GivenFlag>): Record<string, string> {
  return Object.fromEntries([...given.values()].map(({ spec, value }) => [spec.name, shownText(spec, value)]));
}

/** By name, without dashes. Old flags without effect are left out. */
export function shownFlags(values: Values): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const flag of FLAGS) {
    const value = flag.removed === undefined ? flagValue(flag, values) : undefined;
    if (value !== undefined) shown[flag.name] = shownText(flag, value);
  }
  return shown;
}

function shownText(flag: FlagSpec, value: unknown): string {
  const text = valueText(flag, value ?? '', { text: '', list: '', map: '' });
  return SECRET.includes(flag.name) && text !== '' ? MASKED : shownUrl(text);
}
