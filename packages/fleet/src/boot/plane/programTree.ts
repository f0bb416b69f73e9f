/** Programs under their supervisor, for whoever tells them to run and to end. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { createClock, createYield } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import type { Registry } from '@actorlet/kubelet/machines/supervision/observed.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { type EndSignal, type ProgramAnswer, type ProgramEvent, programsAddr } from '../../plane/messages.ts';
import { type Program, type ProgramsTree, programsTree } from '../../plane/programs.ts';
import { quietLog } from '../world.ts';
import type { LocalProgram } from './process.ts';

const ASK_TIMEOUT_MS = 24 * 3_600_000;

export class ProgramTree<P extends Program = LocalProgram> {
  readonly #programs: ReadonlyMap<string, P>;
  readonly #tree: SupervisionTree;
  readonly #id: string;
  #started: Promise<void> | undefined;

  constructor(
    programs: readonly P[],
    { id = 'plane', more = [], clock = createClock() }: Partial<Pick<ProgramsTree, 'id' | 'more'>> & { clock?: Clock } = {},
  ) {
    this.#id = id;
    this.#programs = new Map(programs.map((p) => [p.name, p]));
    // What programs do is said in other words.
    const ports = { clock, log: quietLog, yield: createYield(), rng: { next: Math.random } };
    this.#tree = programsTree({ id, programs, more }, ports);
  }

  get registry(): Registry {
    return this.#tree.registry;
  }

  /** In the order in which they were given. */
  get names(): string[] {
    return [...this.#programs.keys()];
  }

  state(): ActorView {
    return this.#tree.state();
  }

  /** @throws Error with a name that none has. */
  program(name: string): P {
    const found = this.#programs.get(name);
    if (found === undefined) throw new Error(`this control plane has no ${name}`);
    return found;
  }

  /** Null when it is ready, else why it is not. It is tried again all the same. */
  async tryOn(name: string): Promise<ProgramAnswer> {
    return await this.#ask((replyTo) => ({ type: 'program.on', program: name, replyTo }));
  }

  /** @throws Error where it does not become ready. */
  async on(name: string): Promise<void> {
    const why = await this.tryOn(name);
    if (why !== null) throw new Error(why);
  }

  /** Ends a program, which stays ended until it is told to run. */
  async off(name: string, by: EndSignal): Promise<void> {
    await this.#ask((replyTo) => ({ type: 'program.off', program: name, by, replyTo }));
  }

  /** Ends those that still run. */
  async stop(): Promise<void> {
    await this.#tree.stop();
  }

  async #ask(event: (replyTo: ReplyTo<ProgramAnswer>) => ProgramEvent): Promise<ProgramAnswer> {
    this.#started ??= this.#tree.start();
    await this.#started;
    const answer = await this.#tree.registry.ask<ProgramEvent, ProgramAnswer>(programsAddr(this.#id), event, { timeoutMs: ASK_TIMEOUT_MS });
    return answer.kind === 'reply' ? answer.value : answer.reason;
  }
}
