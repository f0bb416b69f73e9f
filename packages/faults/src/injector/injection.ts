/** One scenario at work: begins and ends its windows in time. */

import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { describeFault, describeWindow } from '../describe.ts';
import { FAULT_KINDS } from '../kinds.ts';
import type { FaultView, InjectionView } from '../live.ts';
import type { FaultWindow, Scenario, ScenarioFault } from '../types.ts';
import type { ActiveFault, FaultOf, FaultSession } from './activeFaults.ts';

export interface InjectionEnv {
  clock: Clock;
  session: FaultSession;
  /** Kills what a fault is aimed at; gives how many it hit and, where none, why. */
  kill(fault: FaultOf<'actor.kill'>, active: ActiveFault): { hits: number; missed: string };
  /** A window has begun; `missed` says why an instant hit nothing. */
  onBegin(injection: Injection, window: FaultWindow, missed: string): void;
  /** A lasting window is over or was stopped. */
  onHealed(injection: Injection, window: FaultWindow, hits: number): void;
  /** Nothing of it is at work or to come. */
  onOver(injection: Injection): void;
}

interface Progress {
  windows: number;
  hits: number;
  missed: string;
}

export class Injection {
  readonly id: string;
  readonly scenario: Scenario;
  readonly #env: InjectionEnv;
  readonly #durationMs: number;
  readonly #windows: readonly FaultWindow[];
  readonly #sinceMs: number;
  readonly #beganMonoMs: number;
  readonly #progress = new Map<ScenarioFault, Progress>();
  #next = 0;
  #running: { window: FaultWindow; active: ActiveFault }[] = [];
  #timer: unknown;
  #over = false;

  constructor(id: string, scenario: Scenario, o: { plan: { durationMs: number; windows: readonly FaultWindow[] }; env: InjectionEnv }) {
    this.id = id;
    this.scenario = scenario;
    this.#env = o.env;
    this.#durationMs = o.plan.durationMs;
    this.#windows = o.plan.windows;
    this.#sinceMs = o.env.clock.wallMs();
    this.#beganMonoMs = o.env.clock.monoMs();
    for (const { fault } of this.#windows) this.#progress.set(fault, { windows: 0, hits: 0, missed: '' });
  }

  /** What is due now happens before it returns. */
  start(): void {
    this.#turn();
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#env.clock.clearTimeout(this.#timer);
    for (const { window, active } of this.#running) this.#end(window, active);
    this.#running = [];
    this.#next = this.#windows.length;
    this.#env.onOver(this);
  }

  /** The injector ends: what is at work is healed by the end of its session, and nobody is told by this. */
  abandon(): void {
    this.#over = true;
    this.#env.clock.clearTimeout(this.#timer);
  }

  get #elapsedMs(): number {
    return this.#env.clock.monoMs() - this.#beganMonoMs;
  }

  #turn(): void {
    if (this.#over) return;
    const now = this.#elapsedMs;
    const done = this.#running.filter((r) => r.window.endMs <= now);
    this.#running = this.#running.filter((r) => r.window.endMs > now);
    for (const { window, active } of done) this.#end(window, active);
    for (let w = this.#windows[this.#next]; w !== undefined && w.atMs <= now; w = this.#windows[this.#next]) {
      this.#next += 1;
      this.#begin(w, now);
    }
    const next = Math.min(this.#windows[this.#next]?.atMs ?? Number.POSITIVE_INFINITY, ...this.#running.map((r) => r.window.endMs));
    if (next === Number.POSITIVE_INFINITY) this.stop();
    else this.#timer = this.#env.clock.setTimeout(() => this.#turn(), Math.max(0, next - this.#elapsedMs));
  }

  #begin(window: FaultWindow, nowMs: number): void {
    const { fault } = window;
    const { session, onBegin } = this.#env;
    const progress = this.#progressOf(fault);
    progress.windows += 1;
    progress.missed = '';
    if (FAULT_KINDS[fault.kind].lasts) {
      // Its time was over before its turn came: the process stood still.
      if (window.endMs <= nowMs) return;
      const { active } = session.begin(fault);
      this.#running.push({ window, active });
      onBegin(this, window, '');
      return;
    }
    const { active, atOnce } = session.begin(fault);
    if (fault.kind === 'actor.kill') {
      const { hits, missed } = this.#env.kill(fault, active);
      progress.hits += hits;
      progress.missed = missed;
    } else {
      progress.hits += atOnce;
      if (atOnce === 0 && fault.probability === 1) progress.missed = `nothing is there that ${fault.kind} could hit`;
    }
    session.heal(active);
    onBegin(this, window, progress.missed);
  }

  #end(window: FaultWindow, active: ActiveFault): void {
    this.#env.session.heal(active);
    this.#progressOf(window.fault).hits += active.hits;
    this.#env.onHealed(this, window, active.hits);
  }

  #progressOf(fault: ScenarioFault): Progress {
    const found = this.#progress.get(fault);
    if (found === undefined) throw new Error(`fault ${fault.name} is not one of ${this.id}`);
    return found;
  }

  get activeNames(): string[] {
    return this.#running.map((r) => r.window.fault.name);
  }

  view(): InjectionView {
    const now = this.#elapsedMs;
    const { name, description } = this.scenario;
    const faults = [...this.#progress].map(([fault, progress]) => this.#faultView(fault, { progress, now }));
    return { id: this.id, scenario: name, description, sinceMs: this.#sinceMs, endsInMs: Math.max(0, this.#lastMs - now), faults };
  }

  get #lastMs(): number {
    let last = 0;
    for (const w of this.#windows) last = Math.max(last, w.endMs);
    return Math.min(last, this.#durationMs);
  }

  #faultView(fault: ScenarioFault, { progress, now }: { progress: Progress; now: number }): FaultView {
    const running = this.#running.find((r) => r.window.fault === fault);
    const next = this.#windows.slice(this.#next).find((w) => w.fault === fault);
    const changesAtMs = running?.window.endMs ?? next?.atMs;
    return {
      name: fault.name,
      what: describeFault(fault),
      when: describeWindow(fault),
      phase: running !== undefined ? 'active' : next !== undefined ? 'waiting' : 'over',
      windows: progress.windows,
      hits: progress.hits + (running?.active.hits ?? 0),
      missed: progress.missed,
      changesInMs: changesAtMs === undefined ? null : Math.max(0, changesAtMs - now),
    };
  }
}
