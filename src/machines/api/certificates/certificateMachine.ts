/**
 * One of the node's certificates as a statechart: kept, and asked for anew in time (boot-and-node 6.4, 6.5). Everything
 * that waits is a state: for addresses, for approval, for the next attempt. Keys never enter it.
 */

import { assign } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import type { Moment } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { CertificateEvent } from '../messages.ts';
import {
  type CertificateContext,
  type CertificateInput,
  ended,
  faultOf,
  isDue,
  issuedPem,
  KEEP_MIN_MS,
  LOOK_AGAIN_MS,
  type LookOutcome,
  present,
  REFUSED_RETRY_MAX_MS,
  REFUSED_RETRY_MS,
  RELOAD_MS,
  RETRY_MAX_MS,
  RETRY_MS,
  refusal,
  type SubmitOutcome,
  WATCH_TRUST_MS,
  waitOf,
  when,
  words,
} from './decide.ts';
import { CERTIFICATE_MISSING, type CertificateTemplate } from './messages.ts';
import type { Verdict } from './signing.ts';
import { type CertificateFacts, rotationDeadlineMs, sameTemplate } from './template.ts';

type Done<T> = { event: { output: T } };
const thrown = {
  type: 'failed',
  params: ({ event }: { event: { error: unknown } }) => ({ problem: messageOf(event.error), refused: false }),
} as const;

type In = { context: CertificateContext };
const reportFailure = { type: 'reportFailure', params: ({ context }: In) => ({ problem: context.problem }) } as const;
const dropKey = { type: 'dropKey', params: ({ context }: In) => ({ refused: context.refused }) } as const;
/** `stored`: it is a new one. */
type Announced = Pick<CertificateContext, 'facts' | 'deadlineMs'> & { stored: boolean };
const announcing = (stored: boolean) =>
  ({ type: 'announce', params: ({ context: { facts, deadlineMs } }: In) => ({ stored, facts, deadlineMs }) }) as const;

