/** Checks of the flags that are not in the configuration file (boot-and-node 1.6 b, 2.6). */
import { isIP } from 'node:net';
import { isUnspecified } from '../../../machines/api/node/nodeAddresses.ts';
import type { KubeletFlags } from '../../../machines/config/config.ts';
import type { Problem } from '../../errors.ts';
import type { GivenFlag } from '../../flags/parse.ts';
import { isLabelValue, isQualifiedName } from '../../names.ts';

const ALLOWED_LABELS: readonly string[] = [
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
];
/** Less does not hold two whole pictures of a large node; more is not read back into memory. */
const RECORD_MIB_MIN = 16;
const RECORD_MIB_MAX = 1024;
/** Every pull and mount takes a while. */
const STUCK_AFTER_MS_MIN = 1_000;
const ALLOWED_NAMESPACES: readonly string[] = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

export function flagProblems(flags: KubeletFlags, given: ReadonlyMap<string, GivenFlag>): Problem[] {
  const problems: Problem[] = [];
  const bad = (flag: string, what: string): void => void problems.push({ where: `--${flag}`, what });
  if (flags.rootDir === '') bad('root-dir', 'must not be empty');
  if (flags.exitOnLockContention && flags.lockFile === '') bad('exit-on-lock-contention', 'needs --lock-file');
  if (flags.hostnameOverride !== '' && flags.hostnameOverride.trim() === '') bad('hostname-override', 'must not be blank');
  if (given.has('dynamic-config-dir')) bad('dynamic-config-dir', 'dynamic configuration was removed in 1.24; give the file with --config');
  if (!['', 'external'].includes(flags.cloudProvider))
    bad('cloud-provider', `${JSON.stringify(flags.cloudProvider)} must be empty or external`);
  if ((flags.imageCredentialProviderConfig === '') !== (flags.imageCredentialProviderBinDir === '')) {
    bad('image-credential-provider-config', 'and --image-credential-provider-bin-dir must be given together');
  }
  for (const { spec, value } of given.values()) {
    if (spec.onlyValue !== undefined && String(value) !== spec.onlyValue) {
      bad(spec.name, `only ${JSON.stringify(spec.onlyValue)} is possible: the flag was removed in ${spec.removed ?? 'an earlier release'}`);
    }
  }
  if (flags.recordMaxMib < RECORD_MIB_MIN || flags.recordMaxMib > RECORD_MIB_MAX) {
    bad('actorlet-record-max-mib', `${flags.recordMaxMib} must be between ${RECORD_MIB_MIN} and ${RECORD_MIB_MAX}`);
  }
  if (flags.recordInputsMaxMib < RECORD_MIB_MIN || flags.recordInputsMaxMib > RECORD_MIB_MAX) {
    bad('actorlet-record-inputs-max-mib', `${flags.recordInputsMaxMib} must be between ${RECORD_MIB_MIN} and ${RECORD_MIB_MAX}`);
  }
  deaths(flags, bad);
  nodeIPs(flags, bad);
  labels(flags.nodeLabels, bad);
  return problems;
}

function deaths(
  { deathsMax, deathsMaxKib, deathsLogLines, deathsStuckAfter }: KubeletFlags,
  bad: (flag: string, what: string) => void,
): void {
  const between = (flag: string, value: number, [min, max]: readonly [number, number]): void => {
    if (value < min || value > max) bad(flag, `${value} must be between ${min} and ${max}`);
  };
  between('actorlet-deaths-max', deathsMax, [0, 1000]);
  between('actorlet-deaths-max-kib', deathsMaxKib, [16, 4096]);
  between('actorlet-deaths-log-lines', deathsLogLines, [0, 10_000]);
  if (deathsStuckAfter < STUCK_AFTER_MS_MIN) bad('actorlet-deaths-stuck-after', `must be ${STUCK_AFTER_MS_MIN / 1000}s or longer`);
}

function nodeIPs(flags: KubeletFlags, bad: (flag: string, what: string) => void): void {
  const ips = flags.nodeIPs;
  if (ips.length < 2) return;
  const [a = '', b = ''] = ips;
  if (ips.length > 2 || isIP(a) === isIP(b)) bad('node-ip', `${ips.join(',')} must be one address, or one IPv4 and one IPv6 address`);
  const unspecified = ips.filter(isUnspecified);
  if (unspecified.length > 0) bad('node-ip', `${unspecified.join(', ')} cannot be one of a pair`);
}

function labels(given: Readonly<Record<string, string>>, bad: (flag: string, what: string) => void): void {
  const reserved: string[] = [];
  for (const [key, value] of Object.entries(given)) {
    if (!isQualifiedName(key)) bad('node-labels', `key ${JSON.stringify(key)} is not a qualified name`);
    if (!isLabelValue(value)) bad('node-labels', `value ${JSON.stringify(value)} of ${key} is not a label value`);
    if (isReserved(key)) reserved.push(key);
  }
  if (reserved.length > 0) {
    bad(
      'node-labels',
      `${reserved.sort().join(', ')}: in a namespace of Kubernetes only the kubelet's own labels and ${ALLOWED_NAMESPACES.join(', ')} are allowed`,
    );
  }
}

function isReserved(key: string): boolean {
  const namespace = key.includes('/') ? (key.split('/')[0] ?? '') : '';
  const within = (roots: readonly string[]) => roots.some((r) => namespace === r || namespace.endsWith(`.${r}`));
  return within(['kubernetes.io', 'k8s.io']) && !ALLOWED_LABELS.includes(key) && !within(ALLOWED_NAMESPACES);
}
