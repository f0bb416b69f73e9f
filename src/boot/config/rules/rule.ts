/** What a validation rule is given. */
import type { FeatureGates, KubeletConfiguration } from '../../../machines/config.ts';

export interface RuleInput {
  config: KubeletConfiguration;
  gates: FeatureGates;
  /** Records a violation at a configuration path. */
  bad(path: string, what: string): void;
}
export type Rule = (input: RuleInput) => void;

/** The value must be one of a few. */
export function oneOf(path: keyof KubeletConfiguration, allowed: readonly string[]): Rule {
  return ({ config, bad }) => {
    const value = config[path];
    if (typeof value === 'string' && !allowed.includes(value))
      bad(path, `${JSON.stringify(value)} is not one of ${allowed.map(quoteEmpty).join(', ')}`);
  };
}

function quoteEmpty(text: string): string {
  return text === '' ? '""' : text;
}
