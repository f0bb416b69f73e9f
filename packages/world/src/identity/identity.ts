/** What a simulated node shows of itself: the pairs on its disk, what it is configured to ask for, and what its ports know of that. */

import { clientTemplate } from '@actorlet/kubelet/machines/api/certificates/template.ts';
import type { KubeletConfiguration, KubeletFlags } from '@actorlet/kubelet/machines/config/config.ts';
import type { Certificates, ClientCredentials } from '@actorlet/kubelet/ports/certificates.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { SimDisk } from '../disk/types.ts';
import { CLIENT_CA_TEXT } from '../host/net.ts';
import type { SimKube } from '../kube/types.ts';
import type { SimRng } from '../rng.ts';
import { WALL_START_MS } from '../time.ts';
import { certificateText, newKey, publicOf, simCertificates, simCredentials } from './certificates.ts';

/** A node that gets certificates from its cluster. */
export interface CertificateTuning {
  /** Its client certificate is kept by it, or the credentials of its kubeconfig are used as they are. */
  client: 'kept' | 'as-given';
  /** What it serves with comes from the cluster too. */
  serving: boolean;
  rotate: boolean;
  /** What is on disk when its first daemon begins: nothing, a pair, one that has ended, files of the older layout, half a file, a link that was not renamed yet. */
  begins: 'none' | 'held' | 'ended' | 'older' | 'torn' | 'halfway';
  /** The pair only came along with the kubeconfig. */
  renewNow: boolean;
  lifeMs: number;
}
/** A node whose API is served and asked. */
export interface EdgeTuning {
  authorization: 'Webhook' | 'AlwaysAllow';
  anonymous: boolean;
  /** How long answers about rights and tokens are kept. */
  cacheMs: number;
  /** Longest wait between two requests of its callers. */
  everyMs: number;
}

export const API_PORT = 10_250;
const CERT_DIR = '/var/lib/kubelet/pki';
const PREFIXES = { client: 'kubelet-client', serving: 'kubelet-server' } as const;
export type PairUse = keyof typeof PREFIXES;
export const pairPath = (use: PairUse): string => `${CERT_DIR}/${PREFIXES[use]}-current.pem`;
const TLS = { tlsCertFile: '/etc/kubernetes/tls.crt', tlsPrivateKeyFile: '/etc/kubernetes/tls.key' } as const;
const CLIENT_CA = '/etc/kubernetes/ca.crt';
const BOOTSTRAP = '/etc/kubernetes/bootstrap.conf';
/** What the node writes once it has a certificate; no pair is looked for in it. */
const WRITTEN_KUBECONFIG = { path: '/etc/kubernetes/kubelet.conf', text: 'refers to the pair of this node\n' };
const YEAR_MS = 365 * 86_400_000;

/** Pairs that this node keeps, by what they are for. */
export function keptPairs(tuning: CertificateTuning | null): PairUse[] {
  if (tuning === null) return [];
  return [...(tuning.client === 'kept' ? (['client'] as const) : []), ...(tuning.serving ? (['serving'] as const) : [])];
}

