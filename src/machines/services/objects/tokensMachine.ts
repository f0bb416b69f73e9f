/**
 * Tokens of service accounts that pods of this node were given: one statechart per token, from its first request to the end of
 * its pod. A token is asked for again when somebody wants it and its time has come; until then the old one serves.
 */

import { assign, sendParent, setup } from 'xstate';
import type { ObjectResult, TokenRequest } from '../../kube/objects.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { stopAll } from '../../xstate/stopAll.ts';
import type { TokensEvent } from './messages.ts';
import { type HeldToken, tokenKey } from './tokenRules.ts';

/** How often tokens that expired and that nobody asked for are dropped. */
const TOKEN_SWEEP_MS = 60_000;

export type TokenOutcome = { ok: true; held: HeldToken } | { ok: false; message: string };
interface TokenContext {
  request: TokenRequest;
  held: HeldToken | null;
  /** Questions that wait for the answer of the API server. */
  asks: readonly number[];
}
type TokenEvent = { type: 'token.ask'; ask: number };
interface TokenReply {
  ask: number;
  result: ObjectResult<{ token: string }>;
}
interface TokenGone {
  type: 'token.gone';
  key: string;
}

const { setup: setupToken, facts } = setupWith();
const effects = setupToken({
  types: {
    context: {} as TokenContext,
    events: {} as TokenEvent,
    input: {} as { request: TokenRequest; ask: number },
  },
  actors: { request: unprovided<TokenOutcome, { request: TokenRequest }>() },
  actions: {
    reply: unprovidedAction<TokenReply>(),
    /** An old token goes on serving since a new one could not be had. */
    sayRefreshFailed: unprovidedAction<{ request: TokenRequest; message: string }>(),
  },
});

const tokenSetup = effects.extend({
  actions: {
    queue: assign(({ context, event }) => ({ asks: [...context.asks, event.ask] })),
    answerNow: effects.enqueueActions(({ context: { held }, event, enqueue }) => {
      if (held === null) return;
      enqueue({ type: 'reply', params: { ask: event.ask, result: { kind: 'found', value: { token: held.token } } } });
    }),
    settle: enqueuing(effects)(({ context, enqueue }, { outcome }: { outcome: TokenOutcome }) => {
      const { held, asks, request } = context;
      const live = held !== null && facts().wallMs < held.expiresAtMs ? held : null;
      let result: ObjectResult<{ token: string }>;
      if (outcome.ok) result = { kind: 'found', value: { token: outcome.held.token } };
      else if (live !== null) result = { kind: 'found', value: { token: live.token } };
      else {
        const what = held === null ? 'failed to fetch token' : 'token expired and refresh failed';
        result = { kind: 'failed', message: `${what}: ${outcome.message}` };
      }
      if (!outcome.ok && live !== null) enqueue({ type: 'sayRefreshFailed', params: { request, message: outcome.message } });
      for (const ask of asks) enqueue({ type: 'reply', params: { ask, result } });
      enqueue.assign({ held: outcome.ok ? outcome.held : held, asks: [] });
    }),
  },
  guards: {
    good: ({ context }) => context.held !== null && facts().wallMs < context.held.refreshAtMs,
    expired: ({ context }) => context.held === null || facts().wallMs >= context.held.expiresAtMs,
    neverHad: ({ context }, { outcome }: { outcome: TokenOutcome }) => context.held === null && !outcome.ok,
  },
});

export const tokenMachine = tokenSetup.createMachine({
  id: 'token',
  meta: projecting<TokenContext>(({ request, held, asks }) => ({
    ...{ namespace: request.namespace, serviceAccount: request.serviceAccount, asking: asks.length },
    expiresAtMs: held?.expiresAtMs ?? null,
    refreshAtMs: held?.refreshAtMs ?? null,
  })),
  context: ({ input }) => ({ request: input.request, held: null, asks: [input.ask] }),
  initial: 'requesting',
  states: {
    requesting: {
      meta: { reason: 'Requesting', message: 'the API server is being asked for a token' },
      invoke: {
        src: 'request',
        input: ({ context: { request } }) => ({ request }),
        onDone: [
          {
            guard: { type: 'neverHad', params: ({ event }) => ({ outcome: event.output }) },
            target: 'gone',
            actions: [{ type: 'settle', params: ({ event }) => ({ outcome: event.output }) }],
          },
          { target: 'held', actions: [{ type: 'settle', params: ({ event }) => ({ outcome: event.output }) }] },
        ],
      },
      on: { 'token.ask': { actions: ['queue'] } },
    },
    held: {
      meta: { reason: 'Held', message: 'given to whoever asks, until it is time for another' },
      after: {
        [TOKEN_SWEEP_MS]: [
          { guard: 'expired', target: 'gone' },
          { target: 'held', reenter: true },
        ],
      },
      on: {
        'token.ask': [
          { guard: 'good', actions: ['answerNow'] },
          { target: 'requesting', actions: ['queue'] },
        ],
      },
    },
    gone: {
      type: 'final',
      entry: [sendParent(({ context }): TokenGone => ({ type: 'token.gone', key: tokenKey(context.request) }))],
    },
  },
});

interface TokensContext {
  /** Id of the statechart and UID of the pod, by key. */
  tokens: ReadonlyMap<string, { machine: string; uid: string }>;
  lastId: number;
}

const tokensEffects = setup({
  types: { context: {} as TokensContext, events: {} as TokensEvent | TokenGone },
  actors: { token: tokenMachine },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<ObjectResult<{ token: string }>> }>(),
  },
});

const tokensSetup = tokensEffects.extend({
  actions: {
    ask: tokensEffects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.get') return;
      const { request, replyTo } = event;
      const key = tokenKey(request);
      const ask = context.lastId + 1;
      enqueue.assign({ lastId: ask });
      enqueue({ type: 'hold', params: { ask, replyTo } });
      const known = context.tokens.get(key);
      if (known !== undefined) {
        enqueue.sendTo(known.machine, { type: 'token.ask', ask } satisfies TokenEvent);
        return;
      }
      const machine = `token#${ask}`;
      enqueue.assign({ tokens: new Map(context.tokens).set(key, { machine, uid: request.pod.uid }) });
      enqueue.spawnChild('token', { id: machine, input: { request, ask } });
    }),
    forget: tokensEffects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.forget') return;
      const mine = [...context.tokens].filter(([, { uid }]) => uid === event.uid);
      enqueue(stopAll(mine.map(([, { machine }]) => machine)));
      const tokens = new Map(context.tokens);
      for (const [key] of mine) tokens.delete(key);
      enqueue.assign({ tokens });
    }),
    drop: tokensEffects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.gone') return;
      const tokens = new Map(context.tokens);
      tokens.delete(event.key);
      enqueue.assign({ tokens });
    }),
  },
  guards: { noneHeld: ({ context }) => context.tokens.size === 0 },
});

export const tokensMachine = tokensSetup.createMachine({
  id: 'tokens',
  meta: projecting<TokensContext>(({ tokens }) => ({ tokens: tokens.size })),
  context: () => ({ tokens: new Map(), lastId: 0 }),
  initial: 'empty',
  states: {
    empty: {
      meta: { reason: 'Ready', message: '' },
      on: { 'token.get': { target: 'holding', actions: ['ask'] } },
    },
    holding: {
      meta: { reason: 'Ready', message: ({ tokens }: TokensContext) => `${tokens.size} tokens are held for pods` },
      always: { guard: 'noneHeld', target: 'empty' },
      on: {
        'token.get': { actions: ['ask'] },
        'token.forget': { actions: ['forget'] },
        'token.gone': { actions: ['drop'] },
      },
    },
  },
});
