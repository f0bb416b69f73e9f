/** Keys, requests and certificates as plain text, and a cluster's signer: what a virtual node's certificates are made with. */
import type { Certificates, ClientCredentials } from '../../src/actors/kernel/certificates.ts';
import type { KubeApi } from '../../src/actors/kernel/ports.ts';
import type { KubeObject } from '../../src/machines/api/kube.ts';
import type { CertificateFacts, CertificateTemplate } from '../../src/machines/certificates/template.ts';
import type { VirtualNode } from './virtualNode.ts';

export const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
export const CERT_DIR = '/var/lib/kubelet/pki';
export const CLIENT_PEM = `${CERT_DIR}/kubelet-client-current.pem`;
export const SERVER_PEM = `${CERT_DIR}/kubelet-server-current.pem`;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

interface Request {
  key: string;
  template: CertificateTemplate;
}

/** Keys are numbered over all daemons of one test. */
export function virtualCertificates(
  o: { client?: Partial<Omit<ClientCredentials, 'bootstrap'>> & { bootstrap?: boolean } } = {},
): (connect: () => KubeApi) => Certificates {
  let keys = 0;
  return (connect) => ({
    generateKey: async () => encode(`KEY key-${++keys}\n`),
    async request(key, { template, signer }) {
      const name = keyOf(key);
      if (name === null) throw new Error('there is no private key in it');
      const request: Request = { key: name, template };
      return { pem: JSON.stringify(request), name: `node-csr-${name}-${signer.usages.length}` };
    },
    sameRequest: async (a, b) => a === b,
    inspect(pem, key) {
      const found = /^CERT (.*)$/m.exec(decode(pem))?.[1];
      if (found === undefined) throw new Error('there is no certificate in it');
      const { key: made, ...facts } = JSON.parse(found) as CertificateFacts & { key: string };
      if (key !== undefined && keyOf(key) !== made) throw new Error('certificate and private key do not belong together');
      return facts;
    },
    client:
      o.client === undefined
        ? null
        : {
            bootstrap: o.client.bootstrap === true ? connect() : null,
            kubeconfig: o.client.kubeconfig ?? null,
            renewNow: o.client.renewNow ?? false,
          },
  });
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const keyOf = (pem: Uint8Array): string | null => /^KEY (.*)$/m.exec(decode(pem))?.[1] ?? null;

export const requests = (h: VirtualNode): KubeObject[] => h.kube.store.list('certificatesigningrequests');
export const usagesOf = (csr: KubeObject): string[] => (csr.spec as { usages: string[] }).usages;
export const requestOf = (csr: KubeObject): Request => JSON.parse(atob((csr.spec as { request: string }).request)) as Request;
export const isPending = (csr: KubeObject): boolean => csr.status === undefined;

/** As an approver and the signer. `change`: what the signer makes of it. */
export function approve(h: VirtualNode, csr: KubeObject, o: { lifeMs?: number; change?: Partial<CertificateFacts> } = {}): void {
  const { key, template } = requestOf(csr);
  const now = h.time.clock.wallMs();
  const pem = certificate({ ...template, key, notBeforeMs: now, notAfterMs: now + (o.lifeMs ?? DAY_MS), ...o.change });
  answer(h, csr, { conditions: [{ type: 'Approved', status: 'True', reason: 'Test' }], certificate: btoa(pem) });
}
export function deny(h: VirtualNode, csr: KubeObject, type: 'Denied' | 'Failed' = 'Denied'): void {
  answer(h, csr, { conditions: [{ type, status: 'True', reason: 'Nobody', message: 'knows this node' }] });
}
function answer(h: VirtualNode, csr: KubeObject, status: object): void {
  const { resourceVersion: _version, ...metadata } = csr.metadata;
  const put = h.kube.handle({ verb: 'PUT', path: `${CSRS}/${csr.metadata.name}`, body: { ...csr, metadata, status } });
  if (!put.ok) throw new Error(put.failure.message);
}

export function certificate(o: Partial<CertificateFacts> & { key: string; notBeforeMs: number; notAfterMs: number }): string {
  const facts = { commonName: 'system:node:n1', organizations: ['system:nodes'], dnsNames: [], ips: [], ...o };
  return `CERT ${JSON.stringify({ ...facts, fingerprint: `${o.key} ${o.notBeforeMs}` })}\n`;
}

/** As an earlier daemon left it. */
export async function putPair(
  h: VirtualNode,
  file: string,
  o: Partial<CertificateFacts> & { notBeforeMs: number; notAfterMs: number },
): Promise<void> {
  h.fs.makeDir(CERT_DIR);
  const target = file.replace('-current.pem', '-2025-12-31-00-00-00.pem');
  h.fs.put(target, `${certificate({ key: 'old', ...o })}KEY old\n`);
  await h.fs.symlink(target, file);
}
