/** Short specifications and small actors for the supervision tests. */
import { type AnyActorLogic, fromCallback } from 'xstate';
import { createTree, type SupervisionTree } from '../../src/actors/supervision/tree.ts';
import type { ActorCtx, ActorSpec, AnySpec, SupervisionEvent, SupervisorSpec } from '../../src/actors/supervision/types.ts';
import type { Message } from '../../src/machines/supervision/address.ts';
import { type FakePorts, fakePorts } from './fakePorts.ts';

export interface Say extends Message {
  type: 'say' | 'crash' | 'end' | 'stop' | 'resync';
  n?: number;
  key?: string;
  life?: number;
}

const DEFAULTS = {
  restart: 'permanent',
  shutdownMs: 1000,
  intensity: { max: 5, periodMs: 60_000 },
  backoff: { minMs: 100, maxMs: 1000, factor: 2, jitter: 0 },
} as const;

export function actor(id: string, logic: (ctx: ActorCtx<Say>) => AnyActorLogic, more: Partial<ActorSpec<Say>> = {}): ActorSpec<Say> {
  return { ...DEFAULTS, type: 'actor', id, start: (ctx) => ({ logic: logic(ctx) }), ...more };
}

export function layer(id: string, children: readonly AnySpec[], more: Partial<SupervisorSpec> = {}): SupervisorSpec {
  return { ...DEFAULTS, type: 'supervisor', strategy: 'one_for_one', escalate: 'parent', id, children, ...more };
}

/** A callback actor that hands each event to `on`; `on` may throw. */
export const receiver = (on: (e: Say) => void, dispose: () => void = () => undefined): AnyActorLogic =>
  fromCallback(({ receive }) => {
    receive((e) => on(e as Say));
    return dispose;
  });

export const idle = (): AnyActorLogic => receiver(() => undefined);

export interface Rig {
  ports: FakePorts;
  tree: SupervisionTree;
  events: SupervisionEvent[];
  /** Starts the tree, and lets what follows at once happen. */
  up(): Promise<void>;
  /** `started a`, `exited a normal`, ...: supervision events below the root, with the root's name cut off. */
  story(): string[];
  lifecycle(path: string): string | undefined;
}

export function rig(root: SupervisorSpec, ports: FakePorts = fakePorts()): Rig {
  const events: SupervisionEvent[] = [];
  const tree = createTree(root, ports, { observers: [(e) => events.push(e)] });
  const short = (path: string) => path.slice(root.id.length + 1);
  return {
    ports,
    tree,
    events,
    async up() {
      void tree.start();
      await ports.settle();
    },
    story: () =>
      events.flatMap((e) => {
        if (e.kind === 'child.started' && e.path !== root.id) return [`started ${short(e.path)}`];
        if (e.kind === 'child.exited' && e.path !== root.id) return [`exited ${short(e.path)} ${e.reason.kind}`];
        return [];
      }),
    lifecycle(path) {
      const find = (s: ReturnType<SupervisionTree['state']>): string | undefined => {
        if (s.path === path) return s.lifecycle;
        for (const c of s.children) {
          const found = find(c);
          if (found !== undefined) return found;
        }
        return undefined;
      };
      return find(tree.state());
    },
  };
}
