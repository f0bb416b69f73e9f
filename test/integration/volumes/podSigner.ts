/** Pods with certificates, and the signer of a virtual cluster, which a test plays. */
import { pemBlocks, pemOf } from '../../../src/machines/data/pem.ts';
import type { KubeObject } from '../../../src/machines/kube/request.ts';
import { isRecord } from '../../../src/machines/shape/conform.ts';
import { must } from '../cluster/clusterPods.ts';
import { virtualCertificates } from '../cluster/virtualCertificates.ts';
import type { VirtualNode, VirtualNodeOptions } from '../virtualNode.ts';

export const GROUP = '/apis/certificates.k8s.io/v1beta1';
const GATES = { ClusterTrustBundle: true, ClusterTrustBundleProjection: true, PodCertificateRequest: true };

export const withCertificates = (): VirtualNodeOptions => ({
  cluster: true,
  certificates: virtualCertificates(),
  config: { featureGates: GATES },
});

export const certificateVolume = (certificate: object = {}): object => ({
  name: 'identity',
  projected: {
    sources: [
      {
        podCertificate: {
          signerName: 'example.com/signer',
          keyType: 'ED25519',
          credentialBundlePath: 'bundle.pem',
          keyPath: 'key.pem',
          certificateChainPath: 'chain.pem',
          ...certificate,
        },
      },
    ],
  },
});
export const bundleVolume = (bundle: object): object => ({
  name: 'anchors',
  projected: { sources: [{ clusterTrustBundle: { path: 'anchors.pem', ...bundle } }] },
});

export const requestsOf = (h: VirtualNode): KubeObject[] => h.kube.store.list('podcertificaterequests');
export const keyOf = (request: KubeObject): string => atob((request.spec as { stubPKCS10Request: string }).stubPKCS10Request);
export const namesKey = (pem: string): string => pemBlocks(pem)[0] ?? '';

function status(h: VirtualNode, { metadata: { namespace, name } }: KubeObject, body: object): void {
  const path = `${GROUP}/namespaces/${namespace}/podcertificaterequests/${name}/status`;
  must(h, { verb: 'PATCH', path, patchType: 'merge', body: { status: body } });
}
const isOpen = ({ status }: KubeObject): boolean => !(isRecord(status) && Array.isArray(status.conditions));

/** Signs what is asked for: a certificate that names the key. */
export function sign(h: VirtualNode, o: { lifeMs?: number; refreshMs?: number } = {}): void {
  const { lifeMs = 3_600_000 } = o;
  const at = (ms: number): string => new Date(h.time.clock.wallMs() + ms).toISOString();
  for (const request of requestsOf(h).filter(isOpen)) {
    status(h, request, {
      conditions: [{ type: 'Issued', status: 'True', reason: 'Signed', message: '' }],
      certificateChain: `a word of the signer\n${pemOf('CERTIFICATE', `cert of ${keyOf(request)}`)}`,
      beginRefreshAt: at(o.refreshMs ?? lifeMs / 2),
      notAfter: at(lifeMs),
    });
  }
}
export function refuse(h: VirtualNode, type: 'Denied' | 'Failed'): void {
  for (const request of requestsOf(h).filter(isOpen)) {
    status(h, request, { conditions: [{ type, status: 'True', reason: 'Policy', message: 'not for this account' }] });
  }
}
export function remove(h: VirtualNode, { metadata: { namespace, name } }: KubeObject): void {
  must(h, { verb: 'DELETE', path: `${GROUP}/namespaces/${namespace}/podcertificaterequests/${name}` });
}
export function anchor(h: VirtualNode, name: string, o: { signerName?: string; labels?: object; texts: string[] }): void {
  const { signerName, labels = {}, texts } = o;
  const spec = { ...(signerName === undefined ? {} : { signerName }), trustBundle: texts.map((t) => pemOf('CERTIFICATE', t)).join('') };
  must(h, { verb: 'POST', path: `${GROUP}/clustertrustbundles`, body: { metadata: { name, labels }, spec } });
}
