/** The real surroundings of a fleet: clock, network, and the API server that one kubeconfig names. */

import { resolve } from 'node:path';
import type { BuildInfo } from '@actorlet/kubelet/actors/edge/metrics/nodeMetrics.ts';
import { createClock, createEntropy, createYield } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createCredentials } from '@actorlet/kubelet/boot/dependencies/kube/credentials.ts';
import { createKubeApi } from '@actorlet/kubelet/boot/dependencies/kube/kubeApi.ts';
import { CREDENTIAL_BYTES_MAX, type KubeConfigFile, readKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { speaksHttp2 } from '@actorlet/kubelet/boot/dependencies/kube/transport/alpn.ts';
import { Sessions } from '@actorlet/kubelet/boot/dependencies/kube/transport/sessions.ts';
import { createHost } from '@actorlet/kubelet/boot/dependencies/machine/host.ts';
import { createNet } from '@actorlet/kubelet/boot/dependencies/net/net.ts';
import { proxyOf } from '@actorlet/kubelet/boot/dependencies/net/proxy.ts';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import { GIT_VERSION, TARGET_MAJOR, TARGET_MINOR, versionInfo } from '@actorlet/kubelet/boot/version.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, HostFs, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { FleetWorld } from '../types.ts';
import type { EmbeddedApi } from './embedded/server.ts';
import { nodeCertificates } from './nodeCertificates.ts';
import { createStreams } from './streams.ts';

export interface WorldOptions {
  kubeconfig: string;
  /** TCP port of the APIs of all nodes; 0: none is served. */
  port: number;
  /** Unix socket for actorctl; '': none. */
  socket: string;
  /** At which the API server reaches it; '': this machine's first address. */
  address: string;
  /** Each node asks in its own name, as `system:node:NAME`: NodeRestriction and the Node authorizer judge it. */
  asNodes: boolean;
  /** One watch of each kind for all nodes, with the kubeconfig's own rights. */
  shareWatches: boolean;
  /** Each node asks for a certificate of its own with these credentials; '': it uses those of the kubeconfig. */
  bootstrapKubeconfig: string;
  log: Logger;
}

/** As a kubelet has by default. */
const NODE_LIMITS = { kube: { qps: 50, burst: 100 }, event: { qps: 50, burst: 100 } };
/** A fleet's own requests, few at a time. */
const OWN_LIMITS = { kube: { qps: 500, burst: 1_000 }, event: { qps: 0, burst: 0 } };
const BUILD: BuildInfo = {
  major: `${TARGET_MAJOR}`,
  minor: `${TARGET_MINOR}`,
  gitVersion: GIT_VERSION,
  gitCommit: '',
  buildDate: '',
  platform: '',
};
export const USER_AGENT = `actorlet-fleet/${GIT_VERSION} (${versionInfo().platform ?? ''})`;

export interface RealWorld extends FleetWorld {
  /** With the kubeconfig's own rights. */
  admin: KubeApi;
  /** Ends all connections to the API server. */
  close(): void;
}

/** @throws Error that names the kubeconfig and what is wrong with it. */
export async function realWorld(o: WorldOptions): Promise<RealWorld> {
  const { log } = o;
  const clock = createClock();
  const config = await readKubeConfig(o.kubeconfig);
  // One TLS context for all connections: each of its own would parse and keep the same certificates again.
  const credentials = createCredentials(config, { clock, log, env: process.env });
  const direct = proxyOf(config.server, config.proxy, process.env) === null;
  const http2 = direct && (await speaksHttp2(config.server, (await credentials.current()).context));
  const sessions = http2 ? new Sessions({ config, clock }) : undefined;
  const base = {
    config,
    clock,
    log,
    userAgent: USER_AGENT,
    credentials,
    env: process.env,
    ...(sessions === undefined ? {} : { sessions }),
  };
  const address = o.address || (createHost().addresses()[0]?.ip ?? '127.0.0.1');
  const streams = o.port === 0 ? undefined : await createStreams();
  const admin = createKubeApi({ ...base, ...OWN_LIMITS });
  // What is said of the kubeconfig is said once.
  const ofNodes = { ...NODE_LIMITS, log: quietLog };
  const identities =
    o.bootstrapKubeconfig === '' ? undefined : await nodeCertificates(o.bootstrapKubeconfig, { http2, base: { ...base, ...ofNodes } });
  const own = (node: string, disk: HostFs): KubeApi =>
    identities?.connect(node, disk) ??
    createKubeApi({
      ...base,
      ...ofNodes,
      ...(o.asNodes ? { impersonate: { user: `system:node:${node}`, group: 'system:nodes' } } : {}),
    });
  return {
    ...ofProcess(clock, log),
    address,
    socketPath: o.socket,
    serving: o.port === 0 ? null : { port: o.port, ...(await certificates(config, address, clock.wallMs())) },
    ...(streams === undefined ? {} : { stream: streams.offer }),
    ...(identities === undefined ? { kubeconfig: resolve(o.kubeconfig) } : { certificates: identities.certificates }),
    ...(o.shareWatches ? { sharedWatches: admin } : {}),
    connect: own,
    admin,
    close() {
      sessions?.close();
      identities?.close();
      streams?.close();
    },
  };
}

/** The surroundings of a fleet on an API server of this process. Its nodes serve no API: nothing there asks them. */
export function embeddedWorld(
  api: Pick<EmbeddedApi, 'connect' | 'admin'>,
  o: { clock: Clock; socket: string; log: Logger; kubeconfig?: string },
): RealWorld {
  const surroundings = ofProcess(o.clock, o.log);
  return {
    ...surroundings,
    ...(o.kubeconfig === undefined ? {} : { kubeconfig: o.kubeconfig }),
    address: '127.0.0.1',
    socketPath: o.socket,
    serving: null,
    connect: api.connect,
    admin: api.admin,
    close() {},
  };
}

function ofProcess(clock: Clock, log: Logger) {
  return { clock, entropy: createEntropy(), yield: createYield(), net: createNet(), log, nodeLog: () => quietLog, build: BUILD };
}

/** Nodes say what they do in their views and in the API; a thousand logs are none. */
export const quietLog: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quietLog };

/** One serving certificate for all nodes; clients are those whom the cluster's own authority vouches for. */
async function certificates(
  { ca }: KubeConfigFile,
  address: string,
  nowMs: number,
): Promise<{ cert: string; key: string; clientCa: string }> {
  const clientCa =
    ca === null
      ? ''
      : 'data' in ca
        ? ca.data.toString('utf8')
        : (await readRegular(ca.file, { bytesMax: CREDENTIAL_BYTES_MAX })).toString('utf8');
  return { ...(await selfSignedCertificate(address, nowMs)), clientCa };
}
