/**
 * The life of one certificate of a pod, with its key: asked for, issued, renewed in time, until its pod has gone. While a
 * new one is asked for, the old one serves. A signer that refuses is not asked again.
 */

import { assign, sendParent } from 'xstate';
import type { CredentialBundle, ObjectResult, PodCertificate } from '../../kube/objects.ts';
import type { KubeObject } from '../../kube/request.ts';
import { isRefused, type PodsView } from '../../pods/manager/messages.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import type { Moment } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import {
  type CertificateVerdict,
  certificateKey,
  certificateVerdict,
  type HeldCertificate,
  isExpired,
  isOverdue,
  type PendingRequest,
} from './rules.ts';

/** After a request that could not be made, or was removed. */
const RETRY = { minMs: 1_000, maxMs: 300_000, jitter: 0.2 } as const;
/** The clock is looked at this often: it may have been set, and a timer of months is more than there is. */
const LOOK_MS = 60_000;

export interface CertificateFacts extends Moment {
  /** Undefined: they were not listed yet. */
  readonly requests: ReadonlyMap<string, KubeObject> | undefined;
  readonly pods: PodsView | undefined;
}
export type RequestOutcome = { ok: true; request: PendingRequest } | { ok: false; message: string };
type CertificateSaid = 'Denied' | 'Failed' | 'CertificateOverdueForRefresh' | 'CertificateExpired';

export interface CertificateContext {
  certificate: PodCertificate;
  /** The present one. */
  held: HeldCertificate | null;
  /** Made and not answered. */
  request: PendingRequest | null;
  /** For good. */
  refused: 'denied' | 'failed' | null;
  /** What went wrong last; '' = nothing. */
  error: string;
  failures: number;
  /** What the pod's events say of the present one already. */
  said: readonly CertificateSaid[];
}
export type CertificateEvent =
  | { type: 'certificate.ask'; ask: number }
  /** Something became of requests. `gone`: ours was removed. */
  | { type: 'request.look'; gone: boolean };
export interface CertificateTold {
  type: 'certificate.told';
  key: string;
  /** `NAMESPACE/NAME`; '' = none. */
  request: string;
  refused: CertificateContext['refused'];
  held: Pick<HeldCertificate, 'beginRefreshAtMs' | 'notAfterMs'> | null;
  /** The pod's files are to be made anew. */
  changed: boolean;
}
export interface CertificateGone {
  type: 'certificate.gone';
  key: string;
}

const { setup, facts } = setupWith<CertificateFacts>();

function verdict({ request }: CertificateContext): CertificateVerdict {
  const { requests, wallMs, random } = facts();
  if (request === null || requests === undefined) return { kind: 'pending' };
  return certificateVerdict(request, requests.get(request.name), { wallMs, random });
}
/** Nobody wants it: its pod has ended, or is not there any more. */
function isOrphaned({ certificate }: CertificateContext): boolean {
  const { pods } = facts();
  if (pods === undefined || !pods.sourcesReady) return false;
  const record = pods.records.get(certificate.pod.uid);
  const phase = record?.worker?.phase;
  return record === undefined || isRefused(record) || phase === 'terminated' || phase === 'finished';
}
function answerOf({ held, error }: CertificateContext): ObjectResult<CredentialBundle> {
  if (held !== null) return { kind: 'found', value: { key: held.key, chain: held.chain } };
  return { kind: 'failed', message: error === '' ? 'credential bundle is not issued yet' : error };
}
function told(context: CertificateContext, changed: boolean): CertificateTold {
  const { certificate, request, refused, held } = context;
  const ends = held === null ? null : { beginRefreshAtMs: held.beginRefreshAtMs, notAfterMs: held.notAfterMs };
  return { type: 'certificate.told', key: certificateKey(certificate), request: request?.name ?? '', refused, held: ends, changed };
}

const effects = setup({
  types: { context: {} as CertificateContext, events: {} as CertificateEvent, input: {} as { certificate: PodCertificate } },
  actors: {
    /** Makes a key and asks for a certificate of it. */
    request: unprovided<RequestOutcome, { certificate: PodCertificate }>(),
  },
  actions: {
    reply: unprovidedAction<{ ask: number; result: ObjectResult<CredentialBundle> }>(),
    say: unprovidedAction<{ certificate: PodCertificate; reason: CertificateSaid; message: string }>(),
  },
});

const deciding = effects.extend({
  actions: {
    answer: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type === 'certificate.ask') enqueue({ type: 'reply', params: { ask: event.ask, result: answerOf(context) } });
    }),
    tell: sendParent(({ context }, params: { changed: boolean }) => told(context, params.changed)),
    /** Says once that a certificate is past its time. */
    remind: effects.enqueueActions(({ context: { certificate, held, said }, enqueue }) => {
      if (held === null) return;
      const { wallMs } = facts();
      const due = (reason: CertificateSaid, is: boolean, message: string): void => {
        if (is && !said.includes(reason)) enqueue({ type: 'say', params: { certificate, reason, message } });
      };
      const [overdue, expired] = [isOverdue(held, wallMs), isExpired(held, wallMs)];
      due('CertificateOverdueForRefresh', overdue, 'PodCertificate refresh overdue');
      due('CertificateExpired', expired, 'PodCertificate expired');
      enqueue.assign({
        said: [...(overdue ? ['CertificateOverdueForRefresh' as const] : []), ...(expired ? ['CertificateExpired' as const] : [])],
      });
    }),
    takeRequest: assign((_, params: { request: PendingRequest }) => ({ request: params.request })),
    fail: assign(({ context }, params: { error: string }) => ({ request: null, error: params.error, failures: context.failures + 1 })),
    take: assign(({ context }) => {
      const found = verdict(context);
      if (found.kind !== 'issued') return {};
      return { held: found.held, request: null, error: '', failures: 0, said: [] };
    }),
    refuse: enqueuing(effects)(({ context, enqueue }, _: undefined) => {
      const found = verdict(context);
      if (found.kind !== 'denied' && found.kind !== 'failed') return;
      const { certificate } = context;
      enqueue({ type: 'say', params: { certificate, reason: found.kind === 'denied' ? 'Denied' : 'Failed', message: found.said } });
      enqueue.assign({ refused: found.kind, error: found.words, held: null, request: null });
    }),
  },
  guards: {
    isDue: ({ context: { held } }) => held !== null && facts().wallMs >= held.beginRefreshAtMs,
    isOrphaned: ({ context }) => isOrphaned(context),
    wasIssued: ({ context }) => verdict(context).kind === 'issued',
    wasRefused: ({ context }) => ['denied', 'failed'].includes(verdict(context).kind),
    isGone: ({ context }) => verdict(context).kind === 'gone',
    saidGone: ({ event }) => event.type === 'request.look' && event.gone,
  },
  delays: {
    retry: ({ context }) => retryDelayMs(RETRY, context.failures, facts().random),
    due: ({ context: { held } }) => Math.min(Math.max((held?.beginRefreshAtMs ?? 0) - facts().wallMs, 0), LOOK_MS),
  },
});

