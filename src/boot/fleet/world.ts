/** The real surroundings of a fleet: clock, network, and the API server that one kubeconfig names. */

import { readFile } from 'node:fs/promises';
import type { BuildInfo } from '../../actors/edge/metrics/nodeMetrics.ts';
import { FLEET_LABEL } from '../../fleet/file.ts';
import type { FleetWorld } from '../../fleet/types.ts';
import { SharedWatches } from '../../fleet/watches/shared.ts';
import type { KubeFailure, KubeRequest } from '../../machines/kube/request.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import type { KubeApi } from '../../ports/kube.ts';
import type { Clock, Logger } from '../../ports/ports.ts';
import { createClock, createEntropy, createYield } from '../dependencies/clock.ts';
import { createCredentials } from '../dependencies/kube/credentials.ts';
import { createKubeApi } from '../dependencies/kube/kubeApi.ts';
import { type KubeConfigFile, readKubeConfig } from '../dependencies/kube/kubeconfig.ts';
import { Sessions } from '../dependencies/kube/transport/sessions.ts';
import { createHost } from '../dependencies/machine/host.ts';
import { createNet } from '../dependencies/net/net.ts';
import { proxyOf } from '../dependencies/net/proxy.ts';
import { selfSignedCertificate } from '../process/selfSigned.ts';
import { GIT_VERSION, TARGET_MAJOR, TARGET_MINOR, versionInfo } from '../version.ts';
import type { EmbeddedApi } from './embedded/server.ts';
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
const USER_AGENT = `actorlet-fleet/${GIT_VERSION} (${versionInfo().platform ?? ''})`;

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
  const sessions = proxyOf(config.server, config.proxy, process.env) === null ? new Sessions({ config, clock }) : undefined;
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
  const shared = o.shareWatches ? new SharedWatches(admin, clock) : undefined;
  const own = (node: string): KubeApi =>
    createKubeApi({
      ...base,
      ...NODE_LIMITS,
      ...(o.asNodes ? { impersonate: { user: `system:node:${node}`, group: 'system:nodes' } } : {}),
    });
  return {
    ...ofProcess(clock, log),
    address,
    socketPath: o.socket,
    serving: o.port === 0 ? null : { port: o.port, ...(await certificates(config, address, clock.wallMs())) },
    ...(streams === undefined ? {} : { stream: streams.offer }),
    connect: (node) => shared?.connect(own(node)) ?? own(node),
    admin,
    close() {
      sessions?.close();
      streams?.close();
    },
  };
}

/** The surroundings of a fleet on an API server of this process. Its nodes serve no API: nothing there asks them. */
export function embeddedWorld(api: Pick<EmbeddedApi, 'connect' | 'admin'>, o: { clock: Clock; socket: string; log: Logger }): RealWorld {
  const surroundings = ofProcess(o.clock, o.log);
  return {
    ...surroundings,
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
  const clientCa = ca === null ? '' : 'data' in ca ? ca.data.toString('utf8') : await readFile(ca.file, 'utf8');
  return { ...(await selfSignedCertificate(address, nowMs)), clientCa };
}

/** Name and fleet of every node that there is; fleet '' where it is of none. @throws Error with the API server's words. */
export async function nodesThere(kube: KubeApi, signal: AbortSignal): Promise<Map<string, string>> {
  const there = new Map<string, string>();
  let next = '';
  do {
    const query = { limit: '500', ...(next === '' ? {} : { continue: next }) };
    const list = await asked(kube, { verb: 'GET', path: '/api/v1/nodes', query }, signal);
    const { items, metadata } = isRecord(list) ? list : {};
    for (const item of Array.isArray(items) ? items : []) {
      const { name, labels } = isRecord(item) && isRecord(item.metadata) ? item.metadata : {};
      if (typeof name !== 'string') continue;
      const fleet = isRecord(labels) ? labels[FLEET_LABEL] : undefined;
      there.set(name, typeof fleet === 'string' ? fleet : '');
    }
    next = isRecord(metadata) && typeof metadata.continue === 'string' ? metadata.continue : '';
  } while (next !== '');
  return there;
}

/** Deletes these nodes; gives how many there were. @throws Error with the API server's words. */
export async function removeNodes(kube: KubeApi, names: readonly string[], signal: AbortSignal): Promise<number> {
  let removed = 0;
  const left = [...names];
  const work = async (): Promise<void> => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const gone = await asked(kube, { verb: 'DELETE', path: `/api/v1/nodes/${name}` }, signal);
      if (gone !== null) removed += 1;
    }
  };
  await Promise.all(Array.from({ length: REMOVED_AT_ONCE }, work));
  return removed;
}
const REMOVED_AT_ONCE = 16;
const NOT_FOUND = 404;
const ASKED_MS = 30_000;

/** Null: there is no such object. */
async function asked(kube: KubeApi, request: KubeRequest, signal: AbortSignal): Promise<unknown> {
  const answer = await kube.request(request, { timeoutMs: ASKED_MS, signal });
  if (answer.ok) return answer.body;
  if (answer.failure.code === NOT_FOUND) return null;
  throw new Error(`${request.verb} ${request.path}: ${wordsOf(answer.failure)}`);
}

function wordsOf({ reason, message }: KubeFailure): string {
  return reason === '' ? message : `${reason}: ${message}`;
}
