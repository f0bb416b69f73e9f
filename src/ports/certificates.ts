/** The port of keys and certificates: what needs cryptography, and where the node's credentials came from. */

import type { CertificateTemplate } from '../machines/api/certificates/messages.ts';
import type { CertificateFacts, Signer } from '../machines/api/certificates/template.ts';
import type { KubeApi } from './kube.ts';

export interface Certificates {
  /** A new private key (elliptic, P-256), as PEM. Secret. */
  generateKey(): Promise<Uint8Array>;
  /**
   * A certificate request (PKCS #10) as PEM, and the name that only this key with this subject and these usages gives.
   * Rejects when the key cannot be used.
   */
  request(key: Uint8Array, o: { template: CertificateTemplate; signer: Signer }): Promise<{ pem: string; name: string }>;
  /**
   * A new private key of a pod (PKCS #8, as PEM; secret), and an empty request that proves it (PKCS #10, DER as base64).
   * Rejects for a type that projected volumes do not have.
   */
  podKey(keyType: string): Promise<{ key: string; stub: string }>;
  /** Whether both ask for the same key and subject. False for what is no request. */
  sameRequest(a: string, b: string): Promise<boolean>;
  /** What the first certificate says. Throws for what holds none, and with `key` where the two do not belong together. */
  inspect(pem: Uint8Array, key?: Uint8Array): CertificateFacts;
  /** Null: the kubeconfig's own credentials are used as they are. */
  readonly client: ClientCredentials | null;
}

/** How this node's client certificate is kept. */
export interface ClientCredentials {
  /** With the credentials of `--bootstrap-kubeconfig`; null without that flag. */
  bootstrap: KubeApi | null;
  /** Written as soon as there is a certificate; null: it is there. */
  kubeconfig: { path: string; text: string } | null;
  /** The present certificate only came along with the kubeconfig. */
  renewNow: boolean;
}
