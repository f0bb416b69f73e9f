/** Keys, requests and certificates as plain text, and a cluster's signer: what a virtual node's certificates are made with. */
import type { CertificateTemplate } from '../../../src/machines/api/certificates/messages.ts';
import type { CertificateFacts } from '../../../src/machines/api/certificates/template.ts';
import { pemOf } from '../../../src/machines/data/pem.ts';
import type { KubeObject } from '../../../src/machines/kube/request.ts';
import type { Certificates, ClientCredentials } from '../../../src/ports/certificates.ts';
import type { KubeApi } from '../../../src/ports/kube.ts';
import { type VirtualNode, type VirtualNodeOptions, virtualNode } from '../virtualNode.ts';
import { must } from './clusterPods.ts';

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
    podKey: async (keyType) => ({ key: pemOf('PRIVATE KEY', `key-${++keys}`), stub: btoa(`${keyType} key-${keys}`) }),
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
  must(h, { verb: 'PUT', path: `${CSRS}/${csr.metadata.name}`, body: { ...csr, metadata, status } });
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

// ---- nodes, and looks at them --------------------------------------------------------------------------------------

export const CLIENT = 'node/api/clientCertificate';
export const SERVING = 'node/api/servingCertificate';
export const KUBECONFIG = { path: '/etc/kubelet.conf', text: 'written by the node\n' };
export const WALL_START_MS = Date.UTC(2026, 0, 1);

export const bootstrapping = (o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    certificates: virtualCertificates({ client: { bootstrap: true, kubeconfig: KUBECONFIG } }),
    ...o,
    flags: { bootstrapKubeconfig: '/bootstrap.conf', ...o.flags },
  });
/** A node whose first certificate is there; `before` sees it, too. */
export const rotating = (life: { notBeforeMs: number; notAfterMs: number }, o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    certificates: virtualCertificates({ client: {} }),
    ...o,
    config: { rotateCertificates: true, ...o.config },
    before: (h) => {
      void putPair(h, CLIENT_PEM, life);
      o.before?.(h);
    },
  });
export const serving = (o: VirtualNodeOptions = {}): Promise<VirtualNode> =>
  virtualNode({
    cluster: true,
    servers: true,
    certificates: virtualCertificates(),
    ...o,
    config: { serverTLSBootstrap: true, tlsCertFile: '', tlsPrivateKeyFile: '', ...o.config },
  });
export const text = async (h: VirtualNode, path: string): Promise<string> =>
  new TextDecoder().decode(await h.fs.readFile(path, { bytesMax: 100_000 }));
export const pending = (h: VirtualNode) => requests(h).filter(isPending);
export const only = (h: VirtualNode) => {
  const [csr, ...more] = pending(h);
  if (csr === undefined || more.length > 0) throw new Error(`${pending(h).length} requests are pending`);
  return csr;
};
export const asked = (h: VirtualNode, count = 1) => h.until(`${count} requests`, () => pending(h).length === count, 300_000);
export function putHalf(h: VirtualNode): void {
  h.fs.makeDir('/var/lib/kubelet/pki');
  h.fs.put(CLIENT_PEM, 'half a fi');
}
export const logged = (h: VirtualNode, words: RegExp) => h.lines.filter((l) => words.test(l.msg));
/** The value of a metric without labels. */
export async function metric(h: VirtualNode, name: string): Promise<number> {
  const line = (await h.metrics.render()).split('\n').find((l) => l.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}
