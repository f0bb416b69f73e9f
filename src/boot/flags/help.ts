/** The text of --help: what the program is, usage, the kubelet's flags, and ours apart. */

import type { KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../../machines/config/defaults.ts';
import { gateHelp } from '../../machines/config/gates.ts';
import { flagValue, valueText } from './shown.ts';
import { FLAGS } from './table.ts';
import type { FlagSpec } from './types.ts';

const WIDTH = 120;

/** What the program is. */
export const DESCRIPTION = `actorlet runs pods on this machine: a Kubernetes node agent that takes the kubelet's flags and its configuration
file. It reads static pods from files or from a URL (--pod-manifest-path, --manifest-url) and drives a container runtime over
CRI. Without --kubeconfig it stands alone. Flags win over drop-ins (--config-dir), those over the file (--config), that over
defaults. Words in a flag's name may be joined by "-" or "_"; a boolean flag takes its value only with "=".`;

export async function helpText(): Promise<string> {
  // Loaded for --help alone: a start has no use for it.
  const { default: yargs } = await import('yargs');
  const parser = yargs([])
    .help(false)
    .version(false)
    .scriptName('actorlet')
    .detectLocale(false)
    .usage('Usage: actorlet [flags]')
    .parserConfiguration({ 'boolean-negation': false, 'camel-case-expansion': false, 'dot-notation': false })
    .exitProcess(false)
    .wrap(WIDTH);
  for (const { title, flags } of flagGroups()) {
    for (const { names, text } of flags) {
      const [name = '', ...alias] = names.toReversed();
      parser.option(name, { ...(alias.length === 0 ? {} : { alias }), group: `${title}:`, describe: text });
    }
  }
  return `${DESCRIPTION}\n\n${await parser.getHelp()}\n`;
}

interface FlagGroup {
  title: string;
  /** Names without hyphens, a letter first. */
  flags: { names: string[]; text: string }[];
}

/** Every flag with its type, default and deprecation, as `--help` and the man page show it. */
export function flagGroups(): FlagGroup[] {
  const defaults = { flags: defaultKubeletFlags(), config: defaultKubeletConfiguration() };
  const groups = new Map<string, FlagGroup>();
  for (const flag of [...FLAGS].sort((a, b) => rank(a) - rank(b))) {
    const title = groupOf(flag);
    const group = groups.get(title) ?? { title, flags: [] };
    groups.set(title, group);
    group.flags.push({
      names: flag.short === undefined || flag.short === flag.name ? [flag.name] : [flag.short, flag.name],
      text: `${describe(flag)} (${typeText(flag)}, default ${defaultText(flag, defaults)})${deprecation(flag)}`,
    });
  }
  return [...groups.values()];
}

function rank(flag: FlagSpec): number {
  if (flag.removed !== undefined) return 2;
  return flag.own ? 1 : 0;
}

function groupOf(flag: FlagSpec): string {
  if (flag.own) return 'Flags of actorlet itself';
  return flag.removed === undefined ? 'Flags' : 'Old flags, accepted without effect';
}

function describe(flag: FlagSpec): string {
  if (flag.removed !== undefined) return flag.deprecated?.replace('it has no effect: ', '') ?? '';
  return flag.name === 'feature-gates' ? `${flag.help} Known gates:\n${gateHelp().join('\n')}\n` : flag.help;
}

function deprecation(flag: FlagSpec): string {
  return flag.deprecated === undefined || flag.removed !== undefined ? '' : ` Deprecated: ${flag.deprecated}.`;
}

function typeText(flag: FlagSpec): string {
  const names: Partial<Record<FlagSpec['type'], string>> = {
    nodeIPs: 'ip[,ip]',
    path: 'path',
    folder: 'path',
    version: 'true|false|raw',
    loopback: 'host:port',
  };
  return names[flag.type] ?? flag.type;
}

function defaultText(flag: FlagSpec, from: { flags: KubeletFlags; config: KubeletConfiguration }): string {
  if (flag.shownDefault !== undefined) return flag.shownDefault === '' ? '""' : flag.shownDefault;
  return valueText(flag, flagValue(flag, from) ?? '', { text: '""', list: '[]', map: '{}' });
}
