/** Checks of the complete configuration and flags (boot-and-node 2.6, 3): every violation, each naming field and flag. */
import type { FeatureGates, KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import type { Problem } from '../errors.ts';
import type { GivenFlag } from '../flags/parse.ts';
import { flagHint } from '../flags/table.ts';
import { flagProblems } from './rules/flags.ts';
import { API_RULES, CGROUP_RULES, EVICTION_RULES, IMAGE_RULES, MISC_RULES, NUMBER_RULES } from './rules/index.ts';

export interface ValidationInput {
  flags: KubeletFlags;
  config: KubeletConfiguration;
  gates: FeatureGates;
  /** `file:line` by path. */
  origins: ReadonlyMap<string, string>;
  /** Flags present on the command line. */
  given: ReadonlyMap<string, GivenFlag>;
}

/** Empty = valid. */
export function validate(input: ValidationInput): Problem[] {
  const problems: Problem[] = [];
  const bad = (path: string, what: string): void => {
    const origin = input.origins.get(path) ?? input.origins.get(path.replace(/[.[].*$/, ''));
    problems.push({ where: `${path}${flagHint(path)}`, what: origin === undefined ? what : `${what} [${origin}]` });
  };
  for (const rule of [...NUMBER_RULES, ...API_RULES, ...CGROUP_RULES, ...EVICTION_RULES, ...IMAGE_RULES, ...MISC_RULES]) {
    rule({ config: input.config, gates: input.gates, bad });
  }
  return [...problems, ...flagProblems(input.flags, input.given)];
}
