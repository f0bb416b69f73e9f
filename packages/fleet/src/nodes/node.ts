/**
 * The nodes of a fleet: each is an actor, whose daemon is the production tree on a machine of the world.
 *
 * State held: the daemon of the node, and the askers of its next change.
 * Lost on restart: both. The daemon is made anew, and askers are told that it failed.
 * Rebuilt from: the machine, which keeps its disk, its containers, and whether it is switched on.
 */
import type { ActorCtx, ActorSpec, DynamicSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { type Own, providedForMany } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { fromPromise } from 'xstate';
import { type StartsEvent, startsAddr } from '../pace/messages.ts';
import type { Member } from './member.ts';
import type { NodeAnswer, NodeEvent } from './messages.ts';
import { nodeMachine } from './nodeMachine.ts';

/** As an init system's, and longer for a daemon that fails again and again. */
const BACKOFF = { minMs: 2_000, maxMs: 60_000, factor: 2, jitter: 0.1 };
/** A daemon that fails at once is given up after some six minutes, until a person starts its node again. */
const INTENSITY = { max: 10, periodMs: 600_000 };
/** Nodes wait for their turn without a limit: the one who asks knows when to give up. */
const TURN_TIMEOUT_MS = 24 * 3_600_000;
/** Messages of one node that wait at the same time. */
const WAITING_OF_NODE_MAX = 4;

/** The machine of a node. */
export type NodeMachine = Pick<Member, 'name' | 'on' | 'make' | 'fails' | 'end' | 'note'>;

export interface NodesOptions {
  /** Undefined: none of this fleet. */
  member(name: string): NodeMachine | undefined;
  /** As many as there may be. */
  nodesMax: number;
  /** An orderly stop of all daemons takes no longer. */
  stopMs: number;
  /** The daemon of that node does not run any more. */
  onEnd(node: string): void;
}

export function nodesSpec({ member: find, nodesMax, stopMs, onEnd }: NodesOptions): DynamicSpec<NodeEvent> {
  return {
    type: 'dynamic',
    id: 'nodes',
    shutdownMs: stopMs,
    mailbox: { capacity: Math.max(1, nodesMax) * WAITING_OF_NODE_MAX },
    route: (e) => e.node,
    starts: () => true,
    child: (name) => {
      const member = find(name);
      if (member === undefined) throw new Error(`${name} is no node of this fleet`);
      return nodeSpec(member, { stopMs, onEnd });
    },
    // Each of them is the word of a person.
    release: () => true,
    onQuarantine: (name, error) => find(name)?.note({ failure: error.message }),
  };
}

interface NodeIo {
  turn(signal: AbortSignal): Promise<boolean>;
  make(signal: AbortSignal): Promise<void>;
  watch(): Promise<never>;
  end(): Promise<void>;
  keep(replyTo: ReplyTo<NodeAnswer> | undefined): void;
  answer(answer: NodeAnswer): void;
  passTurn(): void;
  note: Member['note'];
}
/** One machine for all nodes. */
const node = providedForMany(nodeMachine, (io: Own<NodeIo>) => ({
  actors: {
    turn: fromPromise<boolean>((of) => io(of).turn(of.signal)),
    make: fromPromise<void>((of) => io(of).make(of.signal)),
    watch: fromPromise<void>((of) => io(of).watch()),
    end: fromPromise<void>((of) => io(of).end()),
    crash: fromPromise<void, { failure: string }>(async (of) => {
      await io(of).end();
      throw new Error(of.input.failure);
    }),
  },
  actions: {
    keep: (of, { replyTo }) => io(of).keep(replyTo),
    answer: (of, { answer }) => io(of).answer(answer),
    passTurn: (of) => io(of).passTurn(),
    note: (of, noted) => io(of).note(noted),
  },
}));

function nodeSpec(member: NodeMachine, { stopMs, onEnd }: Pick<NodesOptions, 'stopMs' | 'onEnd'>): ActorSpec<NodeEvent> {
  const { name } = member;
  return {
    type: 'actor',
    id: name,
    // Its end is that of its machine, or of the fleet.
    restart: 'transient',
    backoff: BACKOFF,
    intensity: INTENSITY,
    // The supervisor above gives up first, and names all that are late.
    shutdownMs: 2 * stopMs,
    stopEvent: { type: 'node.end', node: name },
    start: (ctx) => ({ logic: node(ioOf(ctx, member, onEnd)), input: { on: member.on } }),
  };
}

function ioOf({ registry }: ActorCtx<NodeEvent>, member: NodeMachine, onEnd: (node: string) => void): NodeIo {
  const { name } = member;
  let askers: ReplyTo<NodeAnswer>[] = [];
  return {
    turn: async (signal) => {
      const opts = { timeoutMs: TURN_TIMEOUT_MS, signal };
      const answer = await registry.ask(
        startsAddr,
        (replyTo: ReplyTo<null>): StartsEvent => ({ type: 'turn.ask', node: name, replyTo }),
        opts,
      );
      return answer.kind === 'reply';
    },
    make: (signal) => member.make(signal),
    watch: () => member.fails(),
    end: async () => {
      await member.end();
      onEnd(name);
    },
    keep: (replyTo) => {
      if (replyTo !== undefined) askers.push(replyTo);
    },
    answer: (answer) => {
      const told = askers;
      askers = [];
      for (const replyTo of told) replyTo(answer);
    },
    passTurn: () => void registry.send(startsAddr, { type: 'turn.over', node: name }),
    note: (noted) => member.note(noted),
  };
}