const removed = (context: CertificateContext): string => `PodCertificateRequest "${context.request?.name ?? ''}" was deleted`;
const present = ({ held, error }: CertificateContext, what: string): string => {
  const old = held === null ? '' : `; the pod keeps the one that ends ${new Date(held.notAfterMs).toISOString()}`;
  return `${what}${old}${error === '' ? '' : `: ${error}`}`;
};

export const podCertificateMachine = deciding.createMachine({
  id: 'podCertificate',
  meta: projecting<CertificateContext>(({ certificate: c, held, request, refused, error, failures }) => ({
    ...{ pod: `${c.pod.namespace}/${c.pod.name}`, volume: c.volume, source: c.index, signerName: c.signerName, keyType: c.keyType },
    ...{ request: request?.name ?? null, refused, error, failures },
    beginRefreshAtMs: held?.beginRefreshAtMs ?? null,
    notAfterMs: held?.notAfterMs ?? null,
  })),
  context: ({ input }) => ({ ...input, held: null, request: null, refused: null, error: '', failures: 0, said: [] }),
  initial: 'requesting',
  on: { 'certificate.ask': { actions: ['answer'] } },
  states: {
    requesting: {
      meta: { reason: 'Requesting', message: (c: CertificateContext) => present(c, 'a key is made, and a certificate of it asked for') },
      entry: ['remind', { type: 'tell', params: { changed: false } }],
      invoke: {
        src: 'request',
        input: ({ context: { certificate } }) => ({ certificate }),
        onDone: [
          {
            guard: ({ event }) => event.output.ok,
            target: 'waiting',
            actions: [assign(({ event }) => (event.output.ok ? { request: event.output.request } : {}))],
          },
          {
            target: 'requestFailed',
            actions: [{ type: 'fail', params: ({ event }) => ({ error: event.output.ok ? '' : event.output.message }) }],
          },
        ],
        onError: { target: 'requestFailed', actions: [{ type: 'fail', params: ({ event }) => ({ error: messageOf(event.error) }) }] },
      },
    },
    requestFailed: {
      meta: { reason: 'RequestFailed', message: (c: CertificateContext) => present(c, 'a certificate is asked for again') },
      entry: ['remind', { type: 'tell', params: { changed: false } }],
      after: { retry: [{ guard: 'isOrphaned', target: 'gone' }, { target: 'requesting' }] },
    },
    waiting: {
      meta: {
        reason: 'WaitingForSigner',
        message: (c: CertificateContext) => present(c, `PodCertificateRequest ${c.request?.name ?? ''} waits for its signer`),
      },
      entry: ['remind', { type: 'tell', params: { changed: false } }],
      always: [
        { guard: 'wasIssued', target: 'issued', actions: ['take'] },
        { guard: 'wasRefused', target: 'refused', actions: ['refuse'] },
        {
          guard: 'isGone',
          target: 'requestFailed',
          actions: [{ type: 'fail', params: ({ context }) => ({ error: removed(context) }) }],
        },
      ],
      after: {
        [LOOK_MS]: [
          { guard: 'isOrphaned', target: 'gone' },
          { target: 'waiting', reenter: true },
        ],
      },
      on: {
        'request.look': [
          {
            guard: 'saidGone',
            target: 'requestFailed',
            actions: [{ type: 'fail', params: ({ context }) => ({ error: removed(context) }) }],
          },
          { target: 'waiting' },
        ],
      },
    },
    issued: {
      meta: {
        reason: 'Issued',
        message: ({ held }: CertificateContext) => (held === null ? '' : `until ${new Date(held.notAfterMs).toISOString()}`),
      },
      entry: [{ type: 'tell', params: { changed: true } }],
      initial: 'fresh',
      states: {
        fresh: {
          after: {
            due: [
              { guard: 'isOrphaned', target: '#podCertificate.gone' },
              { guard: 'isDue', target: '#podCertificate.requesting' },
              { target: 'fresh', reenter: true },
            ],
          },
        },
      },
    },
    refused: {
      meta: { reason: 'Refused', message: ({ error }: CertificateContext) => error },
      entry: [{ type: 'tell', params: { changed: true } }],
      after: { [LOOK_MS]: [{ guard: 'isOrphaned', target: 'gone' }, { target: 'refused' }] },
    },
    gone: {
      type: 'final',
      entry: [sendParent(({ context }): CertificateGone => ({ type: 'certificate.gone', key: certificateKey(context.certificate) }))],
    },
  },
});
