/** The command line, read: values by flag, what to print on stderr, and every error at once. */
import yargs from 'yargs';
import { messageOf } from '../errors.ts';
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

/**
 * Values by flag, in order. The arguments handed to yargs are already whole (`--name=value`); the second `=` keeps
 * yargs from taking quotes off the value, and is taken off again here.
 */
function collect(occurrences: readonly { spec: FlagSpec; value: string }[]): [FlagSpec, string[]][] {
  const args = occurrences.map(({ spec, value }) => `--${spec.name}==${value}`);
  const parsed: Record<string, unknown> = yargs(args)
    .help(false)
    .version(false)
    .detectLocale(false)
    .parserConfiguration({
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'duplicate-arguments-array': true,
      'unknown-options-as-args': false,
    })
    .options(Object.fromEntries(FLAGS.map((f) => [f.name, { type: 'string' as const }])))
    .exitProcess(false)
    .parseSync();
  return FLAGS.flatMap((spec) => {
    const raw = parsed[spec.name];
    if (raw === undefined) return [];
    return [[spec, (Array.isArray(raw) ? raw : [raw]).map((v: unknown) => String(v).slice(1))] satisfies [FlagSpec, string[]]];
  });
}
