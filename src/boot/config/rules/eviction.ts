/** Rules about eviction thresholds. */

import type { KubeletConfiguration } from '../../../machines/config/config.ts';
import { SIGNALS } from '../../../machines/config/evictionSignals.ts';
import { parseQuantity } from '../../../machines/kube/quantity.ts';
import { parseGoDuration } from '../../../machines/text/go/goDuration.ts';
import { didYouMean } from '../../../machines/text/nearest.ts';
import type { Rule, RuleInput } from './rule.ts';

const NAMES: readonly string[] = SIGNALS;

type MapField = 'evictionHard' | 'evictionSoft' | 'evictionMinimumReclaim';

const hard: Rule = (input) => amounts(input, 'evictionHard', false);
const soft: Rule = (input) => amounts(input, 'evictionSoft', false);
const reclaim: Rule = (input) => amounts(input, 'evictionMinimumReclaim', true);

function amounts({ config, bad }: RuleInput, field: MapField, zeroToo: boolean): void {
  for (const [signal, text] of Object.entries<string>(config[field] satisfies KubeletConfiguration[MapField])) {
    const path = `${field}.${signal}`;
    if (!NAMES.includes(signal)) bad(path, `is not an eviction signal${didYouMean(signal, NAMES)}`);
    else if (text.endsWith('%')) {
      const percent = Number(text.slice(0, -1));
      if (!/^\d+(\.\d+)?%$/.test(text) || percent > 100) bad(path, `${JSON.stringify(text)} must be in 0%..100%`);
    } else {
      const quantity = parseQuantity(text);
      if (quantity === undefined) bad(path, `${JSON.stringify(text)} is neither a quantity nor a percentage`);
      else if (quantity.mantissa < 0n || (quantity.mantissa === 0n && !zeroToo))
        bad(path, `${text} must be ${zeroToo ? 'at least' : 'above'} 0`);
    }
  }
}

const grace: Rule = ({ config, bad }) => {
  for (const [signal, text] of Object.entries(config.evictionSoftGracePeriod)) {
    const ms = parseGoDuration(text);
    if (!NAMES.includes(signal)) bad(`evictionSoftGracePeriod.${signal}`, `is not an eviction signal${didYouMean(signal, NAMES)}`);
    if (ms === undefined || ms < 0) bad(`evictionSoftGracePeriod.${signal}`, `${JSON.stringify(text)} must be a duration of at least 0s`);
  }
  for (const signal of Object.keys(config.evictionSoft)) {
    if (config.evictionSoftGracePeriod[signal] === undefined)
      bad(`evictionSoft.${signal}`, 'needs an entry in evictionSoftGracePeriod (--eviction-soft-grace-period)');
  }
};

export const EVICTION_RULES: readonly Rule[] = [hard, soft, reclaim, grace];
