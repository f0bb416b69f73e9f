/** What a certificate of this node is to say. */

/** Contents of a certificate that is asked for. */
export interface CertificateTemplate {
  commonName: string;
  organizations: readonly string[];
  /** Sorted; empty for a client. */
  dnsNames: readonly string[];
  /** Sorted, each in the spelling of {@link canonicalIp}. */
  ips: readonly string[];
}

export interface ReportedAddress {
  type: string;
  address: string;
}

/** `meta.reason` of an actor whose certificate is not there, or has ended, and could not be had. */
export const CERTIFICATE_MISSING = 'CertificateMissing';
