/** A fleet file lived through: its steps at their times, and whether what it expects came in time. */
import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { FleetSpec } from './file.ts';
import type { Fleet, NodeTrouble } from './fleet.ts';
import type { Member } from './nodes/member.ts';
import type { FleetOverview } from './overview.ts';
import type { ApiCalls } from './proxy/calls.ts';
import type { ApiHit, ApiTrouble } from './proxy/trouble.ts';
import { shownFault } from './proxy/words.ts';
import { asked, isAsked } from './run/asked.ts';
import type { Cluster } from './run/cluster.ts';
import { Expectation, type ExpectReport, percentile } from './run/expectation.ts';
import { measured, type SecondsOf, secondsOf } from './run/measure.ts';
import { type Sample, type Span, Timeline } from './run/timeline.ts';
import type { ApiFault } from './spec/apiFaults.ts';
import type { ApiStep, NodeStep, ObjectStep, Selection, StepSpec } from './spec/steps.ts';

/** How often the fleet is looked at, and how often where nothing is to be decided. */
const LOOK_EVERY_MS = 250;
const IDLE_LOOK_EVERY_MS = 2_000;
/** How often the API server is asked for objects, and what share of the time that may take at most. */
const ASK_EVERY_MS = 1_000;
const ASK_SHARE_MAX = 0.1;

export interface StepReport {
  /** When it began, and when it was done. */
  atMs: number;
  doneMs: number;
  what: string;
  count: number;
  of: 'nodes' | 'objects' | 'pods' | 'faults' | 'control planes';
  troubles: readonly NodeTrouble[];
}
type StepDone = Omit<StepReport, 'atMs' | 'doneMs'>;
export interface FleetReport {
  /** All daemons had begun. */
  startedMs: number;
  /** Nodes whose daemon could not be started. */
  troubles: readonly NodeTrouble[];
  steps: readonly StepReport[];
  expect: readonly ExpectReport[];
  overview: FleetOverview;
  /** Absent: there is none to measure. */
  seconds: Readonly<Partial<Record<SecondsOf, Percentiles>>>;
  /** Requests to the API server, by verb and resource. */
  calls: Readonly<Record<string, number>>;
  timeline: RunShown['timeline'];
  /** What the proxy did to clients; absent: there was none. */
  faults?: FaultsReport;
  /** Objects that were left behind at the last look for them. */
  left?: readonly string[];
}
export interface FaultsReport {
  /** Those that were injected, in their order, and how many requests each hit. */
  injected: readonly { name: string; fault: string; hits: number }[];
  /** The first of them, one by one. */
  hits: readonly ApiHit[];
  /** Requests of all clients, by program, verb and resource. */
  requests: Readonly<Record<string, number>>;
}
/** Of a run that goes on. */
export interface RunShown extends Pick<FleetReport, 'steps' | 'expect'> {
  atMs: number;
  /** `green`: of each expectation, in their order. */
  timeline: { samples: readonly Sample[]; green: readonly (readonly Span[])[] };
}
interface Percentiles {
  count: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
}

export interface RunOptions {
  fleet: Fleet;
  spec: FleetSpec;
  clock: Clock;
  cluster: Cluster;
  /** By the file names in the steps. */
  scenarios: ReadonlyMap<string, Scenario>;
  manifests: ReadonlyMap<string, readonly KubeObject[]>;
  /** Clients meet faults there. Absent: the steps have none. */
  proxy?: RunProxy | undefined;
  /** Of the API server. Absent: it is not this fleet's. */
  data?: PlaneData | undefined;
  /** Each look at the fleet. */
  onLook(overview: FleetOverview, atMs: number): void;
  onStep(step: StepReport): void;
  /** The API server could not be asked for what is expected: such a look does not count. */
  onTrouble(why: string): void;
  /** Aborted: the run ends with what there is. */
  signal: AbortSignal;
  /** The process ends with the run, and the API server with it: a run that is cut waits for no node. */
  endsAll?: boolean;
}

/** What etcd keeps, as a whole. */
export interface PlaneData {
  backup(): Promise<void>;
  /** @throws Error without a backup. */
  restore(): Promise<void>;
}

/** As much of the proxy as a run asks for. */
interface RunProxy {
  readonly trouble: ApiTrouble;
  readonly calls: ApiCalls;
  inject(name: string, fault: ApiFault): Promise<void>;
}

