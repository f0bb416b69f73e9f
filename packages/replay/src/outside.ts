/**
 * What reaches a node by hand and through no port: the boot starts and stops it, the inspection page asks its fault injector, a
 * simulation kills actors and taps mailboxes. Each is an input of its recording.
 */
import type { Registry, SupervisionEvent } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { Message, ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { MailboxTap, MailboxVerdict } from '@actorlet/kubelet/machines/supervision/mailboxTap.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { ByHand, Json } from './entries.ts';

interface OutsideTree {
  readonly registry: Registry;
  observe?(fn: (e: SupervisionEvent) => void): Disposable;
  kill?(path: string, by: string): boolean;
  tap?(tap: MailboxTap): Disposable;
}
export interface OutsideNode {
  start(): Promise<void>;
  stop(): Promise<void>;
  readonly tree: OutsideTree;
  /** What the inspectors look at. */
  readonly inspected?: { readonly tree: object; readonly clock: Clock } | null;
}

/** A tap decides by address and kind; whole messages would be compared for nothing. */
type Judge = (path: string, lane: 'control' | 'data', type: string) => MailboxVerdict;

/** How a recording takes what the outside does. */
export interface Taken {
  readonly clock: Clock;
  step(e: SupervisionEvent): void;
  /** When its turn comes: `parts` follow the time in the line. Values in them are as the node gets them. */
  inTurn(code: 'told' | 'asked', parts: readonly unknown[], act: (parts: readonly unknown[]) => void): void;
  /** Runs `look`, which only reads: its reads of the clock are none of the node's. */
  unseen<T>(look: () => T): T;
  /** Between inputs, where no promise is under way. */
  atOnce(code: 'killed' | 'sent' | 'tapped' | 'untapped', parts: readonly unknown[]): readonly unknown[];
}

/** The node as the outside gets it: what it does is recorded. */
export function outsideOf<N extends OutsideNode>(node: N, taken: Taken): N {
  node.tree.observe?.((e) => taken.step(e));
  const tree = outsideTree(node.tree, taken);
  const { inspected } = node;
  const told = (what: 'start' | 'stop'): Promise<void> =>
    new Promise((resolve, reject) => taken.inTurn('told', [what], () => node[what]().then(resolve, reject)));
  return {
    ...node,
    ...(inspected ? { inspected: { ...inspected, tree: outsideTree(inspected.tree as OutsideTree, taken), clock: taken.clock } } : {}),
    tree,
    start: () => told('start'),
    stop: () => told('stop'),
  };
}

function outsideTree<T extends OutsideTree>(tree: T, taken: Taken): T {
  const registry = outsideRegistry(tree.registry, taken);
  const own: OutsideTree = {
    registry,
    kill(path, by) {
      taken.atOnce('killed', [path]);
      return tree.kill?.(path, by) ?? false;
    },
    tap(tap) {
      const [judge] = taken.atOnce('tapped', [((path, lane, type) => tap(path, lane, { type })) satisfies Judge]) as [Judge];
      const tapped = tree.tap?.((path, lane, { type }) => judge(path, lane, type));
      return {
        [Symbol.dispose]() {
          taken.atOnce('untapped', []);
          tapped?.[Symbol.dispose]();
        },
      };
    },
  };
  // Its own methods need the tree itself as `this`.
  return new Proxy(tree, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return Reflect.get(own, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function'
        ? (...args: unknown[]) => taken.unseen(() => Reflect.apply(value, target, args) as unknown)
        : value;
    },
  });
}

function outsideRegistry(registry: Registry, taken: Taken): Registry {
  return {
    send(to, event) {
      const [, given] = taken.atOnce('sent', [to.path, event]);
      return registry.send(to, given as typeof event);
    },
    ask<E extends Message, R>(
      to: { readonly path: string },
      event: (replyTo: ReplyTo<R>) => E,
      opts: { timeoutMs: number; signal?: AbortSignal },
    ): ReturnType<typeof registry.ask<E, R>> {
      const [key, data] = withoutReply(event);
      return new Promise((resolve) => {
        taken.inTurn('asked', [to.path, key, data, opts], (parts) => {
          const [, , given, limits] = parts as [string, string, E, typeof opts];
          registry.ask<E, R>(to, (replyTo) => ({ ...given, [key]: replyTo }), limits).then(resolve);
        });
      });
    },
    read: (key) => registry.read(key),
    watch: (key, fn) => registry.watch(key, fn),
    deadLetters: () => registry.deadLetters(),
  };
}

/** A question as data, and under which key it holds where to answer. */
function withoutReply<E extends Message, R>(event: (replyTo: ReplyTo<R>) => E): [string, object] {
  const nowhere: ReplyTo<R> = Object.assign(() => {}, { refuse() {}, signal: new AbortController().signal });
  const entries = Object.entries(event(nowhere));
  const [key = ''] = entries.find(([, value]) => value === nowhere) ?? [];
  return [key, Object.fromEntries(entries.filter(([name]) => name !== key))];
}

/** Does to the node of a replay what the outside did then. */
export class Hand {
  readonly #node: OutsideNode;
  #tapped: Disposable | undefined;

  constructor(node: OutsideNode) {
    this.#node = node;
  }

  take(input: ByHand, value: (json: Json) => unknown): void {
    const { tree } = this.#node;
    switch (input[0]) {
      case 'told':
        // What becomes of it the boot heard, and the tree shows in what it asks.
        if (input[2] === 'start') this.#node.start().catch(() => {});
        else void this.#node.stop();
        return;
      case 'asked': {
        const [, , path, key, event, limits] = input;
        const given = value(event) as Message;
        void tree.registry.ask({ path }, (replyTo) => ({ ...given, [key]: replyTo }), value(limits) as { timeoutMs: number });
        return;
      }
      case 'sent':
        tree.registry.send({ path: input[2] }, value(input[3]) as Message);
        return;
      case 'killed':
        tree.kill?.(input[2], 'replay');
        return;
      case 'tapped': {
        const judge = value(input[2]) as Judge;
        this.#tapped = tree.tap?.((path, lane, { type }) => judge(path, lane, type));
        return;
      }
      case 'untapped':
        this.#tapped?.[Symbol.dispose]();
    }
  }
}
