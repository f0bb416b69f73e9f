/**
 * The programs of a local control plane: each is an actor that runs one process.
 *
 * State held: the process, and the askers of its next change.
 * Lost on restart: both. The process is ended and started anew, and askers are told that it failed.
 * Rebuilt from: the program, which keeps its flags, its files, and whether it is meant to run.
 */
import { createTree, type SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import type { ActorSpec, AnySpec, DynamicSpec, SupervisorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { type Own, providedForMany } from '@actorlet/kubelet/machines/xstate/provide.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { countingMetrics } from '@actorlet/world/src/node/instruments.ts';
import { fromPromise } from 'xstate';
import type { FleetPorts } from '../tree.ts';
import type { EndSignal, ProgramAnswer, ProgramEvent } from './messages.ts';
import { type ProgramNote, programMachine } from './programMachine.ts';

/** A control plane that is away costs its users time: the first restart is at once. */
const BACKOFF = { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.1 };
/** Never reached with that back-off: a disk that is full, or a port that is taken, may be free again in an hour. */
const INTENSITY = { max: 1_000, periodMs: 600_000 };
const WAITING_MAX = 64;
const SHUTDOWN_MS = 30_000;

/** One process, which is started again and again with the same flags. */
export interface Program {
  readonly name: string;
  /** It is meant to run. */
  readonly on: boolean;
  start(signal: AbortSignal): Promise<void>;
  fails(): Promise<never>;
  end(by: EndSignal): Promise<void>;
  note(note: ProgramNote): void;
}

export interface ProgramsTree {
  /** Of its root. */
  id: string;
  programs: readonly Program[];
  /** Further children of the root. */
  more?: readonly AnySpec[];
}

/** The tree of a control plane, or of what stands before one. None of its programs runs before it is told to. */
export function programsTree({ id, programs, more = [] }: ProgramsTree, ports: FleetPorts): SupervisionTree {
  const root: SupervisorSpec = {
    type: 'supervisor',
    id,
    strategy: 'one_for_one',
    // Its children are few, and a crash of one of them is a mistake of this program.
    intensity: { max: 5, periodMs: 60_000 },
    shutdownMs: 2 * SHUTDOWN_MS,
    escalate: 'parent',
    children: [...more, programsSpec(programs)],
  };
  return createTree(root, { ...ports, metrics: countingMetrics() } as unknown as Ports);
}

function programsSpec(programs: readonly Program[]): DynamicSpec<ProgramEvent> {
  const byName = new Map(programs.map((p) => [p.name, p]));
  return {
    type: 'dynamic',
    id: 'programs',
    shutdownMs: SHUTDOWN_MS,
    mailbox: { capacity: WAITING_MAX },
    route: (e) => e.program,
    starts: () => true,
    child: (name) => {
      const program = byName.get(name);
      if (program === undefined) throw new Error(`${name} is no program of this control plane`);
      return programSpec(program);
    },
  };
}

interface ProgramIo {
  start(signal: AbortSignal): Promise<void>;
  watch(): Promise<never>;
  end(by: EndSignal): Promise<void>;
  keep(replyTo: ReplyTo<ProgramAnswer> | undefined): void;
  answer(answer: ProgramAnswer): void;
  note: Program['note'];
}
const program = providedForMany(programMachine, (io: Own<ProgramIo>) => ({
  actors: {
    start: fromPromise<void>((of) => io(of).start(of.signal)),
    watch: fromPromise<void>((of) => io(of).watch()),
    end: fromPromise<void, { by: EndSignal }>((of) => io(of).end(of.input.by)),
    crash: fromPromise<void, { failure: string }>(async (of) => {
      await io(of).end('SIGKILL');
      throw new Error(of.input.failure);
    }),
  },
  actions: {
    keep: (of, { replyTo }) => io(of).keep(replyTo),
    answer: (of, { answer }) => io(of).answer(answer),
    note: (of, noted) => io(of).note(noted),
  },
}));

function programSpec(of: Program): ActorSpec<ProgramEvent> {
  return {
    type: 'actor',
    id: of.name,
    restart: 'permanent',
    backoff: BACKOFF,
    intensity: INTENSITY,
    shutdownMs: SHUTDOWN_MS,
    stopEvent: { type: 'program.end', program: of.name },
    start: () => ({ logic: program(ioOf(of)), input: { on: of.on } }),
  };
}

function ioOf(of: Program): ProgramIo {
  let askers: ReplyTo<ProgramAnswer>[] = [];
  return {
    start: (signal) => of.start(signal),
    watch: () => of.fails(),
    end: (by) => of.end(by),
    keep: (replyTo) => {
      if (replyTo !== undefined) askers.push(replyTo);
    },
    answer: (answer) => {
      const told = askers;
      askers = [];
      for (const replyTo of told) replyTo(answer);
    },
    note: (noted) => of.note(noted),
  };
}
