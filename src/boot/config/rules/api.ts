/** Rules about servers, authentication, TLS, registration and tracing. */

import { isIP } from 'node:net';
import { CIPHER_SUITES } from '../../../machines/config/cipherSuites.ts';
import { TAINT_EFFECTS } from '../../../machines/config/schema.ts';
import { curveIds } from '../../../machines/edge/https/tls.ts';
import { shownEndpoint } from '../../../machines/text/shownUrl.ts';
import { isLabelValue, isQualifiedName } from '../../names.ts';
import { oneOf, type Rule } from './rule.ts';

const addresses: Rule = ({ config, bad }) => {
  if (isIP(config.address) === 0) bad('address', `${JSON.stringify(config.address)} is not an IP address`);
};

const tls: Rule = ({ config, gates, bad }) => {
  for (const suite of config.tlsCipherSuites)
    if (!CIPHER_SUITES.includes(suite)) bad('tlsCipherSuites', `${JSON.stringify(suite)} is not a known suite`);
  for (const id of config.tlsCurvePreferences)
    if (!curveIds().includes(id)) bad('tlsCurvePreferences', `${id} is not one of ${curveIds().join(', ')}`);
  if (new Set(config.tlsCurvePreferences).size < config.tlsCurvePreferences.length) bad('tlsCurvePreferences', 'names a curve twice');
  if (config.serverTLSBootstrap && !gates.enabled('RotateKubeletServerCertificate')) {
    bad('serverTLSBootstrap', 'true needs feature gate RotateKubeletServerCertificate');
  }
};

const taints: Rule = ({ config, bad }) => {
  config.registerWithTaints.forEach((taint, i) => {
    const effect: string = taint.effect;
    if (!isQualifiedName(taint.key)) bad(`registerWithTaints[${i}].key`, `${JSON.stringify(taint.key)} is not a qualified name`);
    if (!isLabelValue(taint.value)) bad(`registerWithTaints[${i}].value`, `${JSON.stringify(taint.value)} is not a label value`);
    if (!TAINT_EFFECTS.some((known) => known === effect)) {
      bad(`registerWithTaints[${i}].effect`, `${JSON.stringify(effect)} is not one of ${TAINT_EFFECTS.join(', ')}`);
    }
  });
};

const tracing: Rule = ({ config, gates, bad }) => {
  if (config.tracing === null) return;
  if (!gates.enabled('KubeletTracing')) bad('tracing', 'needs feature gate KubeletTracing');
  const rate = config.tracing.samplingRatePerMillion;
  if (rate !== null && (rate < 0 || rate > 1_000_000)) bad('tracing.samplingRatePerMillion', `${rate} must be in 0..1000000`);
  const { endpoint } = config.tracing;
  if (endpoint === null) return;
  // gRPC's names of targets: those of the reference but `unix-abstract`, which the gRPC library does not have.
  const [, scheme = 'dns', rest = endpoint] = /^([^/]*):\/\/(.*)$/.exec(endpoint) ?? [];
  if (scheme !== 'dns' && scheme !== 'unix')
    bad('tracing.endpoint', `${JSON.stringify(shownEndpoint(endpoint))}: the scheme must be none, dns or unix`);
  else if (rest === '' || (scheme === 'dns' && !URL.canParse(`http://${rest.replace(/^[^/]*\//, '')}`))) {
    bad('tracing.endpoint', `${JSON.stringify(shownEndpoint(endpoint))} is not host:port`);
  }
};

const systemLogs: Rule = ({ config, gates, bad }) => {
  if (!config.enableSystemLogQuery) return;
  if (!gates.enabled('NodeLogQuery')) bad('enableSystemLogQuery', 'true needs feature gate NodeLogQuery');
  if (!config.enableSystemLogHandler) bad('enableSystemLogQuery', 'true needs enableSystemLogHandler: true');
};

export const API_RULES: readonly Rule[] = [
  addresses,
  oneOf('authorization.mode'),
  oneOf('tlsMinVersion'),
  tls,
  taints,
  tracing,
  systemLogs,
  oneOf('configMapAndSecretChangeDetectionStrategy'),
];