export class FleetRun {
  readonly #o: RunOptions;
  readonly #fromMs: number;
  readonly #expect: readonly Expectation[];
  readonly #steps: StepReport[] = [];
  readonly #timeline: Timeline;
  readonly #injected: { name: string; fault: string }[] = [];
  readonly #faults: Promise<NodeTrouble[]>[] = [];
  #asking: Promise<void> | undefined;
  #askAgainMs = 0;
  #left: readonly string[] = [];
  /** By what the step says. */
  readonly #selected = new Map<Selection, Member[]>();

  constructor(o: RunOptions) {
    this.#o = o;
    this.#fromMs = o.clock.monoMs();
    this.#expect = o.spec.expect.map((spec) => new Expectation(spec));
    this.#timeline = new Timeline(this.#expect.length);
  }

  /**
   * Starts the fleet; ends when all steps are done and each expectation is decided, or with the signal. Without expectations it ends
   * with the signal alone. @throws as {@link Fleet.start}, and where the tree of the fleet failed.
   */
  async toTheEnd(): Promise<FleetReport> {
    const { fleet, spec, signal } = this.#o;
    let started = false;
    const starting = fleet.start().then((troubles) => {
      started = true;
      return { troubles, startedMs: this.#now() };
    });
    let acted = false;
    const acting = this.#act(spec.steps).then(() => {
      acted = true;
    });
    // What rejects is told by the awaits behind the loop.
    let broken = false;
    for (const it of [starting, acting]) {
      it.catch(() => {
        broken = true;
      });
    }
    let failure: Error | undefined;
    void fleet.tree.failed.then((error) => {
      failure = error;
      broken = true;
    });
    const idle = this.#expect.length === 0;
    for (let over = false; !over && !broken && !signal.aborted; ) {
      this.#look(false);
      const done = started && acted;
      over = done && !idle && !this.#expect.some((e) => e.open);
      if (!over) await this.#pause(done && idle ? IDLE_LOOK_EVERY_MS : LOOK_EVERY_MS);
    }
    await this.#asking;
    const cut = signal.aborted || broken;
    if (!cut) await this.#ask(true);
    const overview = cut ? fleet.overview() : this.#look(true);
    const isLeft = cut && !(started && acted) && this.#o.endsAll === true && failure === undefined;
    // Starts and steps that are under way end with it.
    if (cut && !(started && acted) && !isLeft) await fleet.stop();
    const { startedMs, troubles } = isLeft ? { startedMs: this.#now(), troubles: [] } : await starting;
    if (!isLeft) await acting;
    if (failure !== undefined) throw failure;
    const kinds: readonly SecondsOf[] = ['nodeReady', 'podReady', 'podStart'];
    const seconds = Object.fromEntries(kinds.flatMap((kind) => percentilesOf(secondsOf(fleet, kind)).map((p) => [kind, p])));
    const calls = Object.fromEntries([...fleet.calls.byKind].sort(([, a], [, b]) => b - a));
    const { troubles: late, faults } = await this.#faultsReport(cut);
    const now = this.#now();
    if (late.length > 0) this.#steps.push({ atMs: now, doneMs: now, what: 'inject', count: late.length, of: 'faults', troubles: late });
    const { steps, expect, timeline } = this.shown();
    const of = { startedMs, troubles, steps, expect, overview, seconds, calls, timeline };
    return { ...of, ...(faults === undefined ? {} : { faults }), ...(this.#left.length === 0 ? {} : { left: this.#left }) };
  }

  /** As it stands now. */
  shown(): RunShown {
    const { samples, spans } = this.#timeline;
    const expect = this.#expect.map((e) => e.report());
    return { atMs: this.#now(), steps: this.#steps, expect, timeline: { samples, green: spans } };
  }

  async #act(steps: readonly StepSpec[]): Promise<void> {
    for (const step of steps) {
      await this.#pause(step.atMs - this.#now());
      if (this.#o.signal.aborted) return;
      const atMs = this.#now();
      const what = await this.#done(step);
      const done = { atMs, doneMs: this.#now(), ...what };
      // A step that the end of the run cut short has not failed.
      if (this.#o.signal.aborted) return;
      this.#steps.push(done);
      this.#o.onStep(done);
    }
  }

  async #done(step: StepSpec): Promise<StepDone> {
    if ('api' in step) return this.#onClients(step);
    if (step.do === 'add') {
      const { names, troubles } = await this.#o.fleet.add(step.group, step.count);
      return { what: `add to ${step.group}`, count: names.length, of: 'nodes', troubles };
    }
    if ('nodes' in step) return await this.#onNodes(step);
    return 'manifests' in step ? await this.#onObjects(step) : await this.#onData(step.do);
  }

  async #onData(what: 'backup' | 'restore'): Promise<StepDone> {
    const { data } = this.#o;
    const failed = (error: unknown): NodeTrouble[] => [{ node: 'etcd', why: messageOf(error) }];
    const act = data === undefined ? Promise.reject(new Error('its data is not that of this fleet; take --api local')) : data[what]();
    return { what, count: 1, of: 'control planes', troubles: await act.then(() => [], failed) };
  }

  /** Steps that belong together are about the same nodes, those of them that are still there. */
  #select(nodes: Selection): Member[] {
    const { fleet } = this.#o;
    const selected = this.#selected.get(nodes) ?? fleet.select(nodes);
    this.#selected.set(nodes, selected);
    return selected.filter((m) => fleet.member(m.name) === m);
  }

  async #onNodes(step: NodeStep): Promise<StepDone> {
    const { fleet, scenarios } = this.#o;
    const selected = this.#select(step.nodes);
    const count = selected.length;
    if (step.do === 'notice') return { what: 'notice', count, of: 'nodes', troubles: await fleet.notice(selected, step) };
    if (step.do === 'clock') {
      fleet.setClocks(selected, step.clock);
      return { what: step.clock === null ? 'clocks as before' : `inject clock ${step.clock.side}`, count, of: 'nodes', troubles: [] };
    }
    if (step.do === 'volumes') return this.#onVolumes(step, selected);
    if (step.do === 'evict') return await this.#evict(new Set(selected.map((m) => m.name)));
    if (step.do === 'remove') return { what: 'remove', count, of: 'nodes', troubles: await fleet.remove(selected) };
    if (step.do === 'inject') {
      const scenario = scenarios.get(step.scenario);
      if (scenario === undefined) throw new Error(`the scenario ${step.scenario} was not read`);
      return { what: `inject ${scenario.name}`, count, of: 'nodes', troubles: await fleet.inject(selected, scenario) };
    }
    const acts = { restart: 'restart', stop: 'switchOff', start: 'switchOn', away: 'away', back: 'back' } as const;
    // What is off can only be started, and what is on cannot.
    const members = selected.filter((m) => m.on !== (step.do === 'start' || step.do === 'back'));
    return { what: step.do, count: members.length, of: 'nodes', troubles: await fleet[acts[step.do]](members) };
  }

  #onVolumes({ name, fault, isOfAll }: Extract<NodeStep, { do: 'volumes' }>, selected: readonly Member[]): StepDone {
    const { fleet } = this.#o;
    const nodes = isOfAll ? null : new Set(selected.map((m) => m.name));
    const done = { count: selected.length, of: 'nodes', troubles: [] } as const;
    if (fault === null) {
      fleet.healVolumes(name);
      return { what: `heal ${name}`, ...done };
    }
    fleet.injectVolumes({ name, nodes, fault });
    return { what: `inject ${fault.fault}`, ...done };
  }

