/** The text of --help: what the program is, usage, the kubelet's flags, and ours apart. */

import type { KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../../machines/config/defaults.ts';
import { gateHelp } from '../../machines/config/gates.ts';
import { flagValue, valueText } from './shown.ts';
import { FLAGS } from './table.ts';
import type { FlagSpec } from './types.ts';

const WIDTH = 120;

const LONG = `actorlet runs pods on this machine: a Kubernetes node agent that takes the kubelet's flags and its configuration
file. It reads static pods from files or from a URL (--pod-manifest-path, --manifest-url) and drives a container runtime over
CRI. Without --kubeconfig it stands alone. Flags win over drop-ins (--config-dir), those over the file (--config), that over
defaults. Words in a flag's name may be joined by "-" or "_"; a boolean flag takes its value only with "=".`;

export async function helpText(): Promise<string> {
  // Loaded for --help alone: a start has no use for it.
  const { default: yargs } = await import('yargs');
  const defaults = { flags: defaultKubeletFlags(), config: defaultKubeletConfiguration() };
  const parser = yargs([])
    .help(false)
    .version(false)
    .scriptName('actorlet')
    .detectLocale(false)
    .usage('Usage: actorlet [flags]')
    .parserConfiguration({ 'boolean-negation': false, 'camel-case-expansion': false, 'dot-notation': false })
    .exitProcess(false)
    .wrap(WIDTH);
  // Groups appear in the order of their first flag.
  const ordered = [...FLAGS].sort((a, b) => rank(a) - rank(b));
  for (const flag of ordered) {
    parser.option(flag.name, {
      ...(flag.short === undefined || flag.short === flag.name ? {} : { alias: flag.short }),
      group: groupOf(flag),
      describe: `${describe(flag)} (${typeText(flag)}, default ${defaultText(flag, defaults)})${deprecation(flag)}`,
    });
  }
  return `${LONG}\n\n${await parser.getHelp()}\n`;
}

function rank(flag: FlagSpec): number {
  if (flag.removed !== undefined) return 2;
  return flag.own ? 1 : 0;
}

function groupOf(flag: FlagSpec): string {
  if (flag.own) return 'Flags of actorlet itself:';
  return flag.removed === undefined ? 'Flags:' : 'Old flags, accepted without effect:';
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
