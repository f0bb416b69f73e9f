/**
 * State held: the tokens of service accounts that pods of this node were given. Secret.
 * Lost on restart: all of it; pods are given new tokens, and the old ones stay good for their time.
 * Rebuilt from: the volume manager's next questions.
 */

import { fromPromise } from 'xstate';
import type { ObjectResult, TokenRequest } from '../../../machines/kube/objects.ts';
import { kubePath } from '../../../machines/kube/request.ts';
import type { TokensEvent } from '../../../machines/services/objects/messages.ts';
import { toHeldToken, tokenFailure, tokenRequestBody } from '../../../machines/services/objects/tokenRules.ts';
import { type TokenOutcome, tokenMachine, tokensMachine } from '../../../machines/services/objects/tokensMachine.ts';
import { type Moment, momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { kubeClient } from '../../api/client.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

export interface TokensOptions {
  podsMax: number;
}

const TOKEN_TIMEOUT_MS = 30_000;

export function tokensSpec(o: TokensOptions): ActorSpec<TokensEvent> {
  return {
    type: 'actor',
    id: 'tokens',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 8 * o.podsMax + 64 },
    start: (ctx) => ({ logic: tokensLogic(tokensIo(ctx), momentOf(ctx.ports)) }),
  };
}

export interface TokensIo {
  request(request: TokenRequest, signal: AbortSignal): Promise<TokenOutcome>;
  refreshFailed(request: TokenRequest, message: string): void;
}

/** `moment`: of each token. */
export function tokensLogic(io: TokensIo, moment: () => Moment) {
  const replies = new Replies<ObjectResult<{ token: string }>>();
  const token = provided(
    tokenMachine,
    {
      actors: { request: fromPromise<TokenOutcome, { request: TokenRequest }>(({ input, signal }) => io.request(input.request, signal)) },
      actions: {
        reply: (_, { ask, result }) => replies.reply(ask, result),
        sayRefreshFailed: (_, { request, message }) => io.refreshFailed(request, message),
      },
    },
    moment,
  );
  return provided(tokensMachine, { actors: { token }, actions: { hold: (_, { ask, replyTo }) => replies.hold(ask, replyTo) } });
}

function tokensIo(ctx: ActorCtx<TokensEvent>): TokensIo {
  const { ports, log } = ctx;
  const client = kubeClient(ctx);
  return {
    async request(request, signal) {
      const path = kubePath.token(request.namespace, request.serviceAccount);
      const result = await client.request({ verb: 'POST', path, body: tokenRequestBody(request) }, { signal, timeoutMs: TOKEN_TIMEOUT_MS });
      if (!result.ok) return { ok: false, message: tokenFailure(path, result.failure) };
      const held = toHeldToken(result.body, ports.rng.next());
      return held === null ? { ok: false, message: `POST ${path} was answered without a token` } : { ok: true, held };
    },
    refreshFailed({ namespace, serviceAccount, pod }, message) {
      log.warn({ uid: pod.uid, namespace, serviceAccount, err: message }, 'no new token could be had; the pod keeps the one it has');
    },
  };
}
