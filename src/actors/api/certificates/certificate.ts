/**
 * Keeps one of the node's certificates: the one it shows to the API server, or the one it serves with.
 *
 * State held: the present certificate's facts, the outstanding request and its key.
 * Lost on restart: the request and the key of a renewal: another is made. A first request is found again by its key.
 * Rebuilt from: the files in `--cert-dir`, the API server.
 */
import { fromCallback, fromPromise } from 'xstate';
import { certificateMachine } from '../../../machines/api/certificates/certificateMachine.ts';
import type { LookOutcome, SubmitOutcome } from '../../../machines/api/certificates/decide.ts';
import type { CertificateTemplate } from '../../../machines/api/certificates/messages.ts';
import type { Verdict } from '../../../machines/api/certificates/signing.ts';
import {
  BOOTSTRAP_WAIT_MS,
  type CertificateFacts,
  type CertificateUse,
  clientTemplate,
  SIGNERS,
  servingTemplate,
} from '../../../machines/api/certificates/template.ts';
import { apiAddr, apiView, type CertificateEvent } from '../../../machines/api/messages.ts';
import { serverAddr } from '../../../machines/edge/messages.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { kubePort } from '../client.ts';
import { CertificateRotation } from './rotation.ts';

export interface CertificateOptions {
  use: CertificateUse;
  nodeName: string;
  /** `--cert-dir`. */
  dir: string;
  /** Renew before the end. */
  rotate: boolean;
  /** Gate AllowDNSOnlyNodeCSR. */
  dnsOnly: boolean;
}

const SECOND_MS = 1000;
const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
/** Age that certificates had when they were replaced, in seconds. */
const AGE_BUCKETS = [60, HOUR_S, 4 * HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 90 * DAY_S, 180 * DAY_S, 360 * DAY_S, 4 * 360 * DAY_S];

const certificateId = (use: CertificateUse): string => (use === 'client' ? 'clientCertificate' : 'servingCertificate');

export function certificateSpec(o: CertificateOptions): ActorSpec<CertificateEvent> {
  return {
    type: 'actor',
    id: certificateId(o.use),
    mailbox: { capacity: 16, key: (e) => e.type },
    start: (ctx) => certificateActor(ctx, o),
  };
}

