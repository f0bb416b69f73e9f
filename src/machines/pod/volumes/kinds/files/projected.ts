/** `projected`: files of several sources in one directory, in memory. */

import { type Built, refused } from '../../../../result.ts';
import { isRecord } from '../../../../shape/conform.ts';
import { listOf, textOf } from '../../../../shape/lenient.ts';
import { honoured, honouredOfApi } from '../../../fieldRule.ts';
import type { InlineKind } from '../../kind.ts';
import { DOWNWARD_ITEM, defaultItems, downwardItems, FILES, type Files, files, OBJECT, object, type ProjectionSource } from './files.ts';

/** API default of `expirationSeconds`. */
const TOKEN_SECONDS = 3_600;
/** Sources that only an API server could resolve. */
const OF_API = ['secret', 'configMap', 'serviceAccountToken', 'clusterTrustBundle', 'podCertificate'];

const POD_CERTIFICATE = [
  'signerName',
  'keyType',
  'maxExpirationSeconds',
  'credentialBundlePath',
  'keyPath',
  'certificateChainPath',
  'userAnnotations.*',
];

const each = (source: string, keys: readonly string[]): string[] => keys.map((k) => `projected.sources[*].${source}.${k}`);

export const projected: { inline: InlineKind<Files> } = {
  inline: {
    ...FILES,
    plugin: 'kubernetes.io~projected',
    fields: { projected: decode },
    rules: [
      ...honoured('projected.defaultMode', ...each('downwardAPI.items[*]', DOWNWARD_ITEM)),
      ...['secret', 'configMap'].flatMap((source) => honouredOfApi(...each(source, ['name', ...OBJECT]))),
      ...honouredOfApi(...each('serviceAccountToken', ['audience', 'expirationSeconds', 'path'])),
      ...honouredOfApi(...each('clusterTrustBundle', ['name', 'signerName', 'labelSelector', 'optional', 'path'])),
      ...honouredOfApi(...each('podCertificate', POD_CERTIFICATE)),
    ],
    defaults: (content) => {
      FILES.defaults(content);
      for (const part of listOf(content.sources)) {
        if (!isRecord(part)) continue;
        defaultItems(part.downwardAPI);
        if (isRecord(part.serviceAccountToken)) part.serviceAccountToken.expirationSeconds ??= TOKEN_SECONDS;
      }
    },
    apiReferences: ({ sources }, path) =>
      listOf(sources).flatMap((s, i) =>
        OF_API.filter((part) => isRecord(s) && s[part] !== undefined).map((part) => `${path}.sources[${i}].${part}`),
      ),
  },
};

function decode(content: Record<string, unknown>): Built<Files> {
  const sources: ProjectionSource[] = [];
  for (const [index, value] of listOf(content.sources).entries()) {
    // An API server that does not know the source has left nothing of it: as in the kubelet it is none.
    if (isRecord(value) && Object.keys(value).length === 0) continue;
    const source = projection(value, index);
    if (typeof source === 'string') return refused(`projected source "${source}" is not there yet`);
    sources.push(source);
  }
  return files(content, { memory: true, sources });
}

/** A name: of a source that there is nothing for. */
function projection(value: unknown, index: number): ProjectionSource | string {
  if (!isRecord(value)) return 'nothing';
  const { secret, configMap, downwardAPI, serviceAccountToken: token, clusterTrustBundle: bundle, podCertificate: certificate } = value;
  if (isRecord(secret)) return object('secret', secret, 'name');
  if (isRecord(configMap)) return object('configMap', configMap, 'name');
  if (isRecord(downwardAPI)) return { kind: 'downwardAPI', items: downwardItems(downwardAPI.items) };
  if (isRecord(token)) {
    const seconds = token.expirationSeconds;
    return {
      kind: 'token',
      path: textOf(token.path),
      audience: textOf(token.audience),
      expirationSeconds: typeof seconds === 'number' ? seconds : TOKEN_SECONDS,
    };
  }
  if (isRecord(bundle)) return anchors(bundle);
  if (isRecord(certificate)) return ofCertificate(certificate, index);
  return Object.keys(value)[0] ?? 'nothing';
}

function anchors({ name, signerName, labelSelector, optional, path }: Record<string, unknown>): ProjectionSource {
  const query = {
    name: typeof name === 'string' ? name : null,
    signerName: textOf(signerName),
    labelSelector: isRecord(labelSelector) ? labelSelector : null,
  };
  return { kind: 'trustAnchors', path: textOf(path), optional: optional === true, query };
}

function ofCertificate(certificate: Record<string, unknown>, index: number): ProjectionSource {
  const { signerName, keyType, maxExpirationSeconds: seconds, userAnnotations } = certificate;
  const annotations = Object.entries(isRecord(userAnnotations) ? userAnnotations : {}).filter(
    (e): e is [string, string] => typeof e[1] === 'string',
  );
  return {
    kind: 'podCertificate',
    paths: {
      bundle: textOf(certificate.credentialBundlePath),
      key: textOf(certificate.keyPath),
      chain: textOf(certificate.certificateChainPath),
    },
    query: {
      index,
      signerName: textOf(signerName),
      keyType: textOf(keyType),
      maxExpirationSeconds: typeof seconds === 'number' ? seconds : null,
      userAnnotations: Object.fromEntries(annotations),
    },
  };
}
