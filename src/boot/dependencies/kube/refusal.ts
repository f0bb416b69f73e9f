/** What a person can do about an API server that does not take the node's credentials, or that the node does not take. */
import { X509Certificate } from 'node:crypto';
import type { Loaded } from './credentials.ts';
import type { KubeConfigFile, Material } from './kubeconfig.ts';

const where = (material: Material | null, config: KubeConfigFile): string =>
  material !== null && 'file' in material ? material.file : `kubeconfig ${config.path}`;
const oneLine = (name: string): string => name.split('\n').join(', ');

/** Which credentials were answered with 401 and what is visibly wrong with them. Never the credentials themselves. */
export function whyRefused(sent: Pick<Loaded, 'tls' | 'token'>, config: KubeConfigFile, nowMs: number): string {
  const { cert } = sent.tls;
  if (cert !== undefined) {
    const from = config.cert === null && config.exec !== null ? `program ${config.exec.command}` : where(config.cert, config);
    try {
      const x509 = new X509Certificate(Buffer.isBuffer(cert) ? cert : String(cert));
      const whose = `the client certificate ${oneLine(x509.subject)} (${from})`;
      if (Date.parse(x509.validTo) <= nowMs) return `${whose} ended ${new Date(x509.validTo).toISOString()}`;
      if (Date.parse(x509.validFrom) > nowMs) return `${whose} is good only from ${new Date(x509.validFrom).toISOString()} on`;
      return `${whose}, signed by ${oneLine(x509.issuer)}, is not accepted there`;
    } catch {
      return `the client certificate of ${from} cannot be read`;
    }
  }
  if (sent.token === '') return `kubeconfig ${config.path} has no credentials: neither a client certificate nor a token`;
  const from = config.token === null && config.exec !== null ? `program ${config.exec.command}` : where(config.token, config);
  return `the token of ${from} is not accepted there: unknown, or it has ended`;
}

/** Error codes of TLS. */
export const UNVERIFIED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_GET_ISSUER_CERT',
]);

/** For an error code of TLS that says that nobody vouches for the server; undefined for any other. */
export function whyUnverified(code: string, config: KubeConfigFile): string | undefined {
  if (!UNVERIFIED.has(code)) return undefined;
  const ca = config.ca === null ? 'the authorities of this machine' : `the certificate-authority of ${where(config.ca, config)}`;
  return `the certificate of ${config.server.host} is not signed by ${ca}: is that of another cluster?`;
}
