/** TLS settings as the configuration writes them, in the names of OpenSSL (boot-and-node 8.13). Pure. */
import { own } from '../../data/own.ts';

const VERSIONS = {
  '': 'TLSv1.2',
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
} as const;
export type TlsVersion = (typeof VERSIONS)[keyof typeof VERSIONS];

/** Go's names to OpenSSL's. Suites of TLS 1.3 are missing: they cannot be chosen, neither there nor here. */
const SUITES: Readonly<Record<string, string>> = {
  TLS_RSA_WITH_RC4_128_SHA: 'RC4-SHA',
  TLS_RSA_WITH_3DES_EDE_CBC_SHA: 'DES-CBC3-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_RC4_128_SHA: 'ECDHE-ECDSA-RC4-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_RC4_128_SHA: 'ECDHE-RSA-RC4-SHA',
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: 'ECDHE-RSA-DES-CBC3-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
};
/** Without a list: forward secrecy and authenticated encryption, which every client of the last ten years has. */
const DEFAULT_SUITES = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

/** Go's numbers of key exchanges (`crypto/tls.CurveID`) and OpenSSL's names, in the order of preference: a list has none of its own. */
const CURVES: readonly (readonly [id: number, name: string])[] = [
  [4588, 'X25519MLKEM768'],
  [4587, 'SecP256r1MLKEM768'],
  [4589, 'SecP384r1MLKEM1024'],
  [29, 'X25519'],
  [23, 'P-256'],
  [24, 'P-384'],
  [25, 'P-521'],
];

/** What `tlsCurvePreferences` may name. */
export function curveIds(): number[] {
  return CURVES.map(([id]) => id);
}

/** The list for OpenSSL; '' = its own choice. */
export function curveList(ids: readonly number[]): string {
  return CURVES.flatMap(([id, name]) => (ids.includes(id) ? [name] : [])).join(':');
}

/** Names the configuration's check lets through; anything else counts as unset, so the floor is TLS 1.2. */
export function tlsVersion(name: string): TlsVersion {
  return Object.entries(VERSIONS).find(([key]) => key === name)?.[1] ?? 'TLSv1.2';
}

/** The list for OpenSSL, in the order given. With suites of TLS 1.3 alone the default list is what stands for 1.2. */
export function cipherList(suites: readonly string[]): string {
  const names = suites.map((s) => own(SUITES, s)).filter((s) => s !== undefined);
  return (names.length === 0 ? DEFAULT_SUITES : [...new Set(names)]).join(':');
}
