/** Trust anchors of the cluster: objects of kind ClusterTrustBundle, by name or by signer and labels. Pure. */

import { own } from '../../data/own.ts';
import { pemBlocks, pemOf } from '../../data/pem.ts';
import type { ObjectResult, TrustQuery } from '../../kube/objects.ts';
import type { KubeObject } from '../../kube/request.ts';
import { isRecord } from '../../shape/conform.ts';

/** An object of kind ClusterTrustBundle. */
export interface TrustBundle {
  name: string;
  /** '' = of no signer. */
  signerName: string;
  labels: Readonly<Record<string, unknown>>;
  /** Its certificates, as strings of bytes. */
  anchors: readonly string[];
}

export function toTrustBundle({ metadata, spec }: KubeObject): TrustBundle {
  const { signerName, trustBundle } = isRecord(spec) ? spec : {};
  return {
    name: metadata.name,
    signerName: typeof signerName === 'string' ? signerName : '',
    labels: isRecord(metadata.labels) ? metadata.labels : {},
    anchors: typeof trustBundle === 'string' ? pemBlocks(trustBundle) : [],
  };
}

/**
 * PEM text of all anchors that the query names, each once. They are sorted by their bytes, so the file stays the same while
 * they do; the reference shuffles them at each start. `absent`: no object matches.
 */
export function trustAnchors(bundles: readonly TrustBundle[], query: TrustQuery): ObjectResult<string> {
  const matching = query.name === null ? bundles.filter((b) => matches(b, query)) : bundles.filter((b) => b.name === query.name);
  if (matching.length === 0) {
    const message =
      query.name === null
        ? 'combination of signerName and labelSelector matched zero ClusterTrustBundles'
        : `while getting ClusterTrustBundle: clustertrustbundles.certificates.k8s.io "${query.name}" not found`;
    return { kind: 'absent', message };
  }
  const anchors = [...new Set(matching.flatMap((b) => b.anchors))].sort();
  return { kind: 'found', value: anchors.map((anchor) => pemOf('CERTIFICATE', anchor)).join('') };
}

/** Without a selector nothing matches; an empty one matches everything. */
function matches(bundle: TrustBundle, { signerName, labelSelector }: TrustQuery): boolean {
  if (bundle.signerName !== signerName || !isRecord(labelSelector)) return false;
  const { matchLabels, matchExpressions } = labelSelector;
  const { labels } = bundle;
  return (
    Object.entries(isRecord(matchLabels) ? matchLabels : {}).every(([key, value]) => own(labels, key) === value) &&
    (Array.isArray(matchExpressions) ? matchExpressions : []).every((e) => isRecord(e) && holds(e, own(labels, String(e.key))))
  );
}

function holds({ operator, values }: Record<string, unknown>, held: unknown): boolean {
  const listed = Array.isArray(values) && values.includes(held);
  switch (operator) {
    case 'In':
      return held !== undefined && listed;
    case 'NotIn':
      return !listed;
    case 'Exists':
      return held !== undefined;
    case 'DoesNotExist':
      return held === undefined;
    default:
      return false;
  }
}
