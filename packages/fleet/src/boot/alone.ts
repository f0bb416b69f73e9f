/** One process of a machine at a time has a shard of a fleet: two would both write the statuses of the same nodes. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Shard } from '../types.ts';
import { UsageError } from './args.ts';

/** What comes next says why an API server does not answer. */
const ASKED_MS = 10_000;

export interface Claimed {
  /** Of the API server. */
  server: string;
  /** Of its cluster, by whatever address it is asked; '': not known. */
  cluster?: string;
  fleet: string;
  shard: Shard;
}

/**
 * Until that is disposed of, or the process ends in whatever way: the claim is a socket in the abstract namespace of Linux, which is no
 * file. @throws UsageError where another process has it.
 */
export async function claimed({ server, cluster = '', fleet, shard: { index, count } }: Claimed): Promise<Disposable> {
  const what = count === 1 ? `the fleet ${fleet}` : `shard ${index}/${count} of the fleet ${fleet}`;
  const claim = await claimOf([addressOf(server), fleet, index, count]);
  const ofCluster = claim === null || cluster === '' ? claim : await claimOf([cluster, fleet, index, count]);
  if (claim !== null && ofCluster !== null) {
    return {
      [Symbol.dispose]() {
        claim[Symbol.dispose]();
        ofCluster[Symbol.dispose]();
      },
    };
  }
  claim?.[Symbol.dispose]();
  throw new UsageError(
    `${what} runs on this machine already, on the API server ${server}: stop it first, or choose another --name and --prefix`,
  );
}

/** What names the cluster, also where a proxy stands before it; '': the API server does not say. */
export async function clusterOf(kube: KubeApi, signal: AbortSignal): Promise<string> {
  const answer = await kube.request({ verb: 'GET', path: '/api/v1/namespaces/kube-system' }, { timeoutMs: ASKED_MS, signal });
  const { uid } = answer.ok && isRecord(answer.body) && isRecord(answer.body.metadata) ? answer.body.metadata : {};
  return typeof uid === 'string' ? uid : '';
}

/** `https://localhost/` is `https://127.0.0.1:443`. */
function addressOf(server: string): string {
  const { protocol, hostname, port, pathname } = new URL(server);
  const host = hostname === 'localhost' || hostname === '[::1]' ? '127.0.0.1' : hostname;
  return `${protocol}//${host}:${port || (protocol === 'https:' ? 443 : 80)}${pathname.replace(/\/$/, '')}`;
}

/** Null: another process has the claim of that key, or this one. */
export async function claimOf(key: readonly (string | number)[]): Promise<Disposable | null> {
  if (process.platform !== 'linux') return { [Symbol.dispose]() {} };
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('hex');
  // Nobody is served: who connects hears the end.
  const socket = createServer((connection) => connection.destroy()).unref();
  socket.listen(`\0actorlet-fleet-${hash}`);
  try {
    await once(socket, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return null;
  }
  return { [Symbol.dispose]: () => void socket.close() };
}
