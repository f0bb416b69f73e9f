/**
 * The HTTP source: static pods polled from a URL, a Pod or a PodList in YAML or JSON.
 *
 * State held: digest and fault of the last body, failures in a row.
 * Lost on restart: both; the same document is then taken again, which changes nothing downstream.
 * Rebuilt from: the first answer of the URL. While it fails, the pods of the last good answer stay with podConfig.
 */

import { fromPromise } from 'xstate';
import { podConfigAddr } from '../../../machines/pods/podConfig/messages.ts';
import { type HttpPost, httpSourceMachine, type Poll } from '../../../machines/pods/sources/httpMachine.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { handlingDocument } from '../../../ports/handling.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { MANIFEST_BYTES_MAX } from './manifest.ts';

/** Time allowed for one request, body included (spec: pod lifecycle 1.3). */
const HTTP_SOURCE_TIMEOUT_MS = 10_000;

export interface HttpSourceOptions {
  url: string;
  /** Sent with each request; their values are secrets and are never logged. */
  headers: Record<string, string[]>;
  /** Milliseconds between requests (`httpCheckFrequency`, default 20 s). */
  checkFrequencyMs: number;
  nodeName: string;
  /** Refuse manifests that refer to API objects (gate PreventStaticPodAPIReferences). */
  preventApiReferences: boolean;
}

/** Without user information and query: both may hold secrets. */
function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? 'the static pod URL (not a valid URL)' : `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}

async function poll(ctx: ActorCtx, o: HttpSourceOptions, at: { digest: string; signal: AbortSignal }): Promise<Poll> {
  const { net, entropy } = ctx.ports;
  let body: Uint8Array;
  try {
    const answer = await net.httpGet(o.url, {
      headers: o.headers,
      timeoutMs: HTTP_SOURCE_TIMEOUT_MS,
      bytesMax: MANIFEST_BYTES_MAX,
      signal: at.signal,
    });
    if (answer.status !== 200) return { kind: 'failed', message: `HTTP status ${answer.status}, expected 200` };
    body = answer.body;
  } catch (error) {
    return { kind: 'failed', message: messageOf(error) };
  }
  const digest = entropy.sha256Hex(body);
  if (body.byteLength === 0) return { kind: 'empty', digest };
  if (digest === at.digest) return { kind: 'same' };
  return handlingDocument<Promise<Poll>>(ctx.ports, `url ${digest}`, {
    aside: async (why) => ({ kind: 'bad', message: `set aside: ${why}`, digest }),
    decode: () => decoded(ctx, o, { body, digest }),
  });
}

async function decoded({ ports }: ActorCtx, o: HttpSourceOptions, { body, digest }: { body: Uint8Array; digest: string }): Promise<Poll> {
  const { url: where, nodeName, preventApiReferences } = o;
  try {
    const result = await ports.documents.decode(body, { source: 'http', where, nodeName, preventApiReferences });
    return result.ok
      ? { kind: 'pods', pods: result.pods, notes: result.notes, digest }
      : { kind: 'bad', message: result.errors.join('; '), digest };
  } catch (error) {
    return { kind: 'failed', message: messageOf(error) };
  }
}

function post(ctx: ActorCtx, p: HttpPost): void {
  const { errors } = p;
  if (p.kind === 'errors') {
    ctx.registry.send(podConfigAddr, { type: 'source.errors', source: 'http', errors });
    return;
  }
  const causes = [{ atMs: ctx.ports.clock.wallMs(), by: ctx.path, what: p.change }];
  ctx.registry.send(podConfigAddr, { type: 'source.set', source: 'http', pods: p.pods, errors, causes });
}

/** `http` under `node/pods/sources`. */
export function httpSourceSpec(options: HttpSourceOptions): ActorSpec {
  return {
    id: 'http',
    type: 'actor',
    shutdownMs: 1_000,
    start: (ctx) => ({
      logic: provided(
        httpSourceMachine,
        {
          actors: {
            fetch: fromPromise<Poll, { digest: string }>(({ input, signal }) => poll(ctx, options, { digest: input.digest, signal })),
          },
          actions: {
            post: (_, params) => post(ctx, params),
            log: (_, { level, url, message }) => ctx.log[level]({ url }, message),
          },
        },
        momentOf(ctx.ports),
      ),
      input: { shown: shownUrl(options.url), checkFrequencyMs: options.checkFrequencyMs },
    }),
  };
}
