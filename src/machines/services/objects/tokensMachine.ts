/**
 * Tokens of service accounts that pods of this node were given: one statechart per token, from its first request to the end of
 * its pod. A token is asked for again when somebody wants it and its time has come; until then the old one serves.
 */

import { assign, enqueueActions, fromPromise, sendParent, setup } from 'xstate';
import type { ObjectResult, TokenRequest } from '../../kube/objects.ts';
import { factsOf, type Moment, reading } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import { perform, providing, unprovided } from '../../xstate/provide.ts';
import type { TokensEvent } from './messages.ts';
import { type HeldToken, tokenKey } from './tokenRules.ts';

/** How often tokens that expired and that nobody asked for are dropped. */
const TOKEN_SWEEP_MS = 60_000;

export type TokenOutcome = { ok: true; held: HeldToken } | { ok: false; message: string };
export interface TokensIo {
  request(request: TokenRequest, signal: AbortSignal): Promise<TokenOutcome>;
  /** An old token goes on serving since a new one could not be had. */
  refreshFailed(request: TokenRequest, message: string): void;
}
interface Asker {
  reply(result: ObjectResult<{ token: string }>): void;
}
interface TokenContext {
  request: TokenRequest;
  held: HeldToken | null;
  askers: readonly Asker[];
}
type TokenEvent = { type: 'token.ask'; asker: Asker };
interface TokenGone {
  type: 'token.gone';
  key: string;
}

const tokenSetup = setup({
  types: {
    context: {} as TokenContext,
    events: {} as TokenEvent,
    input: {} as { request: TokenRequest; asker: Asker },
  },
  actors: { request: unprovided<TokenOutcome, { request: TokenRequest }>() },
  actions: {
    queue: assign(({ context, event }) => ({ askers: [...context.askers, event.asker] })),
    answerNow: ({ context, event }) => {
      if (context.held !== null) event.asker.reply({ kind: 'found', value: { token: context.held.token } });
    },
    sayRefreshFailed: (_, _params: { message: string }) => {},
    settle: enqueueActions(({ context, event, enqueue }, { outcome }: { outcome: TokenOutcome }) => {
      const { held, askers } = context;
      const live = held !== null && factsOf(event).wallMs < held.expiresAtMs ? held : null;
      let result: ObjectResult<{ token: string }>;
      if (outcome.ok) result = { kind: 'found', value: { token: outcome.held.token } };
      else if (live !== null) result = { kind: 'found', value: { token: live.token } };
      else {
        const what = held === null ? 'failed to fetch token' : 'token expired and refresh failed';
        result = { kind: 'failed', message: `${what}: ${outcome.message}` };
      }
      if (!outcome.ok && live !== null) perform(enqueue, 'sayRefreshFailed', { message: outcome.message });
      for (const a of askers) enqueue(() => a.reply(result));
      enqueue.assign({ held: outcome.ok ? outcome.held : held, askers: [] });
    }),
  },
  guards: {
    good: ({ context, event }) => context.held !== null && factsOf(event).wallMs < context.held.refreshAtMs,
    expired: ({ context, event }) => context.held === null || factsOf(event).wallMs >= context.held.expiresAtMs,
    neverHad: ({ context }, { outcome }: { outcome: TokenOutcome }) => context.held === null && !outcome.ok,
  },
});

export const tokenMachine = tokenSetup.createMachine({
  id: 'token',
  meta: projecting<TokenContext>(({ request, held, askers }) => ({
    ...{ namespace: request.namespace, serviceAccount: request.serviceAccount, asking: askers.length },
    expiresAtMs: held?.expiresAtMs ?? null,
    refreshAtMs: held?.refreshAtMs ?? null,
  })),
  context: ({ input }) => ({ request: input.request, held: null, askers: [input.asker] }),
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

export const tokensMachine = setup({
  types: { context: {} as TokensContext, events: {} as TokensEvent | TokenGone },
  actors: { token: tokenMachine },
  actions: {
    ask: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.get') return;
      const { request, replyTo } = event;
      const key = tokenKey(request);
      const asker = { reply: replyTo };
      const known = context.tokens.get(key);
      if (known !== undefined) {
        enqueue.sendTo(known.machine, { type: 'token.ask', asker } satisfies TokenEvent);
        return;
      }
      const lastId = context.lastId + 1;
      const machine = `token#${lastId}`;
      enqueue.assign({ lastId, tokens: new Map(context.tokens).set(key, { machine, uid: request.pod.uid }) });
      enqueue.spawnChild('token', { id: machine, input: { request, asker } });
    }),
    forget: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.forget') return;
      const tokens = new Map(context.tokens);
      for (const [key, { machine, uid }] of context.tokens) {
        if (uid !== event.uid) continue;
        tokens.delete(key);
        enqueue.stopChild(machine);
      }
      enqueue.assign({ tokens });
    }),
    drop: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'token.gone') return;
      const tokens = new Map(context.tokens);
      tokens.delete(event.key);
      enqueue.assign({ tokens });
    }),
  },
}).createMachine({
  id: 'tokens',
  meta: projecting<TokensContext>(({ tokens }) => ({ tokens: tokens.size })),
  context: () => ({ tokens: new Map(), lastId: 0 }),
  initial: 'ready',
  on: {
    'token.get': { actions: ['ask'] },
    'token.forget': { actions: ['forget'] },
    'token.gone': { actions: ['drop'] },
  },
  states: {
    ready: {
      meta: {
        reason: 'Ready',
        message: ({ tokens }: TokensContext) => (tokens.size === 0 ? '' : `${tokens.size} tokens are held for pods`),
      },
    },
  },
});

/** `moment`: comes with each event of a token's statechart. */
export const tokensWith = (io: TokensIo, moment: () => Moment): typeof tokensMachine => {
  const token = providing(tokenMachine, {
    actors: { request: fromPromise<TokenOutcome, { request: TokenRequest }>(({ input, signal }) => io.request(input.request, signal)) },
    actions: { sayRefreshFailed: ({ context }, { message }) => io.refreshFailed(context.request, message) },
  });
  return providing(tokensMachine, { actors: { token: reading(token, moment) } });
};
