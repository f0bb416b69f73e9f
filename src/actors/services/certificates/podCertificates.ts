/**
 * Certificates of pods, for projected volumes: keys are made here, and a signer of the cluster signs them.
 *
 * State held: keys and certificates of the pods of this node. Secret.
 * Lost on restart: all of it; pods keep the files that they have until new ones are issued.
 * Rebuilt from: the volume manager's next questions.
 */

import { fromPromise } from 'xstate';
import { apiView } from '../../../machines/api/messages.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { CredentialBundle, ObjectResult, PodCertificate } from '../../../machines/kube/objects.ts';
import { failureText, isKubeObject, kubePath } from '../../../machines/kube/request.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { certificateRequestsView, type PodCertificatesEvent } from '../../../machines/services/certificates/messages.ts';
import {
  type CertificateFacts,
  podCertificateMachine,
  type RequestOutcome,
} from '../../../machines/services/certificates/podCertificateMachine.ts';
import { type PodCertificates, podCertificatesMachine } from '../../../machines/services/certificates/podCertificatesMachine.ts';
import { certificateRequest, certificateState, pendingRequest } from '../../../machines/services/certificates/rules.ts';
import { volumesAddr } from '../../../machines/services/volumes/messages.ts';
import { LazyMoment } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { gaugeRows } from '../../../ports/gaugeRows.ts';
import { InRotation } from '../../../ports/turns.ts';
import { Replies } from '../../supervision/mailbox/replies.ts';
import type { ActorCtx, ActorSpec, Registry } from '../../supervision/types.ts';
import { certificatesClient, certificatesPath } from './client.ts';

export interface PodCertificatesOptions {
  nodeName: string;
  podsMax: number;
}

const TIMEOUT_MS = 30_000;

export function podCertificatesSpec(o: PodCertificatesOptions): ActorSpec<PodCertificatesEvent> {
  // RSA keys take seconds each. Pods take turns, also after a restart of this actor.
  const rsaTurns = new InRotation();
  return {
    type: 'actor',
    id: 'podCertificates',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 8 * o.podsMax + 64 },
    start: (ctx) => ({ logic: logicOf(ctx, o, rsaTurns) }),
  };
}

class CertificateMoment extends LazyMoment implements CertificateFacts {
  readonly #registry: Registry;

  constructor({ ports, registry }: ActorCtx<PodCertificatesEvent>) {
    super(ports);
    this.#registry = registry;
  }
  get requests(): CertificateFacts['requests'] {
    return this.#registry.read(certificateRequestsView)?.value;
  }
  get pods(): CertificateFacts['pods'] {
    return this.#registry.read(podsView)?.value;
  }
}

function logicOf(ctx: ActorCtx<PodCertificatesEvent>, o: PodCertificatesOptions, rsaTurns: InRotation) {
  const { registry } = ctx;
  const replies = new Replies<ObjectResult<CredentialBundle>>();
  const request = requester(ctx, o, rsaTurns);
  const measure = measured(ctx);
  const certificate = provided(
    podCertificateMachine,
    {
      actors: {
        request: fromPromise<RequestOutcome, { certificate: PodCertificate }>(({ input, signal }) => request(input.certificate, signal)),
      },
      actions: {
        reply: (_, { ask, result }) => replies.reply(ask, result),
        say: (_, { certificate: { pod }, reason, message }) =>
          void registry.send(eventsAddr, { type: 'event.record', event: { type: 'Warning', reason, message, pod } }),
      },
    },
    () => new CertificateMoment(ctx),
  );
  return provided(podCertificatesMachine, {
    actors: { certificate },
    actions: {
      hold: (_, { ask, replyTo }) => replies.hold(ask, replyTo),
      markPod: (_, { uid }) => void registry.send(volumesAddr, { type: 'volumes.refresh', uid, changed: true }),
      publish: (_, { certificates }) => measure(certificates),
    },
  });
}

/** Makes a key, and asks for a certificate of it. */
function requester(ctx: ActorCtx<PodCertificatesEvent>, { nodeName }: PodCertificatesOptions, rsaTurns: InRotation) {
  const { ports, registry } = ctx;
  const client = certificatesClient(ctx);
  return async (certificate: PodCertificate, signal: AbortSignal): Promise<RequestOutcome> => {
    const failed = (message: string): RequestOutcome => ({ ok: false, message: `while creating PodCertificateRequest: ${message}` });
    const nodeUid = registry.read(apiView.node)?.value.uid ?? '';
    if (nodeUid === '') return failed('the node is not registered yet');
    if (ports.certificates === undefined) return failed('this node cannot make keys');
    const { namespace } = certificate.pod;
    const path = kubePath.serviceAccount(namespace, certificate.serviceAccount);
    const account = await client.request({ verb: 'GET', path }, { signal, timeoutMs: TIMEOUT_MS });
    if (!account.ok) return failed(`while fetching service account: ${failureText({ verb: 'GET', path }, account.failure)}`);
    const accountUid = isKubeObject(account.body) ? (account.body.metadata.uid ?? '') : '';
    const { certificates } = ports;
    const make = () => {
      signal.throwIfAborted();
      return certificates.podKey(certificate.keyType);
    };
    const { key, stub } = await (certificate.keyType.startsWith('RSA') ? rsaTurns.run(certificate.pod.uid, make) : make());
    const body = certificateRequest(certificate, { stub, nodeName, nodeUid, accountUid });
    const post = { verb: 'POST' as const, path: certificatesPath.requestsIn(namespace), body };
    const made = await client.request(post, { signal, timeoutMs: TIMEOUT_MS });
    if (!made.ok) return failed(failureText(post, made.failure));
    if (!isKubeObject(made.body)) return failed(`POST ${post.path} was answered without an object`);
    return { ok: true, request: pendingRequest(made.body, { key, wallMs: ports.clock.wallMs(), random: ports.rng.next() }) };
  };
}

/** Counted at each scrape: a certificate expires without a step of its chart. */
function measured({ ports: { metrics, clock } }: ActorCtx<PodCertificatesEvent>): (certificates: PodCertificates) => void {
  const help = 'Certificates of pods for projected volumes, by signer_name and state.';
  const show = gaugeRows(metrics.gauge('kubelet_podcertificate_states', help, ['signer_name', 'state']));
  let present: PodCertificates = new Map();
  metrics.onCollect(() => {
    const rows = [...present.values()].map(({ signerName: signer_name, told }) => {
      const state = certificateState(told ?? { refused: null, held: null }, clock.wallMs());
      return [{ signer_name, state }, 1] as const;
    });
    show(rows);
  }, 'podCertificates');
  return (certificates) => {
    present = certificates;
  };
}
