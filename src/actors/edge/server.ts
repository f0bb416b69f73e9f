/** What every server of the edge shares: the actor that listens, a small router and the words of its errors. */

import { fromPromise } from 'xstate';
import type { ServerEvent } from '../../machines/edge/messages.ts';
import { serverMachine } from '../../machines/edge/serverMachine.ts';
import type { UsageLog } from '../../machines/edge/stats/usageLog.ts';
import type { Moment } from '../../machines/recorder/moment.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { Listening } from '../../ports/listening.ts';
import type { HttpReply, HttpRequest, Net } from '../../ports/sockets/net.ts';
import type { ActorCtx, ActorSpec, ActorState } from '../supervision/types.ts';

/** What the edge may look at besides the published views. The tree gives it. */
export interface Inspect {
  /** State of the whole tree: with thousands of pods it takes tens of milliseconds. */
  state(): ActorState;
  stateAt(path: string): ActorState | undefined;
  /** Entries of the flight recorder. */
  recorder: Moment['recorder'];
  /** Its lines from entry `from` on, the newest `limit` of them; `next` is where to go on. */
  recorderFrom?(from: number, filter: { path?: string; limit: number }): { next: number; lines: string[]; missed: number };
  /** The effective KubeletConfiguration (v1beta1 field names). */
  configz(): unknown;
  /** What every flag comes to, by name; nothing secret. Absent where there was no command line. */
  flagz?(): Readonly<Record<string, string>>;
  /** The chart of the actor at a path, and its state; null when there is no such machine now. */
  chart?: Moment['chart'];
  /** The states of a pod's worker and its calls of the runtime, as far as they are kept. */
  timeline?: Moment['timeline'];
  /** Absent: the inspection page is off. */
  page?(): InspectionPage;
  /** Which node this is. */
  identity?: { name: string; version: string; kubeconfig: string };
  /** When this node began. */
  started?: { wallMs: number; monoMs: number };
  /** What is secret of a pod, and a text without what is secret of any pod. Absent: this node keeps no texts of pods. */
  secrets?: { of(uid: string): readonly string[]; hidden(text: string): string; learn(secrets: readonly string[]): void };
  /** What was measured of pods lately. */
  usage?: UsageLog;
}

/** Whether the inspection page is served; the token lets its reader act on the node. */
export type InspectionPage =
  | { state: 'off' | 'starting' }
  | { state: 'served'; url: string; token: string }
  | { state: 'failed'; why: string };

type Handler = (req: HttpRequest) => Promise<HttpReply>;
interface HttpOptions {
  at: { host: string; port: number } | { socketPath: string; mode: number };
  handler: (ctx: ActorCtx<ServerEvent>) => Handler;
  /** How it listens. Default: `net.serveHttp`. */
  listen?: (net: Net, handler: Handler) => Promise<Listening>;
}
/** A server that listens in its own way, once per incarnation. */
interface OtherOptions {
  server: (ctx: ActorCtx<ServerEvent>) => Served;
}
interface Served {
  /** Rejects with a reason that names the flag: {@link naming}. */
  listen: () => Promise<Listening>;
  /** Only of a server with certificates: reads them again, uses them if they changed, and rejects with what is wrong with them. */
  refresh?: () => Promise<void>;
}
export type ServerOptions = (HttpOptions | OtherOptions) & {
  id: string;
  /** The flag or field that sets the address: named in every error about it. */
  flag: string;
  /** Whether what starts after it waits until it listens, or cannot. Default: yes. */
  awaited?: false;
};

/**
 * A server as an actor. It is ready when it listens, or when it was found that it cannot: pods do not wait for a port.
 * A taken address is logged with its flag, shown as the actor's reason, and tried again (100 ms, 500 ms, 2 s, then every 5 s).
 */
export function specOfServer(o: ServerOptions): ActorSpec<ServerEvent> {
  return {
    type: 'actor',
    id: o.id,
    shutdownMs: 2000,
    mailbox: { capacity: 16 },
    stopEvent: { type: 'server.close' },
    ...(o.awaited === false ? {} : { ready: { when: listeningOrBlocked, timeoutMs: 10_000 } }),
    start: (ctx) => {
      const served = servedBy(ctx, o);
      return { logic: serverLogic(ctx, o, served), input: { certificates: served.refresh !== undefined } };
    },
  };
}

function listeningOrBlocked(snapshot: unknown): boolean {
  if (typeof snapshot !== 'object' || snapshot === null || !('value' in snapshot)) return false;
  return snapshot.value === 'listening' || snapshot.value === 'blocked';
}

function serverLogic(ctx: ActorCtx<ServerEvent>, o: ServerOptions, { listen, refresh = async () => {} }: Served) {
  let open: Listening | null = null;
  const close = async () => {
    const server = open;
    open = null;
    await server?.close();
  };
  const closeAtTheEnd = () => {
    // An error that nobody takes would end the whole daemon.
    close().catch((error: unknown) => ctx.log.warn({ error: String(error) }, `${o.id} server: its listener did not close in order`));
  };
  ctx.signal.addEventListener('abort', closeAtTheEnd, { once: true });
  return provided(serverMachine, {
    actors: {
      listen: fromPromise(async () => {
        const server = await listen();
        if (ctx.signal.aborted) {
          await server.close();
          throw new Error('stopped while opening');
        }
        open = server;
        return server.address;
      }),
      refresh: fromPromise(refresh),
      close: fromPromise(close),
    },
    actions: {
      opened: (_, { address }) => ctx.log.info({ address }, `${o.id} server listens on ${address}`),
      reportBlocked: (_, { error }) => ctx.log.error({ flag: o.flag }, `${o.id} server: ${error}; it is tried again until it works`),
      reportRefresh: (_, { error }) => ctx.log.error({}, `${o.id} server keeps the certificates it has: ${error}`),
    },
  });
}

function servedBy(ctx: ActorCtx<ServerEvent>, o: ServerOptions): Served {
  if ('server' in o) return o.server(ctx);
  const { net } = ctx.ports;
  return {
    listen: () => {
      const handler = o.handler(ctx);
      return naming(o.flag, () => o.listen?.(net, handler) ?? net.serveHttp(o.at, handler));
    },
  };
}

/** What `listen` does; its errors name the flag that sets the address. */
export async function naming(flag: string, listen: () => Promise<Listening>): Promise<Listening> {
  try {
    return await listen();
  } catch (error) {
    throw new Error(`${flag}: ${messageOf(error)}`, { cause: error });
  }
}
