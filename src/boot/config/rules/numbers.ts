/** Fields that must lie in a range. */

import type { KubeletConfiguration } from '../../../machines/config/config.ts';
import { KUBELET_CONFIGURATION } from '../../../machines/config/schema.ts';
import { formatGoDuration } from '../../../machines/text/go/goDuration.ts';
import { getPath } from '../paths.ts';
import type { Rule } from './rule.ts';

type NumberField = { [K in keyof KubeletConfiguration]: KubeletConfiguration[K] extends number ? K : never }[keyof KubeletConfiguration];

const INT32_MAX = 2 ** 31 - 1;
/** Fields that the table gives a range. */
const RANGES = Object.entries(KUBELET_CONFIGURATION).flatMap(([name, { within }]) => (within === undefined ? [] : [{ name, within }]));

/** Least durations, milliseconds; zero is below them unless it is listed as allowed. */
const DURATIONS: readonly (readonly [field: NumberField, minMs: number, zeroToo: boolean])[] = [
  ['syncFrequency', 1, false],
  ['fileCheckFrequency', 1, false],
  ['httpCheckFrequency', 1, false],
  ['runtimeRequestTimeout', 1, false],
  ['containerLogMonitorInterval', 3_000, false],
  ['shutdownGracePeriod', 1_000, true],
  ['shutdownGracePeriodCriticalPods', 1_000, true],
];

const ranges: Rule = ({ config, bad }) => {
  for (const {
    name,
    within: [min, max],
  } of RANGES) {
    const value = getPath(config, name);
    if (typeof value !== 'number' || (value >= min && value <= max)) continue;
    const limit = max === INT32_MAX || max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `in ${min}..${max}`;
    bad(name, `${value} must be ${limit}`);
  }
};

const durations: Rule = ({ config, bad }) => {
  for (const [field, minMs, zeroToo] of DURATIONS) {
    const value = config[field];
    if (value >= minMs || (zeroToo && value === 0)) continue;
    bad(field, `${formatGoDuration(value)} must be ${zeroToo ? '0s or ' : ''}at least ${formatGoDuration(minMs)}`);
  }
};

const fractions: Rule = ({ config, bad }) => {
  const factor = config.memoryThrottlingFactor;
  if (!(factor > 0 && factor <= 1)) bad('memoryThrottlingFactor', `${factor} must be above 0 and at most 1`);
};

const cfsPeriod: Rule = ({ config, gates, bad }) => {
  const ms = config.cpuCFSQuotaPeriod;
  if (ms === 100) return;
  if (!gates.enabled('CustomCPUCFSQuotaPeriod')) {
    bad('cpuCFSQuotaPeriod', `${formatGoDuration(ms)} needs feature gate CustomCPUCFSQuotaPeriod; without it only 100ms is possible`);
  } else if (ms < 1 || ms > 1_000) bad('cpuCFSQuotaPeriod', `${formatGoDuration(ms)} must be in 1ms..1s`);
};

export const NUMBER_RULES: readonly Rule[] = [ranges, durations, fractions, cfsPeriod];