function certificateActor(ctx: ActorCtx<CertificateEvent>, o: CertificateOptions) {
  const { clock, certificates } = ctx.ports;
  if (certificates === undefined) throw new Error('there are no certificates to keep in standalone mode');
  const signer = SIGNERS[o.use];
  const rotation = new CertificateRotation(ctx, { use: o.use, dir: o.dir, certificates });
  const metrics = certificateMetrics(ctx, o.use);
  const kube = kubePort(ctx);
  let heldSinceMs = 0;
  let complained = '';
  const template = (): CertificateTemplate | null =>
    o.use === 'client'
      ? clientTemplate(o.nodeName)
      : servingTemplate(o.nodeName, ctx.registry.read(apiView.node)?.value.addresses ?? [], { dnsOnly: o.dnsOnly });

  const logic = provided(
    certificateMachine,
    {
      actors: {
        templates: fromCallback<{ type: 'none' }>(() => {
          if (o.use === 'client') return;
          let last = JSON.stringify(template());
          const watching = ctx.registry.watch(apiView.node, () => {
            const now = template();
            if (JSON.stringify(now) === last) return;
            last = JSON.stringify(now);
            // Through the mailbox: the publisher of the view does not run this actor.
            ctx.registry.send(ctx.self, { type: 'certificate.template', template: now });
          });
          return () => watching[Symbol.dispose]();
        }),
        load: fromPromise<CertificateFacts | null>(() => rotation.load()),
        prepare: fromPromise<void, { template: CertificateTemplate | null; first: boolean }>(async ({ input }) => {
          if (input.template !== null) await rotation.prepare(input.template, input);
        }),
        submit: fromPromise<SubmitOutcome, { first: boolean }>(({ input, signal }) => rotation.submit({ ...input, signal })),
        look: fromPromise<LookOutcome, { name: string; uid: string }>(({ input, signal }) => rotation.look(input, signal)),
        follow: fromPromise<Verdict | null, { name: string; uid: string; resourceVersion: string }>(({ input, signal }) =>
          rotation.follow(input, signal),
        ),
        store: fromPromise<CertificateFacts, { pem: string }>(({ input }) => rotation.store(input.pem)),
      },
      actions: {
        reportFailure: (_, { problem }) => {
          metrics.failed();
          if (complained !== problem) ctx.log.warn({ certificate: o.use }, `${problem}; it is tried again`);
          complained = problem;
        },
        dropKey: (_, { refused }) => {
          if (refused) rotation.forgetKey();
        },
        announce: (_, { stored, facts, deadlineMs }) => {
          metrics.holds(facts);
          if (!stored) {
            heldSinceMs = facts?.notBeforeMs ?? 0;
            return;
          }
          complained = '';
          if (o.use === 'serving' && heldSinceMs > 0) metrics.replaced((clock.wallMs() - heldSinceMs) / SECOND_MS);
          heldSinceMs = facts?.notBeforeMs ?? 0;
          const until = facts === null ? '' : new Date(facts.notAfterMs).toISOString();
          const fields = {
            certificate: o.use,
            file: rotation.file,
            until,
            ...(o.rotate ? { renewedFrom: new Date(deadlineMs).toISOString() } : {}),
          };
          ctx.log.info(fields, 'a new certificate is in use');
          if (o.use === 'serving') ctx.registry.send(serverAddr.https, { type: 'server.refresh' });
          else void useClientCertificate();
        },
      },
    },
    momentOf(ctx.ports),
  );

  const useClientCertificate = async (): Promise<void> => {
    await kube.reload?.();
    // The API server did answer just now, and what it is asked from here on it can answer.
    if (!ctx.signal.aborted) ctx.registry.send(apiAddr.link, { type: 'api.answered' });
  };
  const input = {
    ...{ use: o.use, rotate: o.rotate, template: template() },
    managed: o.use === 'serving' || certificates.client !== null,
    renewNow: o.use === 'client' && certificates.client?.renewNow === true && ctx.incarnation === 1,
    firstWaitMs: o.use === 'client' ? BOOTSTRAP_WAIT_MS : signer.waitMs,
    waitMs: signer.waitMs,
  };
  return { logic, input };
}

/** Under the reference's names. Seconds left are +Inf without a certificate and negative after its end. */
export function certificateMetrics({ ports, signal }: Pick<ActorCtx, 'ports' | 'signal'>, use: CertificateUse) {
  const { metrics, clock } = ports;
  const side = use === 'client' ? 'client' : 'server';
  const left = metrics.gauge(
    `kubelet_certificate_manager_${side}_ttl_seconds`,
    `Seconds until the kubelet's ${side} certificate ends; negative after its end, +Inf without one.`,
  );
  const errors = metrics.counter(
    use === 'client' ? 'kubelet_certificate_manager_client_expiration_renew_errors' : 'kubelet_server_expiration_renew_errors',
    `Failures to get or renew the kubelet's ${side} certificate.`,
  );
  const age =
    use === 'client'
      ? null
      : metrics.histogram(
          'kubelet_certificate_manager_server_rotation_seconds',
          'Seconds that the serving certificate had lived when it was replaced.',
          AGE_BUCKETS,
        );
  let facts: CertificateFacts | null = null;
  metrics.onCollect(() => {
    if (!signal.aborted) left.set(facts === null ? Number.POSITIVE_INFINITY : Math.trunc((facts.notAfterMs - clock.wallMs()) / SECOND_MS));
  }, `certificate.${use}`);
  return {
    failed: () => errors.inc(),
    holds: (now: CertificateFacts | null) => {
      facts = now;
    },
    replaced: (seconds: number) => age?.observe(seconds),
  };
}
