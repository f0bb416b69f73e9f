/**
 * Client certificates of nodes: each node asks for its own with the credentials of `--bootstrap-kubeconfig`, keeps it on the disk of its
 * machine and renews it, as a kubelet does. So the API server judges each node by its own certificate.
 */

import { CertificateStore } from '@actorlet/kubelet/actors/api/certificates/store.ts';
import { createPki } from '@actorlet/kubelet/boot/dependencies/certificates/pki.ts';
import { type Credentials, contextOf, type Loaded } from '@actorlet/kubelet/boot/dependencies/kube/credentials.ts';
import { createKubeApi, type KubeApiOptions } from '@actorlet/kubelet/boot/dependencies/kube/kubeApi.ts';
import { CREDENTIAL_BYTES_MAX, readKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { Sessions } from '@actorlet/kubelet/boot/dependencies/kube/transport/sessions.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Certificates } from '@actorlet/kubelet/ports/certificates.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, HostFs } from '@actorlet/kubelet/ports/ports.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { UsageError } from './args.ts';

/** The default of `--cert-dir`. */
const CERT_DIR = '/var/lib/kubelet/pki';
/** A renewed certificate is used within this time. */
const CHECK_MS = 10_000;
/** As of any client that says nothing about it; only certificate requests go through it. */
const BOOTSTRAP_LIMITS = { kube: { qps: 0, burst: 0 }, event: { qps: 0, burst: 0 } };

export interface NodeCertificates {
  /** The port of every node. */
  certificates: Certificates;
  /** The way of one node, with the certificate on this disk. */
  connect(node: string, disk: HostFs): KubeApi;
  close(): void;
}

/** `base`: of the cluster; its credentials are not used. @throws UsageError where the bootstrap kubeconfig cannot be used. */
export async function nodeCertificates(path: string, o: { http2: boolean; base: KubeApiOptions }): Promise<NodeCertificates> {
  const { credentials: _, sessions: __, ...base } = o.base;
  const { clock } = base;
  const config = await readKubeConfig(path).catch((error: unknown) => {
    throw new UsageError(`--bootstrap-kubeconfig: ${messageOf(error)}`);
  });
  const bootstrap = createKubeApi({ ...base, config, ...BOOTSTRAP_LIMITS });
  const ways = new Map<string, { credentials: Credentials; sessions?: Sessions }>();
  const { ca } = base.config;
  const authority = ca === null ? undefined : 'data' in ca ? ca.data : await readRegular(ca.file, { bytesMax: CREDENTIAL_BYTES_MAX });
  const wayOf = (node: string, disk: HostFs) => {
    const there = ways.get(node);
    if (there !== undefined) return there;
    // Connections belong to one certificate, so to one node.
    const sessions = o.http2 ? { sessions: new Sessions({ config: base.config, clock }) } : {};
    const way = { credentials: onDisk(disk, { clock, ca: authority }), ...sessions };
    ways.set(node, way);
    return way;
  };
  return {
    certificates: { ...createPki(), client: { bootstrap, kubeconfig: null, renewNow: false } },
    connect: (node, disk) => createKubeApi({ ...base, ...wayOf(node, disk) }),
    close() {
      for (const { sessions } of ways.values()) sessions?.close();
      bootstrap.close();
    },
  };
}

/** The certificate that a node keeps in the layout of kubelets. Until it has one, its calls fail. */
function onDisk(disk: HostFs, { clock, ca }: { clock: Clock; ca: Buffer | undefined }): Credentials {
  const store = new CertificateStore(disk, { dir: CERT_DIR, prefix: 'kubelet-client' });
  let loaded: (Loaded & { pem: Buffer }) | undefined;
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  return {
    async current() {
      if (loaded !== undefined && clock.monoMs() - checkedAtMs < CHECK_MS) return loaded;
      const read = await store.read();
      if (read === null) throw new Error('this node has no client certificate yet');
      checkedAtMs = clock.monoMs();
      const pem = Buffer.from(read);
      if (loaded?.pem.equals(pem) === true) return loaded;
      const tls = { ...(ca === undefined ? {} : { ca }), cert: pem, key: pem };
      loaded = { pem, generation: (loaded?.generation ?? 0) + 1, tls, context: contextOf(tls), token: '' };
      return loaded;
    },
    suspect() {
      checkedAtMs = Number.NEGATIVE_INFINITY;
      return false;
    },
  };
}
