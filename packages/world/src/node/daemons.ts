/** The daemons of a simulated machine, one after the other: each is the production tree. */

import { deathBundles } from '@actorlet/deaths/src/extension.ts';
import { faultInjection } from '@actorlet/faults/src/extension.ts';
import { enforceKernelSettings } from '@actorlet/kubelet/actors/kernelSettings.ts';
import { createNode, type Node } from '@actorlet/kubelet/actors/node.ts';
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { shownPages } from '@actorlet/shown/src/extension.ts';
import type { SimRng } from '../rng.ts';
import type { Power, SimTime } from '../time.ts';
import { simLogger } from './instruments.ts';
import { losePower } from './machine.ts';
import { configOf } from './nodeConfig.ts';
import { portsFor } from './nodePorts.ts';
import type { NodeWatcher, SimNode } from './types.ts';

/** An init system's wait before it starts a daemon again that exited 70. */
const RESTART_AFTER_MS = 2_000;
/** Log lines remembered; older ones are dropped. */
const LOG_LINES_MAX = 400;

export interface DaemonsOptions {
  /** The node that they are on. */
  node(): SimNode;
  rng: SimRng;
  time: SimTime;
  /** The machine's clock. */
  clock: Clock;
  watcher: NodeWatcher;
}

interface Daemon {
  node: Node;
  tree: SupervisionTree;
  up: boolean;
}

export class Daemons {
  boots = 0;
  lostPower = false;
  daemon: Daemon | undefined;
  readonly #o: DaemonsOptions;
  readonly #logLines: string[] = [];
  readonly #stopping = new Set<Power>();
  #power: Power = { on: false };
  #last: Node | undefined;

  constructor(o: DaemonsOptions) {
    this.#o = o;
  }

  boot(): void {
    if (this.#power.on) return;
    const { watcher, node } = this.#o;
    this.#power = { on: true };
    this.boots += 1;
    this.#run(this.#power).catch((error: unknown) => watcher.broken(node(), `the node cannot be made: ${String(error)}`));
  }

  kill(how: 'process' | 'power'): void {
    if (!this.#power.on) return;
    this.#off(how === 'power' ? 'power failed' : 'killed');
    if (how !== 'power') return;
    this.lostPower = true;
    losePower(this.#o.node(), this.#o.rng.fork(`power-${this.boots}`));
  }

  async stop(): Promise<void> {
    const mine = this.#power;
    const running = this.daemon;
    if (running === undefined) return;
    this.#stopping.add(mine);
    await running.node.stop();
    if (mine.on) this.#off('stopped');
  }

  tail(lines: number): { log: string[]; recorder: string[] } {
    return { log: this.#logLines.slice(-lines), recorder: this.#last?.recorder(lines) ?? [] };
  }

  async #run(mine: Power): Promise<void> {
    if (await this.#settingsRefused(mine)) return;
    const { rng, time, clock, watcher } = this.#o;
    const self = this.#o.node();
    const { inspect } = watcher;
    const ports = portsFor({ node: self, rng, time, machineClock: clock, power: mine, log: (level, text) => this.#log(level, text) });
    const config = configOf(self);
    const between = watcher.between?.(self, config, ports);
    const made = await createNode(config, between?.ports ?? ports, {
      acting: between?.acting,
      extensions: [faultInjection, deathBundles, shownPages],
      ...(inspect === undefined ? {} : { inspect }),
    });
    const node = between?.wrap(made) ?? made;
    if (!mine.on) return;
    this.#last = node;
    // `Node` shows the contract; the supervision's tree has what leak checks need.
    const daemon = { node, tree: node.tree as SupervisionTree, up: false };
    this.daemon = daemon;
    if (self.tap !== undefined) daemon.tree.tap(self.tap);
    this.#watch(daemon, mine);
    watcher.booted(self);
    this.#start(daemon, mine);
  }

  #watch({ node }: Daemon, mine: Power): void {
    const { watcher } = this.#o;
    const self = this.#o.node();
    node.tree.observe((e) => {
      if (mine.on) watcher.supervision(self, e);
    });
    node.tree.registry.watch(statusesView, (statuses) => {
      if (mine.on) watcher.statuses(self, statuses);
    });
  }

  #start(daemon: Daemon, mine: Power): void {
    const crashed = (error: unknown): void => {
      if (mine.on) this.#exit(`exit 70: ${messageOf(error)}`);
    };
    void daemon.node.tree.failed.then(crashed);
    daemon.node.start().then(
      () => {
        daemon.up = true;
      },
      (error: unknown) => {
        if (!this.#stopping.has(mine)) crashed(error);
      },
    );
  }

  /** As the step of the boot before the tree. */
  async #settingsRefused(mine: Power): Promise<boolean> {
    const self = this.#o.node();
    const { kernel } = self.tuning;
    const { watcher } = this.#o;
    if (kernel === null) return false;
    const log = simLogger((level, text) => {
      if (mine.on) watcher.log(self, level, text);
    });
    const problems = await enforceKernelSettings(self.kernelSettings.connect({ power: mine }), { protect: kernel.protect, log });
    if (!mine.on) return true;
    watcher.judged(self, problems);
    if (problems.length === 0) return false;
    this.#exit(`exit 1: ${problems.join('; ')}`);
    return true;
  }

  #exit(why: string): void {
    this.#off(why);
    this.#o.clock.setTimeout(() => this.#o.node().boot(), RESTART_AFTER_MS);
  }

  #off(why: string): void {
    if (!this.#power.on) return;
    this.#power.on = false;
    this.daemon = undefined;
    this.#o.watcher.exited(this.#o.node(), why);
    this.#o.node().logind.daemonEnded();
  }

  #log(level: string, text: string): void {
    this.#logLines.push(`${this.#o.time.monoMs.toFixed(0)} ${level} ${text}`);
    if (this.#logLines.length > LOG_LINES_MAX) this.#logLines.splice(0, LOG_LINES_MAX / 2);
    this.#o.watcher.log(this.#o.node(), level, text);
  }
}
