/**
 * State held: the scenarios at work, when their windows begin and end.
 * Lost on restart: all of it, and everything injected is healed at that moment; nothing is injected again.
 * Rebuilt from: nothing. To get the faults back, send the scenario again.
 */

import { isPowerOfTwo } from '@actorlet/kubelet/actors/supervision/errors.ts';
import type { ActorCtx, ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { eventsAddr } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { MailboxTap } from '@actorlet/kubelet/machines/supervision/mailboxTap.ts';
import { fromCallback } from 'xstate';
import { describeFault } from '../describe.ts';
import { type InjectAnswer, type InjectorEvent, LIVE_SCENARIOS_MAX, planLive } from '../live.ts';
import { injectorAddr } from '../messages.ts';
import type { FaultWindow, Scenario } from '../types.ts';
import type { ActiveFault, ActiveFaults, FaultOf, FaultSession } from './activeFaults.ts';
import { Injection, type InjectionEnv } from './injection.ts';
import { aimProblems, killTargets, type Surroundings } from './targets.ts';

export interface InjectorOptions {
  activeFaults: ActiveFaults;
  nodeName: string;
  /** The node has an HTTP source of pods. */
  httpSource: boolean;
  /** Some eviction threshold is about memory. */
  looksAtMemory: boolean;
  state(): ActorView;
  kill(path: string, by: string): boolean;
  /** Puts a tap on every mailbox; disposed, what it holds back is delivered. */
  tap(tap: MailboxTap): Disposable;
  /** One line of the flight recorder. */
  record(path: string, what: string): void;
}

/** Hits of one window that are recorded one by one; later ones at powers of two. */
const HITS_RECORDED = 8;

/** Only in a node that was started with `--actorlet-fault-injection`. */
export function injectorSpec(o: InjectorOptions): ActorSpec<InjectorEvent> {
  return {
    type: 'actor',
    id: injectorAddr.path.split('/').at(-1) ?? 'injector',
    shutdownMs: 1000,
    backoff: { minMs: 100, maxMs: 5_000 },
    mailbox: { capacity: 64, lane: (e) => (e.type === 'faults.inject' ? 'data' : 'control') },
    start: (ctx) => ({ logic: injectorLogic(ctx, o) }),
  };
}

function injectorLogic(ctx: ActorCtx<InjectorEvent>, o: InjectorOptions) {
  return fromCallback<InjectorEvent>(({ receive }) => {
    const injector = new Injector(ctx, o);
    receive((e) => {
      switch (e.type) {
        case 'faults.inject':
          return e.replyTo(injector.inject(e.scenario));
        case 'faults.list':
          return e.replyTo(injector.list());
        case 'faults.stop':
          return e.replyTo(injector.stop(e.id));
      }
    });
    return () => injector.end();
  });
}

class Injector {
  readonly #ctx: ActorCtx<InjectorEvent>;
  readonly #o: InjectorOptions;
  readonly #session: FaultSession;
  readonly #injected;
  readonly #injections = new Map<string, Injection>();
  #ids = 0;
  #tap: Disposable | null = null;

  constructor(ctx: ActorCtx<InjectorEvent>, o: InjectorOptions) {
    this.#ctx = ctx;
    this.#o = o;
    const { metrics } = ctx.ports;
    this.#injected = metrics.counter('actorlet_faults_injected_total', 'Calls, messages, events and actors hit by injected faults.', [
      'kind',
    ]);
    const active = metrics.gauge('actorlet_faults_active', 'Injected faults at work now.');
    metrics.onCollect(() => active.set(o.activeFaults.size), 'injector');
    const left = o.activeFaults.left;
    this.#session = o.activeFaults.session(ctx.signal, (hit, what) => this.#onHit(hit, what));
    // The signal aborts whatever the end of this incarnation; the dispose function may not run when it throws.
    ctx.signal.addEventListener('abort', () => this.#untap(), { once: true });
    if (left.length > 0)
      this.#tell('Normal', 'FaultHealed', `the fault injector ended; what it had injected was healed: ${left.join('; ')}`);
    this.#note();
  }

  end(): void {
    this.#untap();
    this.#session.end();
    // Their timers; everything they had injected is healed already.
    for (const i of [...this.#injections.values()]) i.abandon();
  }

  inject(scenario: Scenario): InjectAnswer {
    if (this.#injections.size >= LIVE_SCENARIOS_MAX) {
      return { ok: false, status: 429, message: `${LIVE_SCENARIOS_MAX} scenarios are at work; stop some first (actorctl inject stop)` };
    }
    const plan = planLive(scenario, this.#o.nodeName);
    if (!plan.ok) return { ok: false, status: 400, message: plan.errors.map((e) => lineText(e.line, e.field, e.message)).join('\n') };
    const faults = scenario.faults.filter((f) => !plan.skipped.includes(f));
    const problems = aimProblems(faults, this.#surroundings());
    const text = (p: (typeof problems)[number]) => lineText(p.fault.line, `fault ${p.fault.name}`, p.message);
    const hopeless = problems.filter((p) => p.hopeless);
    if (hopeless.length > 0) return { ok: false, status: 404, message: hopeless.map(text).join('\n') };

    this.#ids += 1;
    const id = `${scenario.name}-${this.#ctx.incarnation === 1 ? '' : `${this.#ctx.incarnation}.`}${this.#ids}`;
    const injection = new Injection(id, scenario, { plan, env: this.#env() });
    this.#injections.set(id, injection);
    this.#ctx.log.warn(
      { injection: id, faults: faults.length, endsInMs: injection.view().endsInMs },
      `fault scenario ${scenario.name} begins`,
    );
    injection.start();
    this.#note();
    const warnings = [...problems.map(text), ...plan.skipped.map((f) => lineText(f.line, `fault ${f.name}`, 'is for other nodes'))];
    return { ok: true, injection: injection.view(), warnings };
  }

  list() {
    return [...this.#injections.values()].map((i) => i.view());
  }

  stop(id: string | null): string[] {
    const chosen = [...this.#injections.values()].filter((i) => id === null || i.id === id);
    for (const i of chosen) i.stop();
    return chosen.map((i) => i.id);
  }

  #env(): InjectionEnv {
    return {
      clock: this.#ctx.ports.clock,
      session: this.#session,
      kill: (fault, active) => this.#kill(fault, active),
      onBegin: (i, w, missed) => this.#onBegin(i, w, missed),
      onHealed: (i, w, hits) => {
        this.#tell('Normal', 'FaultHealed', `${w.fault.name} of ${i.id} is over after ${hits} hits: ${describeFault(w.fault)}`);
        this.#changed();
      },
      onOver: (i) => {
        this.#injections.delete(i.id);
        this.#ctx.log.warn({ injection: i.id }, `fault scenario ${i.scenario.name} is over; all of it is healed`);
        this.#changed();
      },
    };
  }

  #surroundings(): Surroundings {
    const { activeFaults, nodeName, httpSource, looksAtMemory, state } = this.#o;
    const { ports, registry } = this.#ctx;
    const apiServer = ports.kube !== undefined;
    return {
      state: state(),
      pods: registry.read(podsView)?.value,
      match: activeFaults.match,
      nodeName,
      httpSource,
      looksAtMemory,
      apiServer,
    };
  }

  #onBegin(i: Injection, { fault }: FaultWindow, missed: string): void {
    const what = `${fault.name} of ${i.id}: ${describeFault(fault)}`;
    if (missed === '') this.#tell('Warning', 'FaultInjected', what);
    else this.#tell('Warning', 'FaultMissed', `${what}: ${missed}`);
    this.#changed();
  }

  #kill(fault: FaultOf<'actor.kill'>, active: ActiveFault): { hits: number; missed: string } {
    const found = killTargets(fault, this.#surroundings());
    if (found.length === 0) return { hits: 0, missed: 'no actor of this node fits it now' };
    const { rng } = this.#ctx.ports;
    const chosen = fault.pick === 'all' ? found : [found[Math.floor(rng.next() * found.length)] ?? ''];
    if (rng.next() >= fault.probability) return { hits: 0, missed: '' };
    let hits = 0;
    for (const path of chosen) {
      if (!this.#o.kill(path, `the fault injector (${fault.name})`)) continue;
      hits += 1;
      this.#o.activeFaults.count(active, path);
    }
    return { hits, missed: hits > 0 ? '' : `${chosen.join(', ')} has no running incarnation just now` };
  }

  #onHit({ fault, hits }: ActiveFault, what: string): void {
    this.#injected.inc({ kind: fault.kind });
    if (hits > HITS_RECORDED && !isPowerOfTwo(hits)) return;
    this.#o.record(injectorAddr.path, `${fault.name} hit ${what} (${describeFault(fault)})${hits > 1 ? `, ${hits} hits` : ''}`);
  }

  /** An event of the node, a line of the log and one of the recorder. */
  #tell(type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { log, registry } = this.#ctx;
    log.warn({ reason }, message);
    this.#o.record(injectorAddr.path, `${reason}: ${message}`);
    registry.send(eventsAddr, { type: 'event.record', event: { type, reason, message } });
  }

  #changed(): void {
    const wanted = this.#o.activeFaults.of('mailbox').length > 0;
    if (wanted && this.#tap === null) this.#tap = this.#o.tap(this.#judge);
    else if (!wanted) this.#untap();
    this.#note();
  }

  #untap(): void {
    const tap = this.#tap;
    this.#tap = null;
    tap?.[Symbol.dispose]();
  }

  readonly #judge: MailboxTap = (path, lane, event) => {
    // Its own mail always arrives: faults can be stopped whatever they are.
    if (path === injectorAddr.path) return 'pass';
    const { match } = this.#o.activeFaults;
    // Mail for one pod goes to its worker's supervisor; people aim at the worker.
    const uid = 'uid' in event && typeof event.uid === 'string' ? event.uid : undefined;
    const child = uid !== undefined && path === workersAddr.path ? `${path}/${uid}` : path;
    const hit = this.#o.activeFaults.first('mailbox', `${event.type} to ${child}`, ({ select }) => {
      const aimed = match.any(select.actors, path) || match.any(select.actors, child);
      return aimed && match.one(select.lanes, lane) && match.any(select.events, event.type);
    });
    if (hit === undefined) return 'pass';
    return hit.fault.action === 'delay' ? { delayMs: hit.fault.delayMs } : hit.fault.action;
  };

  #note(): void {
    const names = [...this.#injections.values()].flatMap((i) => i.activeNames);
    const waiting = this.#injections.size === 0 ? 'nothing is injected' : `no fault at work, ${this.#injections.size} scenarios wait`;
    this.#ctx.note(
      `fault injection is allowed: ${names.length === 0 ? waiting : `${names.length} at work (${names.slice(0, 5).join(', ')})`}`,
    );
  }
}

function lineText(line: number, field: string, message: string): string {
  return `${line === 0 ? '' : `line ${line}: `}${field}: ${message}`;
}
