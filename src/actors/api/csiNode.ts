/**
 * Tells the cluster which CSI drivers are on this node.
 *
 * State held: which drivers were seen, to know those that have gone; when each is asked again how many volumes it can take.
 * Lost on restart: that; what a driver that went meanwhile left stays until it comes again.
 * Rebuilt from: the view of drivers, the objects in the API server.
 */
import { fromPromise } from 'xstate';
import { csiNodeMachine, csiNodeUpdate, newCsiNode, nodeMetadataPatch, ownsCsiNode, renewals } from '../../machines/api/csiNodeMachine.ts';
import { apiAddr, apiView, type CsiNodeEvent } from '../../machines/api/messages.ts';
import { allocatablePeriodMs } from '../../machines/kube/read/csiDriver.ts';
import { failureText, isKubeObject, type KubeRequest, kubePath } from '../../machines/kube/request.ts';
import { driversView, pluginsAddr } from '../../machines/services/plugins/messages.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import { listOf, partOf, recordOf, textOf } from '../../machines/shape/lenient.ts';
import { momentOf } from '../../machines/xstate/facts.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { kubeClient } from './client.ts';

/** An update for what goes and one for what comes, and somebody else's in between. */
const ROUNDS_MAX = 5;

export function csiNodeSpec(o: { nodeName: string }): ActorSpec<CsiNodeEvent> {
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
      let due: ReadonlyMap<string, number> = new Map();
      const rules = new DriverRules(ctx);
      let told: Told | null = null;
      const logic = provided(
        csiNodeMachine,
        {
          actors: {
            converge: fromPromise<number | null>(async ({ signal }) => {
              const now = toldNow(ctx);
              // As in the kubelet, nothing is asked of the API while neither the drivers nor the node have changed.
              if (told === null || told.uid !== now.uid || told.drivers !== now.drivers) {
                await converge(ctx, { nodeName: o.nodeName, seen }, signal);
                told = now;
              }
              due = renewDrivers(ctx, { due, periods: await rules.periods(signal) });
              complained = '';
              return due.size === 0 ? null : Math.max(0, Math.min(...due.values()) - ctx.ports.clock.monoMs());
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

/** What the API server was told of. */
interface Told {
  uid: string | undefined;
  drivers: unknown;
}
const toldNow = ({ registry }: ActorCtx<CsiNodeEvent>): Told => ({
  uid: registry.read(apiView.node)?.value.uid,
  drivers: registry.read(driversView)?.value,
});

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
  let inPlace = true;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const held = await ask({ verb: 'GET', path: kubePath.csiNode(o.nodeName) });
    if (!held.ok && held.failure.code !== 404) throw new Error(failureText(held.request, held.failure));
    if (!held.ok) {
      await need({ verb: 'POST', path: kubePath.csiNodes, body: newCsiNode(input) });
      return;
    }
    if (!isKubeObject(held.body)) throw new Error(`GET ${held.request.path} gave no object`);
    if (!ownsCsiNode(held.body, input.node)) {
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: held.body.metadata.uid } };
      const gone = await ask({ verb: 'DELETE', path: held.request.path, body });
      if (!gone.ok && gone.failure.code !== 404) throw new Error(failureText(gone.request, gone.failure));
      ctx.log.info({ node: o.nodeName }, 'the CSINode of an earlier node of this name was removed; another is made');
      continue;
    }
    const next = csiNodeUpdate(held.body, { ...input, inPlace });
    if (next === null) return;
    const put = await ask({ verb: 'PUT', path: kubePath.csiNode(o.nodeName), body: next });
    if (put.ok) continue;
    // An API server of before 1.34 lets no entry be changed.
    if (put.failure.code !== 422 || !inPlace) throw new Error(failureText(put.request, put.failure));
    inPlace = false;
  }
  throw new Error(`CSINode ${o.nodeName} is not as it should be after ${ROUNDS_MAX} updates`);
}

/** CSIDriver objects are listed this often. The kubelet watches them, and opens that watch anew more often. */
const RULES_READ_MS = 1_200_000;

/** The periods of the drivers on this node, by name, from one list in {@link RULES_READ_MS} or when there are other drivers. */
class DriverRules {
  readonly #ctx: ActorCtx<CsiNodeEvent>;
  #names = '';
  #readAtMonoMs = 0;
  #periods: ReadonlyMap<string, number> = new Map();

  constructor(ctx: ActorCtx<CsiNodeEvent>) {
    this.#ctx = ctx;
  }

  async periods(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const { ports, registry } = this.#ctx;
    const here = [...(registry.read(driversView)?.value.keys() ?? [])].sort();
    if (here.length === 0) return new Map();
    const names = here.join('\n');
    const nowMonoMs = ports.clock.monoMs();
    if (names === this.#names && nowMonoMs < this.#readAtMonoMs + RULES_READ_MS) return this.#periods;
    const request: KubeRequest = { verb: 'GET', path: kubePath.csiDrivers, query: { resourceVersion: '0' } };
    const got = await kubeClient(this.#ctx).request(request, { signal });
    if (!got.ok) throw new Error(failureText(request, got.failure));
    const found = new Map<string, number>();
    const objects = new Map<string, unknown>();
    for (const object of listOf(recordOf(got.body).items)) {
      const name = textOf(partOf(object, 'metadata').name);
      if (!here.includes(name)) continue;
      objects.set(name, object);
      const ms = allocatablePeriodMs(object);
      if (ms !== null) found.set(name, ms);
    }
    this.#ctx.publish(apiView.csiDrivers, objects);
    [this.#names, this.#readAtMonoMs, this.#periods] = [names, nowMonoMs, found];
    return found;
  }
}

/** Drivers of which the cluster wants it are asked again how many volumes they can take, each at its time. */
function renewDrivers(
  ctx: ActorCtx<CsiNodeEvent>,
  { due, periods }: { due: ReadonlyMap<string, number>; periods: ReadonlyMap<string, number> },
): Map<string, number> {
  const next = renewals(due, periods, ctx.ports.clock.monoMs());
  for (const driver of next.now) ctx.registry.send(pluginsAddr, { type: 'plugins.renew', driver });
  return next.due;
}
