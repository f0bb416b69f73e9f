/** A tree with the runtime layer and a recorder in place of the pod manager and the event log. */
import { fromCallback } from 'xstate';
import { criLinkSpec } from '../../src/actors/runtime/cri/cri.ts';
import { type ImagePullerOptions, imagePullerSpec } from '../../src/actors/runtime/imagePuller/imagePuller.ts';
import { plegSpec } from '../../src/actors/runtime/pleg/pleg.ts';
import { createTree } from '../../src/actors/supervision/tree.ts';
import type { ActorSpec, AnySpec, SupervisorSpec, Tree } from '../../src/actors/supervision/types.ts';
import { type ImageEvent, type ImageResult, imagePullerAddr } from '../../src/machines/runtime/imagePuller/messages.ts';
import type { Message, ReplyTo } from '../../src/machines/supervision/address.ts';
import type { Ports } from '../../src/ports/ports.ts';
import { type FakePorts, fakePorts } from '../supervision/fakePorts.ts';
import { type FakeCri, fakeCri, healthy } from './fakeCri.ts';

const LAYER = {
  type: 'supervisor',
  strategy: 'one_for_one',
  restart: 'permanent',
  shutdownMs: 1000,
  intensity: { max: 10, periodMs: 60_000 },
  backoff: { minMs: 100, maxMs: 1000, factor: 2, jitter: 0 },
  escalate: 'parent',
} as const;

export function recorder(id: string, seen: Message[]): ActorSpec {
  return {
    type: 'actor',
    id,
    restart: 'permanent',
    shutdownMs: 'brutal',
    intensity: { max: 5, periodMs: 1000 },
    backoff: { minMs: 10, maxMs: 10, factor: 1, jitter: 0 },
    start: () => ({ logic: fromCallback<Message>(({ receive }) => receive((e) => void seen.push(e))) }),
  };
}
const layer = (id: string, children: readonly AnySpec[]): SupervisorSpec => ({ ...LAYER, id, children });

/** Asks for an image, for a pod of its own. What became of the question where nothing answered. */
export async function askImage(
  { tree }: Pick<World, 'tree'>,
  o: Pick<ImageEvent, 'uid' | 'image' | 'policy'> & Partial<ImageEvent>,
  signal?: AbortSignal,
): Promise<ImageResult | 'refused' | 'lost'> {
  const podRef = { uid: o.uid, name: o.uid, namespace: 'ns' };
  const ask = (replyTo: ReplyTo<ImageResult>): ImageEvent => ({
    ...{ type: 'image.ensure', podRef, container: 'main', fieldPath: 'spec.containers{main}' },
    ...{ sandboxConfig: { metadata: { ...podRef, attempt: 0 } }, ...o, replyTo },
  });
  const answer = await tree.registry.ask(imagePullerAddr, ask, { timeoutMs: 10_000_000, ...(signal === undefined ? {} : { signal }) });
  return answer.kind === 'reply' ? answer.value : answer.kind;
}

export interface World {
  tree: Tree;
  ports: FakePorts;
  cri: FakeCri;
  /** What the pod manager got. */
  dirty: { type: string; uid: string; why: string }[];
  /** What the event log got. */
  events: { event: { type: string; reason: string; message: string; fieldPath?: string } }[];
  stop(): Promise<void>;
}

/** Starts on a healthy runtime unless `cri` says otherwise. `only` leaves out the other runtime actors. */
export async function world(
  o: { cri?: FakeCri; images?: ImagePullerOptions; ports?: Partial<Ports>; only?: ('cri' | 'pleg' | 'imagePuller')[] } = {},
): Promise<World> {
  const cri = o.cri ?? healthy(fakeCri());
  const ports = fakePorts({ ...o.ports, cri });
  const dirty: Message[] = [];
  const events: Message[] = [];
  const only = o.only ?? ['cri', 'imagePuller', 'pleg'];
  const children = [criLinkSpec(), imagePullerSpec(o.images), plegSpec()].filter((spec) => only.some((id) => id === spec.id));
  const tree = createTree(
    layer('node', [
      layer('foundation', [recorder('telemetry', events)]),
      layer('runtime', children),
      layer('pods', [recorder('podManager', dirty)]),
    ]),
    ports,
  );
  const started = tree.start();
  await ports.settle();
  await started;
  await ports.settle();
  return {
    tree,
    ports,
    cri,
    dirty: dirty as World['dirty'],
    events: events as unknown as World['events'],
    stop: async () => {
      // Stopping waits for virtual time like everything else.
      const stopped = tree.stop();
      await ports.advance(5000);
      await stopped;
    },
  };
}
