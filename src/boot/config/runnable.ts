/**
 * What the kubelet starts with although it makes no sense: it leaves such a value without effect, and so does this node, with
 * a warning. Nothing here takes a protection away; what would is refused by a rule. Pure.
 */
import { isIP } from 'node:net';
import type { FeatureGates, KubeletConfiguration, KubeletFlags } from '../../machines/config/config.ts';
import { defaultKubeletConfiguration } from '../../machines/config/defaults.ts';
import { type ConfigField, KUBELET_CONFIGURATION } from '../../machines/config/schema.ts';
import { parseQuantity } from '../../machines/kube/quantity.ts';
import type { Problem } from '../errors.ts';
import { flagHint } from '../flags/table.ts';

export interface Runnable {
  config: KubeletConfiguration;
  warnings: Problem[];
}

interface Leniency {
  field: ConfigField;
  /** Null: the value is fine. */
  instead(c: KubeletConfiguration, o: { flags: KubeletFlags; gates: FeatureGates }): [Partial<KubeletConfiguration>, what: string] | null;
}

const defaults = defaultKubeletConfiguration();

export function runnable(input: { config: KubeletConfiguration; flags: KubeletFlags; gates: FeatureGates }): Runnable {
  let { config } = input;
  const warnings: Problem[] = [];
  for (const { field, instead } of LENIENT) {
    const found = instead(config, input);
    if (found === null) continue;
    config = { ...config, ...found[0] };
    warnings.push({ where: `${field}${flagHint(field)}`, what: found[1] });
  }
  return { config, warnings };
}

/** A period that has no meaning below zero. */
const period = (field: 'fileCheckFrequency' | 'httpCheckFrequency' | 'cpuManagerReconcilePeriod'): Leniency => ({
  field,
  instead: (c) => (c[field] < 0 ? [{ [field]: defaults[field] }, 'a negative period is taken for the default'] : null),
});

const knows = (field: 'cgroupDriver' | 'configMapAndSecretChangeDetectionStrategy', value: string): boolean => {
  const shape = KUBELET_CONFIGURATION[field];
  return shape.t === 'string' && shape.words?.includes(value) === true;
};
const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:/.test(url);

const LENIENT: readonly Leniency[] = [
  period('fileCheckFrequency'),
  period('httpCheckFrequency'),
  period('cpuManagerReconcilePeriod'),
  {
    field: 'serverTLSBootstrap',
    instead: (c, { flags }) =>
      c.serverTLSBootstrap && flags.kubeconfig === '' && c.tlsCertFile === ''
        ? [{ serverTLSBootstrap: false }, 'no cluster signs certificates without --kubeconfig: the node makes its own']
        : null,
  },
  {
    field: 'tlsCertFile',
    instead: (c) =>
      (c.tlsCertFile === '') === (c.tlsPrivateKeyFile === '')
        ? null
        : [{ tlsCertFile: '', tlsPrivateKeyFile: '' }, 'certificate and private key only count together: the node makes its own'],
  },
  {
    field: 'cgroupDriver',
    instead: (c) =>
      knows('cgroupDriver', c.cgroupDriver) ? null : [{ cgroupDriver: defaults.cgroupDriver }, 'unknown: that of the runtime counts'],
  },
  {
    field: 'configMapAndSecretChangeDetectionStrategy',
    instead: (c, { flags }) =>
      flags.kubeconfig !== '' || knows('configMapAndSecretChangeDetectionStrategy', c.configMapAndSecretChangeDetectionStrategy)
        ? null
        : [{ configMapAndSecretChangeDetectionStrategy: 'Watch' }, 'unknown: it has no meaning without a cluster'],
  },
  {
    field: 'containerLogMaxSize',
    instead: (c) =>
      parseQuantity(c.containerLogMaxSize)?.mantissa === 0n
        ? [
            { containerLogMaxSize: defaults.containerLogMaxSize },
            `0 would keep no log at all: it is taken for ${defaults.containerLogMaxSize}`,
          ]
        : null,
  },
  {
    field: 'healthzBindAddress',
    instead: (c) => {
      if (isIP(c.healthzBindAddress) !== 0) return null;
      if (c.healthzBindAddress === 'localhost') return [{ healthzBindAddress: '127.0.0.1' }, 'localhost is taken for 127.0.0.1'];
      return [{ healthzBindAddress: '127.0.0.1', healthzPort: 0 }, 'not an IP address: there is no healthz server'];
    },
  },
  {
    field: 'qosReserved',
    instead: (c, { gates }) =>
      Object.keys(c.qosReserved).length > 0 && !gates.enabled('QOSReserved')
        ? [{ qosReserved: {} }, 'it has no effect without feature gate QOSReserved']
        : null,
  },
  {
    field: 'registerWithTaints',
    instead: (c, { flags }) => {
      const kept = c.registerWithTaints.filter((taint) => String(taint.effect) !== '');
      return flags.kubeconfig !== '' || kept.length === c.registerWithTaints.length
        ? null
        : [{ registerWithTaints: kept }, 'a taint without an effect is left out: there is no cluster to register with'];
    },
  },
  {
    field: 'shutdownGracePeriodByPodPriority',
    instead: (c) => {
      const all = c.shutdownGracePeriodByPodPriority;
      const bounded = all.map((one) => ({ ...one, shutdownGracePeriodSeconds: Math.max(0, one.shutdownGracePeriodSeconds) }));
      return all.some((one) => one.shutdownGracePeriodSeconds < 0)
        ? [{ shutdownGracePeriodByPodPriority: bounded }, 'a negative time is taken for 0 s']
        : null;
    },
  },
  {
    field: 'staticPodURL',
    instead: (c) =>
      c.staticPodURL === '' || isHttp(c.staticPodURL) ? null : [{ staticPodURL: '' }, 'not an http or https URL: no pod comes from it'],
  },
  {
    field: 'tracing',
    instead: (c) =>
      c.tracing?.endpoint === '' ? [{ tracing: { ...c.tracing, endpoint: null } }, 'an empty endpoint is taken for the default'] : null,
  },
];