const { setup, facts } = setupWith();
export const certificateMachine = setup({
  types: { context: {} as CertificateContext, input: {} as CertificateInput, events: {} as CertificateEvent },
  actors: {
    /** Says when the template changes. */
    templates: unprovidedCallback(),
    /** What is on disk; rejects when that cannot be told. */
    load: unprovided<CertificateFacts | null>(),
    /** Makes key and request; the key is kept outside. */
    prepare: unprovided<void, { template: CertificateTemplate | null; first: boolean }>(),
    submit: unprovided<SubmitOutcome, { first: boolean }>(),
    look: unprovided<LookOutcome, { name: string; uid: string }>(),
    /** Ends with a verdict that is not `pending`, or with null when the watch ended. */
    follow: unprovided<Verdict | null, { name: string; uid: string; resourceVersion: string }>(),
    /** Checks the certificate against its key and puts both on disk. */
    store: unprovided<CertificateFacts, { pem: string }>(),
  },
  actions: {
    /** Says once per problem, and counts. */
    reportFailure: unprovidedAction<{ problem: string }>(),
    /** Says so, and tells those who use it. */
    announce: unprovidedAction<Announced>(),
    /** The key of a request that was refused is used no more. */
    dropKey: unprovidedAction<{ refused: boolean }>(),
    took: assign(({ context }, p: { facts: CertificateFacts | null; fresh?: boolean }): Partial<CertificateContext> => {
      const moment = facts();
      const now = moment.wallMs;
      const same = p.facts !== null && p.facts.fingerprint === context.facts?.fingerprint;
      const drawnMs = p.facts === null ? 0 : same ? context.deadlineMs : rotationDeadlineMs(p.facts, moment.random);
      const keptMs = p.fresh === true && p.facts !== null ? now + Math.min(KEEP_MIN_MS, Math.max(0, p.facts.notAfterMs - now) / 2) : 0;
      const deadlineMs = Math.max(drawnMs, keptMs);
      return { facts: p.facts, deadlineMs };
    }),
    settled: assign({ failures: 0, problem: '', refused: false, request: null, renewNow: false }),
    failed: assign(
      ({ context }, p: { problem: string; refused: boolean }): Partial<CertificateContext> => ({
        problem: p.problem,
        refused: p.refused,
        // A first no, and a first failure, wait the shortest.
        failures: p.refused === context.refused ? context.failures + 1 : 1,
        request: null,
      }),
    ),
    retemplate: assign(({ event }): Partial<CertificateContext> => ({ template: event.template })),
    asks: assign(({ context }): Partial<CertificateContext> => ({ requested: context.template })),
  },
  guards: {
    due: ({ context }) => isDue(context, facts().wallMs),
    unmanaged: ({ context }) => !context.managed,
    templateless: ({ context }) => context.template === null,
    /** The outstanding request asks for what is wanted no more. */
    otherwise: ({ context, event }) => !sameTemplate(context.requested, event.template),
    good: ({ context }, p: { facts: CertificateFacts }) => faultOf(p.facts, context.template, facts().wallMs) === '',
  },
  delays: {
    retry: ({ context: c }) => {
      const [minMs, maxMs] = c.refused ? [REFUSED_RETRY_MS, REFUSED_RETRY_MAX_MS] : [RETRY_MS, RETRY_MAX_MS];
      return retryDelayMs({ minMs, maxMs, jitter: 0.1 }, c.failures - 1, facts().random);
    },
    patience: ({ context }) => waitOf(context, facts().wallMs),
    trust: WATCH_TRUST_MS,
    lookAgain: () => LOOK_AGAIN_MS * (1 + 0.2 * facts().random),
    rest: ({ context: c }) => {
      const untilMs = (c.rotate ? Math.min(c.deadlineMs, c.facts?.notAfterMs ?? 0) : (c.facts?.notAfterMs ?? 0)) - facts().wallMs;
      return Math.min(Math.max(untilMs, 1_000), RELOAD_MS);
    },
  },
}).createMachine({
  id: 'certificate',
  meta: projecting<CertificateContext>((c) => ({
    ...{ use: c.use, managed: c.managed, rotate: c.rotate, renewNow: c.renewNow },
    validUntil: c.facts === null ? null : when(c.facts.notAfterMs),
    renewedFrom: c.facts === null ? null : when(c.deadlineMs),
    request: c.request?.name ?? null,
    ...{ failures: c.failures, refused: c.refused, problem: c.problem },
  })),
  context: ({ input }) => ({
    ...input,
    ...{ facts: null, deadlineMs: 0, requested: null, request: null, resourceVersion: '' },
    ...{ failures: 0, refused: false, problem: '' },
  }),
  invoke: { src: 'templates' },
  initial: 'beginning',
  on: { 'certificate.template': { actions: ['retemplate'] } },
  states: {
    beginning: { always: [{ guard: 'unmanaged', target: 'unmanaged' }, { target: 'loading' }] },
    unmanaged: { meta: { reason: 'AsGiven', message: 'the credentials of the kubeconfig are used as they are' } },
    loading: {
      meta: { reason: 'Loading', message: (c: CertificateContext) => `reading the ${words(c)} from disk` },
      invoke: {
        src: 'load',
        onDone: {
          target: 'judging',
          actions: [{ type: 'took', params: ({ event }: Done<CertificateFacts | null>) => ({ facts: event.output }) }, announcing(false)],
        },
        onError: { target: 'backingOff', actions: [thrown, reportFailure] },
      },
    },
    judging: {
      always: [
        { guard: 'due', target: 'asking', actions: ['asks'] },
        { guard: 'templateless', target: 'unaddressed' },
        { target: 'resting' },
      ],
    },
    unaddressed: {
      meta: { reason: 'NoAddresses', message: 'the API server shows no address of this node yet: there is nothing to be certified' },
      on: { 'certificate.template': { target: 'judging', actions: ['retemplate'] } },
    },
    resting: {
      meta: {
        reason: 'Held',
        message: (c: CertificateContext, { wallMs }: Moment) =>
          `${present(c, wallMs)}${c.rotate ? `, renewed from ${when(c.deadlineMs)} on` : ''}`,
      },
      after: { rest: { target: 'loading' } },
      on: { 'certificate.template': { target: 'judging', actions: ['retemplate'] } },
    },
    asking: {
      initial: 'keying',
      on: { 'certificate.template': [{ guard: 'otherwise', target: 'judging', actions: ['retemplate'] }, { actions: ['retemplate'] }] },
      states: {
        keying: {
          meta: { reason: 'Keying', message: (c: CertificateContext) => `making a key for the next ${words(c)}` },
          invoke: {
            src: 'prepare',
            input: ({ context }) => ({ template: context.template, first: ended(context, facts().wallMs) }),
            onDone: { target: 'requesting' },
            onError: { target: '#certificate.backingOff', actions: [thrown, reportFailure] },
          },
        },
        requesting: {
          meta: { reason: 'Requesting', message: (c: CertificateContext) => `asking the API server for a ${words(c)}` },
          invoke: {
            src: 'submit',
            input: ({ context }) => ({ first: ended(context, facts().wallMs) }),
            onDone: [
              {
                guard: ({ event }) => event.output.ok,
                target: 'waiting',
                actions: assign(({ event }) => ({
                  request: event.output.ok ? { name: event.output.name, uid: event.output.uid } : null,
                })),
              },
              {
                target: '#certificate.backingOff',
                actions: [
                  { type: 'failed', params: ({ event }) => ({ problem: event.output.ok ? '' : event.output.problem, refused: false }) },
                  reportFailure,
                ],
              },
            ],
            onError: { target: '#certificate.backingOff', actions: [thrown, reportFailure] },
          },
        },
        waiting: {
          meta: {
            reason: 'WaitingForApproval',
            message: (c: CertificateContext, { wallMs }: Moment) =>
              `the certificate request ${c.request?.name ?? ''} waits to be approved and signed (kubectl certificate approve ${c.request?.name ?? ''}); ${present(c, wallMs)}${c.problem === '' ? '' : `; ${c.problem}`}`,
          },
          after: {
            patience: {
              target: '#certificate.backingOff',
              actions: [
                {
                  type: 'failed',
                  params: ({ context: c }) => ({
                    problem: `the certificate request ${c.request?.name ?? ''} was not answered within ${Math.round(waitOf(c, facts().wallMs) / 60_000)} min`,
                    refused: false,
                  }),
                },
                reportFailure,
              ],
            },
          },
          initial: 'looking',
          states: {
            looking: {
              invoke: {
                src: 'look',
                input: ({ context }) => context.request ?? { name: '', uid: '' },
                onDone: [
                  {
                    guard: ({ event }) => event.output.ok && event.output.verdict.kind === 'pending',
                    target: 'watching',
                    actions: assign(({ event }) => ({ problem: '', resourceVersion: event.output.ok ? event.output.resourceVersion : '' })),
                  },
                  { guard: ({ event }) => event.output.ok && event.output.verdict.kind === 'issued', target: '#certificate.storing' },
                  {
                    guard: ({ event }) => event.output.ok,
                    target: '#certificate.backingOff',
                    actions: [
                      { type: 'failed', params: ({ event }) => refusal(event.output.ok ? event.output.verdict : null) },
                      reportFailure,
                      dropKey,
                    ],
                  },
                  { target: 'pausing', actions: assign(({ event }) => ({ problem: event.output.ok ? '' : event.output.problem })) },
                ],
                onError: { target: 'pausing', actions: assign(({ event }) => ({ problem: messageOf(event.error) })) },
              },
            },
            watching: {
              after: { trust: { target: 'looking' } },
              invoke: {
                src: 'follow',
                input: ({ context }) => ({ ...(context.request ?? { name: '', uid: '' }), resourceVersion: context.resourceVersion }),
                onDone: [
                  { guard: ({ event }) => event.output?.kind === 'issued', target: '#certificate.storing' },
                  {
                    guard: ({ event }) => event.output !== null,
                    target: '#certificate.backingOff',
                    actions: [{ type: 'failed', params: ({ event }) => refusal(event.output) }, reportFailure, dropKey],
                  },
                  { target: 'pausing' },
                ],
                onError: { target: 'pausing', actions: assign(({ event }) => ({ problem: messageOf(event.error) })) },
              },
            },
            pausing: { after: { lookAgain: { target: 'looking' } } },
          },
        },
      },
    },
    storing: {
      meta: { reason: 'Storing', message: (c: CertificateContext) => `putting the new ${words(c)} on disk` },
      invoke: {
        src: 'store',
        input: ({ event }) => ({ pem: issuedPem(event) }),
        onDone: [
          {
            guard: { type: 'good', params: ({ event }: Done<CertificateFacts>) => ({ facts: event.output }) },
            target: 'judging',
            actions: [
              'settled',
              { type: 'took', params: ({ event }: Done<CertificateFacts>) => ({ facts: event.output, fresh: true }) },
              announcing(true),
            ],
          },
          {
            target: 'backingOff',
            actions: [
              { type: 'took', params: ({ event }: Done<CertificateFacts>) => ({ facts: event.output, fresh: true }) },
              announcing(true),
              {
                type: 'failed',
                params: ({ event, context }: Done<CertificateFacts> & { context: CertificateContext }) => ({
                  problem: faultOf(event.output, context.template, facts().wallMs),
                  refused: false,
                }),
              },
              reportFailure,
            ],
          },
        ],
        onError: { target: 'backingOff', actions: [thrown, reportFailure] },
      },
    },
    backingOff: {
      meta: {
        reason: (c: CertificateContext, { wallMs }: Moment) => (ended(c, wallMs) ? CERTIFICATE_MISSING : 'RenewalFailed'),
        message: (c: CertificateContext, { wallMs }: Moment) => `${present(c, wallMs)}; ${c.problem}; it is tried again`,
      },
      after: { retry: { target: 'loading' } },
      on: {
        'certificate.template': [{ guard: 'otherwise', target: 'judging', actions: ['retemplate'] }, { actions: ['retemplate'] }],
      },
    },
  },
});
