/** The command line, read: values by flag, what to print on stderr, and every error at once. */
import { messageOf } from '../../machines/text/errors.ts';
import { FLAGS } from './table.ts';
import { tokenize } from './tokenize.ts';
import type { FlagSpec } from './types.ts';
import { type FlagValue, READERS } from './values.ts';

export interface GivenFlag {
  spec: FlagSpec;
  value: FlagValue;
}
export interface ParsedFlags {
  /** Flags present on the command line, by name; only these win over the file. */
  given: ReadonlyMap<string, GivenFlag>;
  /** Positional arguments come after flag errors, one entry each; not empty = exit 1 before help or version. */
  errors: readonly string[];
  /** One line per deprecated flag that was used. */
  notices: readonly string[];
}

/** Never throws. */
export function parseFlags(argv: readonly string[], opts: { cwd: string }): ParsedFlags {
  const tokens = tokenize(argv);
  const { given, wrong } = readValues(tokens.occurrences, opts);
  const errors = [...tokens.errors, ...wrong.map(({ flag, why }) => `${flag}: ${why}`)];
  // A word after an unknown flag may have been its value, so positionals are reported only when all flags were known.
  if (errors.length === 0) errors.push(...tokens.positional.map(positionalError));
  const notices = [...given.values()].flatMap(({ spec }) =>
    spec.deprecated === undefined ? [] : [`Flag --${spec.name} is deprecated: ${spec.deprecated}`],
  );
  return { given, errors, notices };
}

interface UnreadFlag {
  flag: string;
  why: string;
}
export interface ReadFlags {
  given: ReadonlyMap<string, GivenFlag>;
  /** Flags without a value here. Values of unknown flags may be secret: they are not in here. */
  unread: readonly UnreadFlag[];
}

/** The command line of another program, perhaps of another release: what cannot be read is named, and nothing is refused. */
export function readFlags(argv: readonly string[], opts: { cwd: string }): ReadFlags {
  const tokens = tokenize(argv);
  const { given, wrong } = readValues(tokens.occurrences, opts);
  const unknown = [...new Set(tokens.unknown)].map((flag) => ({ flag, why: 'it is not a flag of this release' }));
  return { given, unread: [...unknown, ...wrong] };
}

function readValues(
  occurrences: readonly { spec: FlagSpec; value: string }[],
  opts: { cwd: string },
): { given: Map<string, GivenFlag>; wrong: UnreadFlag[] } {
  const given = new Map<string, GivenFlag>();
  const wrong: UnreadFlag[] = [];
  for (const [spec, texts] of collect(occurrences)) {
    try {
      given.set(spec.name, { spec, value: READERS[spec.type](texts, opts) });
    } catch (error) {
      wrong.push({ flag: `--${spec.name}`, why: messageOf(error) });
    }
  }
  return { given, wrong };
}

function positionalError(arg: string): string {
  const meant = FLAGS.some(({ name }) => name === arg) ? ` (did you mean --${arg}?)` : '';
  const hint = /^(true|false)$/i.test(arg) ? ' (a boolean takes its value with "=": --flag=false)' : meant;
  return `unknown command ${JSON.stringify(arg)}: positional arguments are not accepted${hint}`;
}

/** Values by flag, in the order of the table; of each flag in the order of the command line. */
function collect(occurrences: readonly { spec: FlagSpec; value: string }[]): [FlagSpec, string[]][] {
  const values = new Map<string, string[]>();
  for (const { spec, value } of occurrences) {
    const known = values.get(spec.name);
    if (known === undefined) values.set(spec.name, [value]);
    else known.push(value);
  }
  return FLAGS.flatMap((spec) => {
    const texts = values.get(spec.name);
    return texts === undefined ? [] : [[spec, texts] satisfies [FlagSpec, string[]]];
  });
}
