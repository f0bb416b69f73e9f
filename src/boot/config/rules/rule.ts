/** What a validation rule is given. */

import type { FeatureGates, KubeletConfiguration } from '../../../machines/config/config.ts';
import { KUBELET_CONFIGURATION } from '../../../machines/config/schema.ts';
import type { Fields } from '../../../machines/shape/shape.ts';
import { getPath } from '../paths.ts';

export interface RuleInput {
  config: KubeletConfiguration;
  gates: FeatureGates;
  /** Records a violation at a configuration path. */
  bad(path: string, what: string): void;
}
export type Rule = (input: RuleInput) => void;

/** The value must be one of the words that the table has for it. */
export function oneOf(path: string): Rule {
  const allowed = wordsOf(path);
  return ({ config, bad }) => {
    const value = getPath(config, path);
    if (typeof value === 'string' && !allowed.includes(value))
      bad(path, `${JSON.stringify(value)} is not one of ${allowed.map((text) => text || '""').join(', ')}`);
  };
}

function wordsOf(path: string): readonly string[] {
  let fields: Fields = KUBELET_CONFIGURATION;
  for (const key of path.split('.')) {
    const field = fields[key];
    if (field?.t === 'string' && field.words !== undefined) return field.words;
    if (field?.t !== 'object') break;
    fields = field.fields;
  }
  throw new Error(`the table has no words for ${path}`);
}
