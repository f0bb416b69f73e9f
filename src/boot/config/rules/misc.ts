/** Rules about logs, shutdown, sysctls, restarts and networking. */

import { dottedSysctl } from '../../../machines/kube/names.ts';
import { parseQuantity } from '../../../machines/kube/quantity.ts';
import { sysctlNamespace } from '../../../machines/pods/admission/ability/sysctls.ts';
import { formatGoDuration } from '../../../machines/text/go/goDuration.ts';
import { TARGET_MAJOR, TARGET_MINOR } from '../../version.ts';
import { oneOf, type Rule } from './rule.ts';

const podLogsDir: Rule = ({ config, bad }) => {
  const dir = config.podLogsDir;
  const normalised = dir.startsWith('/') && dir !== '/' && !/\/\/|\/$|\/\.{1,2}(\/|$)/.test(dir);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about exactly these characters.
  if (!normalised || /[^\x00-\x7f]/.test(dir)) {
    bad('podLogsDir', `${JSON.stringify(dir)} must be an absolute path in ASCII without "..", "//" or a trailing "/"`);
  }
};

const containerLogs: Rule = ({ config, bad }) => {
  if (parseQuantity(config.containerLogMaxSize) === undefined)
    bad('containerLogMaxSize', `${JSON.stringify(config.containerLogMaxSize)} is not a quantity`);
};

const logging: Rule = ({ config, bad }) => {
  const { format, vmodule, options, verbosity, flushFrequency } = config.logging;
  if (verbosity < 0 || verbosity > 2 ** 31 - 1) bad('logging.verbosity', `${verbosity} must be in 0..2147483647`);
  if (flushFrequency < 0) bad('logging.flushFrequency', `${formatGoDuration(flushFrequency)} must not be negative`);
  if (vmodule.length > 0 && format !== 'text') bad('logging.vmodule', 'is only possible with format text');
  vmodule.forEach((item, i) => {
    if (item.filePattern === '' || /[=,]/.test(item.filePattern))
      bad(`logging.vmodule[${i}].filePattern`, 'must not be empty or contain "=" or ","');
  });
  for (const kind of ['text', 'json'] as const) {
    const { infoBufferSize } = options[kind];
    const size = parseQuantity(infoBufferSize);
    if (size === undefined || size.mantissa < 0n)
      bad(`logging.options.${kind}.infoBufferSize`, `${JSON.stringify(infoBufferSize)} is not a quantity of at least 0`);
  }
};

const shutdown: Rule = ({ config, gates, bad }) => {
  const { shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: critical, shutdownGracePeriodByPodPriority: byPriority } = config;
  if (critical > total) {
    bad(
      'shutdownGracePeriodCriticalPods',
      `${formatGoDuration(critical)} must not exceed shutdownGracePeriod, which is ${formatGoDuration(total)}`,
    );
  }
  if ((total !== 0 || critical !== 0) && !gates.enabled('GracefulNodeShutdown'))
    bad('shutdownGracePeriod', 'needs feature gate GracefulNodeShutdown');
  if (byPriority.length === 0) return;
  if (!gates.enabled('GracefulNodeShutdownBasedOnPodPriority')) {
    bad('shutdownGracePeriodByPodPriority', 'needs feature gate GracefulNodeShutdownBasedOnPodPriority');
  }
  if (total !== 0 || critical !== 0)
    bad('shutdownGracePeriodByPodPriority', 'excludes shutdownGracePeriod and shutdownGracePeriodCriticalPods');
};

/** As in manifests, and with dots for slashes at either place. */
const SYSCTL_PATTERN = /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?([./][a-z0-9]([a-z0-9_-]*[a-z0-9])?)*([./]?\*|[._-]\*)?$/;
const SYSCTL_CHARACTERS_MAX = 253;

const sysctls: Rule = ({ config, bad }) => {
  for (const raw of config.allowedUnsafeSysctls) {
    const pattern = dottedSysctl(raw);
    const prefix = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
    if (raw.length > SYSCTL_CHARACTERS_MAX || !SYSCTL_PATTERN.test(raw))
      bad('allowedUnsafeSysctls', `${JSON.stringify(raw)} is not a sysctl name or a prefix ending in *`);
    else if (sysctlNamespace(prefix) === null)
      bad('allowedUnsafeSysctls', `${JSON.stringify(raw)} is not namespaced: a pod cannot have its own`);
  }
};

const restarts: Rule = ({ config, gates, bad }) => {
  const max = config.crashLoopBackOff.maxContainerRestartPeriod;
  if (max === null) return;
  const path = 'crashLoopBackOff.maxContainerRestartPeriod';
  if (!gates.enabled('KubeletCrashLoopBackOffMax')) bad(path, 'needs feature gate KubeletCrashLoopBackOffMax');
  if (max < 1_000 || max > 300_000) bad(path, `${formatGoDuration(max)} must be in 1s..300s`);
};

const hiddenMetrics: Rule = ({ config, bad }) => {
  const previous = `${TARGET_MAJOR}.${TARGET_MINOR - 1}`;
  const value = config.showHiddenMetricsForVersion;
  if (value !== '' && value !== previous) bad('showHiddenMetricsForVersion', `${JSON.stringify(value)} must be empty or ${previous}`);
};

export const MISC_RULES: readonly Rule[] = [
  podLogsDir,
  containerLogs,
  oneOf('logging.format'),
  logging,
  shutdown,
  sysctls,
  restarts,
  hiddenMetrics,
  oneOf('hairpinMode'),
];
