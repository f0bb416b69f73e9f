/** The invariants of a node that nobody but its runtime is beside: for a replay that leaves its recording. */
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import type { CallSeen } from '@actorlet/world/src/runtime/types.ts';
import type { Checker, Scene } from './checker.ts';
import { attemptsGrow, crashLoopsAreSlow, onePodPerName } from './pods/podInvariants.ts';
import { incarnationsGrow, versionGrows } from './pods/statusInvariants.ts';
import { mailboxesAreBounded, nothingCrashes, sleepersGoOn, supervisorsGiveUpInTime, theDeadDoNotMove } from './runtime/actorInvariants.ts';
import { nothingStartsWhileStopping, oneActPerPod, oneRunningPerName, oneSandboxInUse } from './runtime/runtimeInvariants.ts';

export interface Broken {
  readonly invariant: string;
  readonly what: string;
  readonly atMs: number;
}

export class LoneChecks {
  /** The first time that each was broken. */
  readonly broken = new Map<string, Broken>();
  readonly #hollow: HollowRuntime;
  readonly #nowMs: () => number;
  readonly #checkers: readonly Checker[] = [
    ...[oneRunningPerName(), oneSandboxInUse(), nothingStartsWhileStopping(), oneActPerPod(), versionGrows(), incarnationsGrow()],
    ...[mailboxesAreBounded(), nothingCrashes(), supervisorsGiveUpInTime(), theDeadDoNotMove(), sleepersGoOn(), onePodPerName()],
    ...[attemptsGrow(), crashLoopsAreSlow()],
  ];
  #node: Node | null = null;

  constructor(hollow: HollowRuntime, nowMs: () => number) {
    this.#hollow = hollow;
    this.#nowMs = nowMs;
  }

  get names(): string[] {
    return this.#checkers.map((checker) => checker.name);
  }

  watch(node: Node): void {
    this.#node = node;
    node.tree.observe((e) => this.#ask((checker, s) => checker.supervision?.(s, e)));
    node.tree.registry.watch(statusesView, (statuses) => this.#ask((checker, s) => checker.statuses?.(s, statuses)));
  }

  arrived(call: CallSeen): void {
    this.#ask((checker, s) => checker.arrived?.(s, call));
  }

  settled(call: CallSeen, outcome: 'done' | 'failed'): void {
    this.#ask((checker, s) => checker.settled?.(s, call, outcome));
    const dump = this.#hollow.dump();
    this.#ask((checker, s) => checker.changed?.(s, dump));
  }

  /** Once a second or so. */
  beat(): void {
    const state = this.#node?.tree.state();
    if (state !== undefined) this.#ask((checker, s) => checker.beat?.(s, state));
  }

  #ask(question: (checker: Checker, s: Scene) => unknown): void {
    const scene = this.#scene();
    for (const checker of this.#checkers) {
      const what = question(checker, scene);
      if (typeof what === 'string' && !this.broken.has(checker.name))
        this.broken.set(checker.name, { invariant: checker.name, what, atMs: this.#nowMs() });
    }
  }

  /** These checkers look at nothing else of a scene. */
  #scene(): Scene {
    const node = this.#node;
    const daemon = node === null ? undefined : { node, tree: node.tree as SupervisionTree, up: true };
    return {
      node: { name: 'node', boots: 1, daemon, runtime: { hollow: this.#hollow } },
      nemesis: { disturbed: new Set<string>(), restarts: [] },
      monoMs: this.#nowMs(),
    } as unknown as Scene;
  }
}
