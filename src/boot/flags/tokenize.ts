/**
 * Splits an argument vector the way pflag does (boot-and-node 2.1): which argument is a flag, which is its value and which stands alone.
 * The guesses of yargs (a boolean takes the next word, `--no-x`, quotes stripped) would differ, and loading it takes 40 ms of each start.
 */
import { didYouMean } from '../../machines/text/nearest.ts';
import { FLAGS, flagByName, flagByShort } from './table.ts';
import type { FlagSpec } from './types.ts';

export interface Tokens {
  occurrences: { spec: FlagSpec; value: string }[];
  positional: string[];
  /** Flags that the table does not have, without their values. */
  unknown: string[];
  errors: string[];
}

/** Types whose bare form `--x` has a meaning; they never take the next argument. */
function isBare(spec: FlagSpec): boolean {
  return spec.type === 'bool' || spec.type === 'version' || spec.type === 'loopback';
}

export function tokenize(argv: readonly string[]): Tokens {
  const out: Tokens = { occurrences: [], positional: [], unknown: [], errors: [] };
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] ?? '';
    if (arg === '--') {
      out.positional.push(...argv.slice(i + 1));
      break;
    }
    if (arg === '-' || !arg.startsWith('-')) out.positional.push(arg);
    else i += arg.startsWith('--') ? long(arg, argv[i + 1], out) : shorts(arg, argv[i + 1], out);
  }
  return out;
}

/** One `--name`, `--name=value` or `--name value`; answers how many further arguments were used. */
function long(arg: string, next: string | undefined, out: Tokens): 0 | 1 {
  const eq = arg.indexOf('=');
  const name = eq < 0 ? arg.slice(2) : arg.slice(2, eq);
  if (name === '' || name.startsWith('-')) {
    out.errors.push(`${arg} is not the way a flag is written`);
    return 0;
  }
  const spec = flagByName(name);
  if (spec === undefined) {
    const names = FLAGS.map((f) => f.name);
    out.unknown.push(`--${name}`);
    out.errors.push(`unknown flag --${name}${didYouMean(name.replaceAll('_', '-'), names, '--')}`);
    // Its value, if the next word is one, is not to be reported a second time.
    return eq < 0 && next !== undefined && !next.startsWith('-') ? 1 : 0;
  }
  return take({ spec, shown: `--${spec.name}`, inline: eq < 0 ? undefined : arg.slice(eq + 1) }, next, out);
}

/** `-v4`, `-v=4`, `-v 4`, `-h`, `-hv4`. */
function shorts(arg: string, next: string | undefined, out: Tokens): 0 | 1 {
  for (let rest = arg.slice(1); rest !== ''; rest = rest.slice(1)) {
    const letter = rest.slice(0, 1);
    const spec = flagByShort(letter);
    if (spec === undefined) {
      const meant =
        arg.length > 2 && flagByName(arg.slice(1).split('=')[0] ?? '') !== undefined ? ' (long flags begin with two dashes)' : '';
      out.unknown.push(`-${letter}`);
      out.errors.push(`unknown shorthand flag -${letter} in ${arg}${meant}`);
      return 0;
    }
    const after = rest.slice(1);
    if (after.startsWith('=')) return take({ spec, shown: `-${letter}`, inline: after.slice(1) }, next, out);
    if (!isBare(spec)) return take({ spec, shown: `-${letter}`, inline: after === '' ? undefined : after }, next, out);
    out.occurrences.push({ spec, value: 'true' });
  }
  return 0;
}

function take(flag: { spec: FlagSpec; shown: string; inline: string | undefined }, next: string | undefined, out: Tokens): 0 | 1 {
  const { spec, shown, inline } = flag;
  if (inline !== undefined) out.occurrences.push({ spec, value: inline });
  else if (isBare(spec)) out.occurrences.push({ spec, value: 'true' });
  else if (next === undefined) out.errors.push(`flag ${shown} needs a value`);
  else {
    out.occurrences.push({ spec, value: next });
    return 1;
  }
  return 0;
}
