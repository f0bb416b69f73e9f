/** All flags, in the order of --help, and how to look one up. */
import { CONFIG_FLAGS } from './configFlags.ts';
import { NODE_FLAGS } from './nodeFlags.ts';
import { OLD_FLAGS } from './oldFlags.ts';
import type { FlagSpec } from './types.ts';

const GLOBAL_FLAGS: readonly FlagSpec[] = [
  { name: 'help', short: 'h', type: 'bool', help: 'Print this text and end.', shownDefault: 'false' },
  {
    name: 'check',
    type: 'bool',
    help: 'Say what would differ from the kubelet or fail on this host, and end: nothing is started or changed. With -o json as JSON; with --kubeadm[=PREFIX] of a node that kubeadm set up.',
    shownDefault: 'false',
  },
  { name: 'version', type: 'version', help: 'Print the version and end; --version=raw prints its structure.', shownDefault: 'false' },
];

const byName = (a: FlagSpec, b: FlagSpec) => (a.name < b.name ? -1 : 1);

export const FLAGS: readonly FlagSpec[] = [...GLOBAL_FLAGS, ...NODE_FLAGS, ...CONFIG_FLAGS, ...OLD_FLAGS].sort(byName);

/** `_` and `-` are the same letter in a flag's name; no other spelling is. */
function normalizeName(name: string): string {
  return name.replaceAll('_', '-');
}

const BY_NAME: ReadonlyMap<string, FlagSpec> = new Map(FLAGS.map((f) => [f.name, f]));
const BY_SHORT: ReadonlyMap<string, FlagSpec> = new Map(FLAGS.flatMap((f) => (f.short === undefined ? [] : [[f.short, f] as const])));
const BY_CFG: ReadonlyMap<string, FlagSpec> = new Map(
  FLAGS.flatMap((f) => (f.cfg === undefined || f.name.startsWith('experimental-') ? [] : [[f.cfg, f] as const])),
);

export function flagByName(name: string): FlagSpec | undefined {
  return BY_NAME.get(normalizeName(name));
}
export function flagByShort(letter: string): FlagSpec | undefined {
  return BY_SHORT.get(letter);
}
/** ` (--max-pods)` for a configuration path that has a flag, else ''. */
export function flagHint(cfgPath: string): string {
  const flag = BY_CFG.get(cfgPath);
  return flag === undefined ? '' : ` (--${flag.name})`;
}
