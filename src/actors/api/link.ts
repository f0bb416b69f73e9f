/**
 * State held: whether the API server answers.
 * Lost on restart: that; it is asked again at once.
 * Rebuilt from: the API server's answer to `GET /version`.
 */

import { fromPromise } from 'xstate';
import { apiLinkMachine, LINK_PROBE_TIMEOUT_MS, type ProbeResult } from '../../machines/api/linkMachine.ts';
import { type ApiLinkEvent, type ApiLinkView, apiAddr, apiView } from '../../machines/api/messages.ts';
import { kubePath, wasAnswered } from '../../machines/kube/request.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { objectsAddr } from '../../machines/services/objects/messages.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { kubePort } from './client.ts';

export function apiLinkSpec(): ActorSpec<ApiLinkEvent> {
  return {
    type: 'actor',
    id: 'link',
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 64, key: (e) => e.type },
    start: (ctx) => linkActor(ctx),
  };
}

function linkActor(ctx: ActorCtx<ApiLinkEvent>) {
  const kube = kubePort(ctx);
  let announced: ApiLinkView | undefined;
  const logic = provided(
    apiLinkMachine,
    {
      actors: {
        probe: fromPromise<ProbeResult>(async ({ signal }) => {
          // Whatever it answers, a refusal too, it is there.
          const request = { verb: 'GET', path: kubePath.version } as const;
          const result = await kube.request(request, { class: 'heartbeat', timeoutMs: LINK_PROBE_TIMEOUT_MS, signal });
          if (result.ok || wasAnswered(result.failure)) return { ok: true };
          return { ok: false, reason: result.failure.reason, message: result.failure.message };
        }),
      },
      actions: {
        announce: (_, { state, server, reason }) => {
          if (announced?.state === state) return;
          const sinceMs = ctx.ports.clock.wallMs();
          const from = announced?.state ?? '';
          announced = { state, server, reason, sinceMs };
          ctx.log[state === 'lost' ? 'warn' : 'info']({ server, from, to: state, reason }, 'API server');
          ctx.publish(apiView.link, announced);
        },
        disconnect: () => {
          kube.closeConnections('kube');
          kube.closeConnections('event');
        },
        reportFound: () => {
          const { registry } = ctx;
          const { objects, serviceLister } = objectsAddr;
          for (const to of [apiAddr.lease, apiAddr.nodeWatch, apiAddr.nodeStatus, apiAddr.source, apiAddr.events, objects, serviceLister])
            registry.send(to, { type: 'api.found' });
          for (const uid of registry.read(statusesView)?.value.keys() ?? [])
            registry.send(apiAddr.podWriters, { type: 'pod.write', uid, urgent: true });
        },
      },
    },
    momentOf(ctx.ports),
  );
  return { logic, input: { server: kube.server } };
}
