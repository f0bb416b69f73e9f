/**
 * Tokens of service accounts (resources and volumes 8.15): what is asked for, when one is asked for again, and what whoever
 * wants one is told. A row is a rule, or a little story told step by step.
 */
import { createActor } from 'xstate';
import { type TokensIo, tokensLogic } from '../../../../src/actors/services/objects/tokens.ts';
import type { ObjectResult, TokenRequest } from '../../../../src/machines/kube/objects.ts';
import type { KubeFailure } from '../../../../src/machines/kube/request.ts';
import { toHeldToken, tokenFailure, tokenKey, tokenRequestBody } from '../../../../src/machines/services/objects/tokenRules.ts';
import { momentOf } from '../../../../src/machines/xstate/facts.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { goldenTable } from '../table.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const REQUEST: TokenRequest = {
  namespace: 'ns',
  serviceAccount: 'robot',
  audiences: ['vault'],
  expirationSeconds: 3_600,
  pod: { name: 'web', uid: 'uid-1' },
};
const ISSUED_MS = Date.UTC(2026, 0, 1);
const iso = (ms: number): string => new Date(ms).toISOString();
const answer = (seconds: number, issuedMs = ISSUED_MS, token = 't') => ({
  spec: { expirationSeconds: seconds },
  status: { token, expirationTimestamp: iso(issuedMs + seconds * 1_000) },
});
/** Minutes after it was issued. */
const due = (seconds: number, random = 0) => {
  const held = toHeldToken(answer(seconds), random);
  return held === null ? null : { asked: (held.refreshAtMs - ISSUED_MS) / MINUTE, ends: (held.expiresAtMs - ISSUED_MS) / MINUTE };
};
const failure = (code: number, message: string): KubeFailure => ({
  code,
  reason: code === 0 ? 'NetworkError' : 'NotFound',
  message,
  outcome: 'failed',
});
const PATH = '/api/v1/namespaces/ns/serviceaccounts/robot/token';

type Step = { ask: TokenRequest } | { wait: number } | { forget: string };
const ask = (more: Partial<TokenRequest> = {}): Step => ({ ask: { ...REQUEST, ...more } });
const wait = (ms: number): Step => ({ wait: ms });
/** Tokens of an hour, numbered; `away` while the API server does not answer. */
const story =
  (answers: readonly ('token' | 'away' | 'gone')[], ...steps: Step[]) =>
  async () => {
    const time = virtualTime();
    const beganMs = time.clock.monoMs();
    const out: string[] = [];
    const say = (what: string) => void out.push(`${Math.round((time.clock.monoMs() - beganMs) / MINUTE)} min: ${what}`);
    let count = 0;
    const left = [...answers];
    const moment = momentOf({ clock: time.clock, rng: { next: () => 0 } });
    const io: TokensIo = {
      request: async (request) => {
        const what = left.shift() ?? 'token';
        say(`asked for one of ${request.pod.uid} for ${request.audiences.join() || 'the API server'}`);
        if (what !== 'token')
          return { ok: false, message: what === 'away' ? 'the API server is away' : 'serviceaccounts "robot" not found' };
        const held = toHeldToken(answer(3_600, time.clock.wallMs(), `token ${++count}`), 0);
        return held === null ? { ok: false, message: 'no token' } : { ok: true, held };
      },
      refreshFailed: (_, message) => say(`logged: ${message}`),
    };
    const root = createActor(tokensLogic(io, moment), {
      clock: time.clock,
    });
    root.start();
    const replyTo = Object.assign(
      (r: ObjectResult<{ token: string }>) => say(`told ${r.kind} ${r.kind === 'found' ? r.value.token : (r.message ?? '')}`),
      { signal: new AbortController().signal },
    );
    for (const step of steps) {
      if ('ask' in step) root.send({ type: 'token.get', request: step.ask, replyTo } as Parameters<typeof root.send>[0]);
      else if ('forget' in step) root.send({ type: 'token.forget', uid: step.forget });
      await time.advance('wait' in step ? step.wait : 0);
    }
    say(`${root.getSnapshot().context.tokens.size} kept`);
    root.stop();
    return out;
  };

goldenTable('tokens of service accounts are as recorded', 'services/tokens', {
  '8.15 the request': () => tokenRequestBody(REQUEST),
  '8.15 the key: the same again': () => tokenKey(REQUEST) === tokenKey({ ...REQUEST }),
  '8.15 the key: what makes another': () =>
    Object.fromEntries(
      Object.entries({
        account: { serviceAccount: 'other' },
        namespace: { namespace: 'other' },
        audiences: { audiences: [] },
        seconds: { expirationSeconds: 7_200 },
        pod: { pod: { name: 'web', uid: 'uid-2' } },
      }).map(([what, more]) => [what, tokenKey({ ...REQUEST, ...more }) !== tokenKey(REQUEST)]),
    ),
  '8.15 refresh: of an hour': () => due(3_600),
  '8.15 refresh: a little earlier by chance': () => due(3_600, 0.999),
  '8.15 refresh: of a day': () => due(24 * 3_600),
  '8.15 refresh: of thirty hours, exactly a day': () => due(30 * 3_600),
  '8.15 refresh: of a year, after a day': () => due(365 * 24 * 3_600),
  '8.15 refresh: by the life that the server gave': () => due(607),
  '8.15 answer: without a token': () => toHeldToken({ spec: { expirationSeconds: 600 }, status: {} }, 0),
  '8.15 answer: without an end': () => toHeldToken({ spec: { expirationSeconds: 600 }, status: { token: 't' } }, 0),
  '8.15 answer: of nothing': () => [null, 'x', {}].map((body) => toHeldToken(body, 0)),
  '8.15 failure: a server without the request': () => tokenFailure(PATH, failure(404, 'the server could not find the requested resource')),
  '8.15 failure: an account that is not there': () => tokenFailure(PATH, failure(404, 'serviceaccounts "robot" not found')),
  '8.15 failure: a pod that a server which has just started does not know': () => tokenFailure(PATH, failure(404, 'pods "web" not found')),
  '8.15 failure: refused': () => tokenFailure(PATH, failure(403, 'forbidden')),
  '8.15 failure: away': () => tokenFailure(PATH, failure(0, 'connect ECONNREFUSED')),
  '8.15 cache: served until it is due': story([], ask(), wait(47 * MINUTE), ask()),
  '8.15 cache: asked for again when it is due': story([], ask(), wait(48 * MINUTE), ask()),
  '8.15 cache: two at once are one request': story([], ask(), ask()),
  '8.15 cache: another audience, another pod': story([], ask(), ask({ audiences: [] }), ask({ pod: { name: 'web', uid: 'uid-2' } })),
  '8.15 refresh failure: nothing held': story(['away'], ask()),
  '8.15 refresh failure: nothing held, and asked again': story(['away', 'gone', 'token'], ask(), ask(), ask()),
  '8.15 refresh failure: the old one serves (trap 56)': story(
    ['token', 'away', 'token'],
    ask(),
    wait(50 * MINUTE),
    ask(),
    wait(MINUTE),
    ask(),
  ),
  '8.15 refresh failure: the old one has ended': story(['token', 'away'], ask(), wait(HOUR - 30_000), wait(30_000), ask()),
  '8.15 sweep: what has ended is dropped': story([], ask(), wait(HOUR + 2 * MINUTE)),
  '8.15 sweep: what has not ended is kept': story([], ask(), wait(59 * MINUTE)),
  '8.15 end of the volume: all of its pod go': story([], ask(), ask({ audiences: [] }), ask({ pod: { name: 'b', uid: 'uid-2' } }), {
    forget: 'uid-1',
  }),
});
