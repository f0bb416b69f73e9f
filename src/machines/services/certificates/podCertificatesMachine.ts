/** Certificates of pods of this node: one statechart per certificate, from its first request to the end of its pod. */

import { setup } from 'xstate';
import type { CredentialBundle, ObjectResult } from '../../kube/objects.ts';
import type { ReplyTo } from '../../supervision/address.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { stopAll } from '../../xstate/stopAll.ts';
import type { PodCertificatesEvent } from './messages.ts';
import { type CertificateEvent, type CertificateGone, type CertificateTold, podCertificateMachine } from './podCertificateMachine.ts';
import { certificateKey } from './rules.ts';

interface Entry {
  /** Id of the statechart. */
  machine: string;
  uid: string;
  signerName: string;
  told: Omit<CertificateTold, 'type' | 'key' | 'changed'> | null;
}
export type PodCertificates = ReadonlyMap<string, Entry>;
interface Context {
  certificates: PodCertificates;
  lastId: number;
}

const effects = setup({
  types: { context: {} as Context, events: {} as PodCertificatesEvent | CertificateTold | CertificateGone },
  actors: { certificate: podCertificateMachine },
  actions: {
    /** Keeps what the answer of this question goes to. */
    hold: unprovidedAction<{ ask: number; replyTo: ReplyTo<ObjectResult<CredentialBundle>> }>(),
    /** Files of this pod are made of another certificate now. */
    markPod: unprovidedAction<{ uid: string }>(),
    /** For the metrics. */
    publish: unprovidedAction<{ certificates: PodCertificates }>(),
  },
});

const deciding = effects.extend({
  actions: {
    ask: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'certificate.get') return;
      const { certificate, replyTo } = event;
      const ask = context.lastId + 1;
      enqueue.assign({ lastId: ask });
      enqueue({ type: 'hold', params: { ask, replyTo } });
      const machine = context.certificates.get(certificateKey(certificate))?.machine ?? `certificate#${ask}`;
      if (!context.certificates.has(certificateKey(certificate))) {
        const entry = { machine, uid: certificate.pod.uid, signerName: certificate.signerName, told: null };
        enqueue.assign({ certificates: new Map(context.certificates).set(certificateKey(certificate), entry) });
        enqueue.spawnChild('certificate', { id: machine, input: { certificate } });
      }
      enqueue.sendTo(machine, { type: 'certificate.ask', ask } satisfies CertificateEvent);
    }),
    look: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'requests.changed') return;
      for (const { machine, told } of context.certificates.values()) {
        if (told === null || told.request === '') continue;
        enqueue.sendTo(machine, { type: 'request.look', gone: event.gone.includes(told.request) } satisfies CertificateEvent);
      }
    }),
    note: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'certificate.told') return;
      const { key, request, refused, held, changed } = event;
      const entry = context.certificates.get(key);
      if (entry === undefined) return;
      enqueue.assign({ certificates: new Map(context.certificates).set(key, { ...entry, told: { request, refused, held } }) });
      if (changed) enqueue({ type: 'markPod', params: { uid: entry.uid } });
    }),
    forget: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'certificate.forget') return;
      const mine = [...context.certificates].filter(([, { uid }]) => uid === event.uid);
      enqueue(stopAll(mine.map(([, { machine }]) => machine)));
      const left = new Map(context.certificates);
      for (const [key] of mine) left.delete(key);
      enqueue.assign({ certificates: left });
    }),
    drop: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'certificate.gone') return;
      const left = new Map(context.certificates);
      left.delete(event.key);
      enqueue.assign({ certificates: left });
    }),
  },
  guards: { noneHeld: ({ context }) => context.certificates.size === 0 },
});

const PUBLISH = { type: 'publish', params: ({ context: { certificates } }: { context: Context }) => ({ certificates }) } as const;

export const podCertificatesMachine = deciding.createMachine({
  id: 'podCertificates',
  meta: projecting<Context>(({ certificates }) => ({ certificates: certificates.size })),
  context: () => ({ certificates: new Map(), lastId: 0 }),
  initial: 'empty',
  states: {
    empty: {
      meta: { reason: 'Ready', message: '' },
      entry: [PUBLISH],
      on: { 'certificate.get': { target: 'holding', actions: ['ask', PUBLISH] } },
    },
    holding: {
      meta: { reason: 'Ready', message: ({ certificates }: Context) => `${certificates.size} certificates of pods` },
      always: { guard: 'noneHeld', target: 'empty' },
      on: {
        'certificate.get': { actions: ['ask', PUBLISH] },
        'certificate.forget': { actions: ['forget', PUBLISH] },
        'requests.changed': { actions: ['look'] },
        'certificate.told': { actions: ['note', PUBLISH] },
        'certificate.gone': { actions: ['drop', PUBLISH] },
      },
    },
  },
});