  async #evict(nodes: ReadonlySet<string>): Promise<StepDone> {
    const { cluster } = this.#o;
    const troubles: NodeTrouble[] = [];
    const pods = await cluster.podsOn(nodes).catch((error: unknown): KubeObject[] => {
      troubles.push({ node: 'pods', why: messageOf(error) });
      return [];
    });
    for (const pod of pods) {
      await cluster.evict(pod).catch((error: unknown) => troubles.push({ node: `Pod ${pod.metadata.name}`, why: messageOf(error) }));
    }
    return { what: 'evict', count: pods.length, of: 'pods', troubles };
  }

  /** It does not wait: what stale reads show must become old first. */
  #onClients({ name, api }: ApiStep): StepDone {
    const { proxy } = this.#o;
    if (proxy === undefined) throw new Error(`there is no proxy for the fault ${name}`);
    this.#injected.push({ name, fault: shownFault(api) });
    const failed = proxy.inject(name, api).then(
      () => [],
      (error: unknown) => [{ node: name, why: messageOf(error) }],
    );
    this.#faults.push(failed);
    return { what: `inject ${shownFault(api)}`, count: 1, of: 'faults', troubles: [] };
  }

  /** Once all of them have taken effect, or could not. */
  async #faultsReport(cut: boolean): Promise<{ troubles: readonly NodeTrouble[]; faults?: FaultsReport }> {
    const { proxy } = this.#o;
    if (proxy === undefined) return { troubles: [] };
    const troubles = cut ? [] : (await Promise.all(this.#faults)).flat();
    const injected = this.#injected.map((of) => ({ ...of, hits: proxy.trouble.hitsOf(of.name) }));
    const hits = proxy.trouble.hits().map((hit) => ({ ...hit, atMs: hit.atMs - this.#fromMs }));
    return { troubles, faults: { injected, hits, requests: proxy.calls.table() } };
  }

  async #onObjects(step: ObjectStep): Promise<StepDone> {
    const { cluster, manifests } = this.#o;
    const objects = [...step.manifests.flatMap((file) => manifests.get(file) ?? []), ...step.objects];
    const troubles: NodeTrouble[] = [];
    for (const object of objects) {
      const act = step.do === 'apply' ? cluster.apply(object) : cluster.remove(object);
      await act.catch((error: unknown) => troubles.push({ node: `${object.kind} ${object.metadata.name}`, why: messageOf(error) }));
    }
    return { what: step.do, count: objects.length, of: 'objects', troubles };
  }

  #look(last: boolean): FleetOverview {
    const overview = this.#o.fleet.overview();
    const atMs = this.#now();
    const of = { fleet: this.#o.fleet, clients: this.#o.proxy?.calls };
    for (const [i, e] of this.#expect.entries()) {
      const { measure } = e.spec;
      if (!isAsked(measure) && (last || e.wants(atMs))) this.#lookAt(i, measured(of, measure, overview), last);
      // Of objects that could not be asked for: it is late.
      else if (last) this.#lookAt(i, null, true);
    }
    if (!last && this.#asking === undefined && atMs >= this.#askAgainMs) {
      this.#asking = this.#ask(false).finally(() => {
        this.#asking = undefined;
      });
    }
    this.#timeline.look(overview, atMs);
    this.#o.onLook(overview, atMs);
    return overview;
  }

  /** Looks at the objects that are expected. Never rejects. */
  async #ask(last: boolean): Promise<void> {
    const { cluster, onTrouble, signal } = this.#o;
    const fromMs = this.#now();
    for (const [i, e] of this.#expect.entries()) {
      const { measure } = e.spec;
      if (!isAsked(measure) || e.decided || (!last && !e.wants(this.#now()))) continue;
      const keep = (left: readonly string[]): void => {
        this.#left = left;
      };
      const value = await asked(cluster, measure, keep).catch((error: unknown) => {
        if (!signal.aborted) onTrouble(messageOf(error));
        return null;
      });
      this.#lookAt(i, value, last);
    }
    const nowMs = this.#now();
    this.#askAgainMs = nowMs + Math.max(ASK_EVERY_MS, (nowMs - fromMs) / ASK_SHARE_MAX);
  }

  #lookAt(i: number, value: number | null, last: boolean): void {
    const e = this.#expect[i];
    if (e === undefined || e.decided) return;
    const atMs = this.#now();
    e.look(value, atMs, last);
    this.#timeline.expectation(i, e.fits, atMs);
  }

  #now(): number {
    return this.#o.clock.monoMs() - this.#fromMs;
  }

  /** Until then, or until the run is to end. */
  #pause(ms: number): Promise<void> {
    const { clock, signal } = this.#o;
    if (ms <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = clock.setTimeout(end, ms);
      signal.addEventListener('abort', end, { once: true });
    });
  }
}

/** Empty without values. */
function percentilesOf(sorted: readonly number[]): Percentiles[] {
  const at = (of: number): number => percentile(sorted, of) ?? 0;
  return sorted.length === 0 ? [] : [{ count: sorted.length, p50: at(50), p90: at(90), p99: at(99), max: at(100) }];
}