/** As an operator, and an earlier daemon, left it. */
export function leaveFiles(disk: SimDisk, o: { name: string; rng: SimRng; certificates: CertificateTuning | null }): void {
  disk.put(CLIENT_CA, CLIENT_CA_TEXT);
  const given = pair(o, YEAR_MS);
  disk.put(TLS.tlsCertFile, given.cert);
  disk.put(TLS.tlsPrivateKeyFile, given.key);
  const { certificates } = o;
  if (certificates === null) return;
  disk.makeDir(CERT_DIR);
  for (const use of keptPairs(certificates)) leavePair(disk, { ...o, use, certificates });
}
function leavePair(disk: SimDisk, o: { name: string; rng: SimRng; use: PairUse; certificates: CertificateTuning }): void {
  const { begins, lifeMs } = o.certificates;
  if (begins === 'none') return;
  const { cert, key } = pair({ ...o, rng: o.rng.fork(o.use) }, begins === 'ended' ? -1_000 : lifeMs);
  const prefix = `${CERT_DIR}/${PREFIXES[o.use]}`;
  if (begins === 'older') {
    disk.put(`${prefix}.crt`, cert);
    disk.put(`${prefix}.key`, key);
    return;
  }
  const file = `${prefix}-2025-12-31-00-00-00.pem`;
  disk.put(file, begins === 'torn' ? cert.slice(0, cert.length >> 1) : `${cert}${key}`);
  disk.putLink(begins === 'halfway' ? `${prefix}-updated.pem` : pairPath(o.use), file);
}
function pair({ name, rng }: { name: string; rng: SimRng }, leftMs: number): { cert: string; key: string } {
  const key = newKey(rng);
  const notAfterMs = WALL_START_MS + leftMs;
  const facts = {
    ...clientTemplate(name),
    publicKey: publicOf(key),
    issuer: 'cluster' as const,
    notBeforeMs: notAfterMs - YEAR_MS,
    notAfterMs,
  };
  return { cert: certificateText(facts), key };
}

/** At which one daemon finds its machine: where a certificate speaks of it, it is another one now and then. */
export function addressOf(o: { index: number; rng: SimRng; certificates: CertificateTuning | null }): string {
  const moved = o.certificates?.serving === true && o.rng.fork('address').chance(MOVED);
  return `192.0.2.${(moved ? MOVED_BY : 0) + o.index + 1}`;
}
const MOVED = 0.4;
const MOVED_BY = 100;

/** What is configured on such a node. */
export function identityConfig(o: { certificates: CertificateTuning | null; edge: EdgeTuning | null }): {
  flags: Partial<KubeletFlags>;
  config: Partial<KubeletConfiguration>;
} {
  const { certificates, edge } = o;
  const given = certificates?.serving === true ? { serverTLSBootstrap: true } : TLS;
  const { cacheMs = 0, anonymous = false } = edge ?? {};
  return {
    flags: certificates?.client === 'kept' ? { bootstrapKubeconfig: BOOTSTRAP } : {},
    config: {
      ...(certificates === null ? {} : { rotateCertificates: certificates.rotate }),
      ...(edge === null
        ? {}
        : {
            ...given,
            enableServer: true,
            authentication: {
              x509: { clientCAFile: CLIENT_CA },
              webhook: { enabled: true, cacheTTL: cacheMs },
              anonymous: { enabled: anonymous },
            },
            authorization: { mode: edge.authorization, webhook: { cacheAuthorizedTTL: cacheMs, cacheUnauthorizedTTL: cacheMs } },
          }),
    },
  };
}

/** The ways of one daemon to the API server, and its keys. */
export function identityPorts(o: {
  kube: SimKube;
  disk: SimDisk;
  name: string;
  rng: SimRng;
  certificates: CertificateTuning | null;
  /** It makes keys of pods, too. */
  podKeys: boolean;
  daemon: Parameters<SimKube['connect']>[0];
}): { kube: KubeApi; certificates?: Certificates } {
  const { certificates: tuning } = o;
  const daemon = { ...o.daemon, node: o.name };
  const keys = (client: ClientCredentials | null) => simCertificates({ rng: o.rng.fork('keys'), client });
  if (tuning === null) return { kube: o.kube.connect(daemon), ...(o.podKeys ? { certificates: keys(null) } : {}) };
  const kept = tuning.client === 'kept';
  const credentials = kept ? simCredentials({ disk: o.disk, path: pairPath('client'), monoMs: () => daemon.clock.monoMs() }) : undefined;
  const client: ClientCredentials | null = kept
    ? {
        bootstrap: o.kube.connect(daemon),
        kubeconfig: tuning.begins === 'none' ? WRITTEN_KUBECONFIG : null,
        renewNow: tuning.renewNow,
      }
    : null;
  return {
    kube: o.kube.connect({ ...daemon, ...(credentials === undefined ? {} : { credentials }) }),
    certificates: keys(client),
  };
}
