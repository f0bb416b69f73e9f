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
  const errors = [...tokens.errors];
  const given = new Map<string, GivenFlag>();
  for (const [spec, texts] of collect(tokens.occurrences)) {
    try {
      given.set(spec.name, { spec, value: READERS[spec.type](texts, opts) });
    } catch (error) {
      errors.push(`--${spec.name}: ${messageOf(error)}`);
    }
  }
  // A word after an unknown flag may have been its value, so positionals are reported only when all flags were known.
  if (errors.length === 0) errors.push(...tokens.positional.map(positionalError));
  const notices = [...given.values()].flatMap(({ spec }) =>
    spec.deprecated === undefined ? [] : [`Flag --${spec.name} is deprecated: ${spec.deprecated}`],
  );
  return { given, errors, notices };
}

function positionalError(arg: string): string {
  const hint = /^(true|false)$/i.test(arg) ? ' (a boolean takes its value with "=": --flag=false)' : '';
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
