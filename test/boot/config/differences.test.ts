/** docs/differences-flags-and-gates.md is written from the tables: what has no effect here, and why. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { getPath } from '../../../src/boot/config/paths.ts';
import { ABSENT_GATES, ALWAYS_GATES, UNIMPLEMENTED } from '../../../src/boot/unimplemented.ts';
import { TARGET_MAJOR, TARGET_MINOR } from '../../../src/boot/version.ts';
import { defaultKubeletConfiguration } from '../../../src/machines/config/defaults.ts';
import { KUBELET_GATES } from '../../../src/machines/config/gateTable.ts';
import { DIFFERENT_DEFAULTS } from './honoured.ts';

const PAGE = join(import.meta.dirname, '../../../docs/differences-flags-and-gates.md');

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
}

const byName = (a: readonly string[], b: readonly string[]): number => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1);

function gateState(name: string): string {
  const spec = KUBELET_GATES[name];
  return `${spec?.stage ?? ''}, ${spec?.default === true ? 'on' : 'off'}${spec?.locked === true ? ', locked' : ''}`;
}

function page(): string {
  const defaults = defaultKubeletConfiguration();
  const settings = UNIMPLEMENTED.map(({ path, why, groups, server }) => {
    const when = groups ? 'only with `cgroupsPerQOS: false`' : server ? 'while the server runs' : 'always';
    return [`\`${path}\``, when, why];
  });
  return [
    '# Settings and gates that differ from the kubelet',
    `Compared with the kubelet of Kubernetes ${TARGET_MAJOR}.${TARGET_MINOR}. A test writes this page from the tables in [unimplemented.ts](../src/boot/unimplemented.ts) and [gateTable.ts](../src/machines/config/gateTable.ts). To update it, run \`npm run golden -- test/boot/config/differences.test.ts\`.`,
    '## Other defaults',
    table(
      ['field', 'kubelet', 'actorlet', 'reason'],
      DIFFERENT_DEFAULTS.map((d) => [`\`${d.path}\``, `\`${d.reference}\``, `\`${JSON.stringify(getPath(defaults, d.path))}\``, d.why]),
    ),
    '## Settings without effect',
    'They are read and checked. A value other than the default is one line in the log at the start. A name with `--` is a command-line flag.',
    table(['setting', 'without effect', 'reason'], settings.sort(byName)),
    '## Gates of features that are not there',
    table(
      ['gate', 'kubelet', 'here'],
      Object.entries(ABSENT_GATES)
        .map(([name, why]) => [`\`${name}\``, gateState(name), why])
        .sort(byName),
    ),
    '## Gates that turn nothing off',
    'The feature is there with and without its gate.',
    table(['gate', 'kubelet'], ALWAYS_GATES.map((name) => [`\`${name}\``, gateState(name)]).sort(byName)),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

it('is what the tables say', () => {
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(PAGE, page());
  expect(readFileSync(PAGE, 'utf8')).toBe(page());
});
