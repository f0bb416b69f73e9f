/** A proxy in front of an API server, with the faults that its clients meet, under a supervisor of its own. */
import { createCredentials } from '@actorlet/kubelet/boot/dependencies/kube/credentials.ts';
import { parseKubeConfig } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { ApiCalls } from '../../proxy/calls.ts';
import { faultsSpec } from '../../proxy/faults.ts';
import { type FaultAnswer, type FaultEvent, faultsAddr } from '../../proxy/messages.ts';
import { type ApiHit, ApiTrouble } from '../../proxy/trouble.ts';
import type { ApiFault } from '../../spec/apiFaults.ts';
import { ProgramTree } from '../plane/programTree.ts';
import { proxyKubeconfig } from './kubeconfig.ts';
import { ApiProxy, LOOPBACK } from './server.ts';
import { Upstream } from './upstream.ts';

/** A fault takes effect after its age at the latest, and that is a day. */
const ASK_TIMEOUT_MS = 48 * 3_600_000;
const VERSION_TIMEOUT_MS = 10_000;
/** Any list says the version of all objects. */
const ANY_LIST = '/api/v1/nodes';

/** `path`: where it was read, for its relative paths and for complaints. */
export interface KubeconfigText {
  path: string;
  text: string;
}

export interface StartProxyOptions {
  /** Of the API server. */
  kubeconfig: KubeconfigText;
  /** Asked for its version. */
  admin: KubeApi;
  clock: Clock;
  /** By which faults begin and end. Default: the other one. */
  faultClock?: Clock | undefined;
  log: Logger;
  seed: number;
  /** 0: a free one. */
  port: number;
  onFault(change: { name: string; kind: 'begins' | 'ends'; hits: number }): void;
  onHit?(hit: ApiHit): void;
}

export interface ClientProxy {
  readonly server: string;
  /** Text of the kubeconfig with which clients reach the API server through it. */
  readonly kubeconfig: string;
  readonly trouble: ApiTrouble;
  readonly calls: ApiCalls;
  /** Resolves when the fault has taken effect. @throws Error that says why it cannot. */
  inject(name: string, fault: ApiFault): Promise<void>;
  heal(name: string): void;
  state(): ActorView;
  close(): Promise<void>;
}

/** @throws Error that names the kubeconfig or the port, and what is wrong. */
export async function startProxy(o: StartProxyOptions): Promise<ClientProxy> {
  const { clock, log, faultClock = clock } = o;
  const { text, path } = o.kubeconfig;
  const config = parseKubeConfig(text, path);
  if (config.proxy !== null) throw new Error(`kubeconfig ${path}: proxy-url: a fault proxy does not go through another proxy`);
  const upstream = new Upstream(config, createCredentials(config, { clock, log, env: process.env }));
  const tls = await selfSignedCertificate(LOOPBACK, clock.wallMs());
  const trouble = new ApiTrouble({ nowMs: () => faultClock.monoMs(), onHit: (hit) => o.onHit?.(hit) });
  const calls = new ApiCalls(() => clock.monoMs());
  const server = new ApiProxy({ upstream, trouble, calls, tls, port: o.port, clock: faultClock });
  const faults = faultsSpec({
    trouble,
    rng: simRng(`api-faults-${o.seed}`),
    version: (signal) => versionOf(o.admin, signal),
    onChange: (change) => o.onFault({ ...change, hits: trouble.hitsOf(change.name) }),
  });
  const tree = new ProgramTree([server], { id: 'proxy', more: [faults], clock: faultClock });
  const close = async (): Promise<void> => {
    await tree.off(server.name, 'SIGTERM');
    await tree.stop();
    upstream.close();
  };
  try {
    await tree.on(server.name);
  } catch (error) {
    await close();
    throw error;
  }
  const url = `https://${LOOPBACK}:${server.port}`;
  return {
    server: url,
    kubeconfig: proxyKubeconfig({ text, path }, { server: url, ca: tls.cert }),
    trouble,
    calls,
    async inject(name, fault) {
      const event = (replyTo: ReplyTo<FaultAnswer>): FaultEvent => ({ type: 'fault.begin', name, fault, replyTo });
      const answer = await tree.registry.ask<FaultEvent, FaultAnswer>(faultsAddr, event, { timeoutMs: ASK_TIMEOUT_MS });
      const why = answer.kind === 'reply' ? answer.value : answer.reason;
      if (why !== null) throw new Error(why);
    },
    heal: (name) => void tree.registry.send(faultsAddr, { type: 'fault.heal', name }),
    state: () => tree.state(),
    close,
  };
}

async function versionOf(admin: KubeApi, signal: AbortSignal): Promise<string> {
  const answer = await admin.request({ verb: 'GET', path: ANY_LIST, query: { limit: '1' } }, { timeoutMs: VERSION_TIMEOUT_MS, signal });
  if (!answer.ok) throw new Error(`GET ${ANY_LIST}: ${answer.failure.message}`);
  const version = (answer.body as { metadata?: { resourceVersion?: unknown } }).metadata?.resourceVersion;
  if (typeof version !== 'string' || version === '') throw new Error(`GET ${ANY_LIST}: the list has no resourceVersion`);
  return version;
}
