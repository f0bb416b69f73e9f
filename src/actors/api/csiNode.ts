/**
 * Tells the cluster which CSI drivers are on this node.
 *
 * State held: which drivers were seen, to know those that have gone.
 * Lost on restart: that; what a driver that went meanwhile left stays until it comes again.
 * Rebuilt from: the view of drivers, the objects in the API server.
 */
import { fromPromise } from 'xstate';
import { csiNodeMachine, csiNodeUpdate, newCsiNode, nodeMetadataPatch } from '../../machines/api/csiNodeMachine.ts';
import { apiAddr, apiView, type CsiNodeEvent } from '../../machines/api/messages.ts';
import { failureText, type KubeRequest, kubePath } from '../../machines/kube/request.ts';
import { driversView } from '../../machines/services/plugins/messages.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { kubeClient } from './client.ts';

export interface CsiNodeOptions {
  nodeName: string;
}

/** An update for what goes and one for what comes, and somebody else's in between. */
const ROUNDS_MAX = 4;

export function csiNodeSpec(o: CsiNodeOptions): ActorSpec<CsiNodeEvent> {
  return {
    type: 'actor',
    id: 'csiNode',
    mailbox: { capacity: 16, key: (e) => e.type },
    start(ctx) {
      const seen = new Set<string>();
      const look = () => ctx.registry.send(apiAddr.csiNode, { type: 'csiNode.look' });
      let uid = ctx.registry.read(apiView.node)?.value.uid ?? '';
      const watching = [
        ctx.registry.watch(driversView, look),
        ctx.registry.watch(apiView.node, () => {
          const now = ctx.registry.read(apiView.node)?.value.uid ?? '';
          // A node that was made anew knows nothing of what the one before was told.
          if (now !== uid) look();
          uid = now;
        }),
      ];
      ctx.signal.addEventListener('abort', () => watching.map((w) => w[Symbol.dispose]()), { once: true });
      let complained = '';
      const logic = provided(
        csiNodeMachine,
        {
          actors: {
            converge: fromPromise<void>(async ({ signal }) => {
              await converge(ctx, { nodeName: o.nodeName, seen }, signal);
              complained = '';
            }),
          },
          actions: {
            sayFailed: (_, { error }) => {
              if (error !== complained)
                ctx.log.warn({ err: error }, 'the cluster was not told which CSI drivers are on this node; it is tried again');
              complained = error;
            },
          },
        },
        momentOf(ctx.ports),
      );
      return { logic };
    },
  };
}

async function converge(ctx: ActorCtx<CsiNodeEvent>, o: { nodeName: string; seen: Set<string> }, signal: AbortSignal): Promise<void> {
  const node = ctx.registry.read(apiView.node)?.value;
  const view = ctx.registry.read(driversView)?.value;
  // Nothing can be said of a node that is not there, and a change of either is told.
  if (node === undefined || node.uid === '' || view === undefined) return;
  for (const name of view.keys()) o.seen.add(name);
  const drivers = [...view.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const input = { node: { name: o.nodeName, uid: node.uid }, drivers, gone: new Set([...o.seen].filter((name) => !view.has(name))) };
  const ask = async (request: KubeRequest) => ({ request, ...(await kubeClient(ctx).request(request, { signal })) });
  const need = async (request: KubeRequest): Promise<Record<string, unknown>> => {
    const result = await ask(request);
    if (!result.ok) throw new Error(failureText(request, result.failure));
    if (!isRecord(result.body)) throw new Error(`${request.verb} ${request.path} gave no object`);
    return result.body;
  };
  const found = await need({ verb: 'GET', path: kubePath.node(o.nodeName) });
  const metadata = (isRecord(found.metadata) ? found.metadata : {}) as Parameters<typeof nodeMetadataPatch>[0];
  const { patch, conflicts } = nodeMetadataPatch(metadata, input);
  for (const conflict of conflicts) ctx.log.warn({ node: o.nodeName }, `${conflict}; the label stays as it is`);
  if (patch !== null) await need({ verb: 'PATCH', path: kubePath.node(o.nodeName), body: patch, patchType: 'strategic' });
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const held = await ask({ verb: 'GET', path: kubePath.csiNode(o.nodeName) });
    if (!held.ok && held.failure.code !== 404) throw new Error(failureText(held.request, held.failure));
    if (!held.ok) {
      await need({ verb: 'POST', path: kubePath.csiNodes, body: newCsiNode(input) });
      return;
    }
    const next = isRecord(held.body) ? csiNodeUpdate(held.body, input) : null;
    if (next === null) return;
    await need({ verb: 'PUT', path: kubePath.csiNode(o.nodeName), body: next });
  }
  throw new Error(`CSINode ${o.nodeName} is not as it should be after ${ROUNDS_MAX} updates`);
}
