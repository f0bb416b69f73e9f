/**
 * State held: which container has which CPUs alone, and what is left to all others; whose pod was granted CPUs and is not in
 * the pod manager's ledger yet; which set each running container was last given.
 * Lost on restart: the last two; the coordinator asks again.
 * Rebuilt from: `<root-dir>/cpu_manager_state`; running containers are told their sets again.
 */

import { fromPromise } from 'xstate';
import { type CpuSet, formatCpuSet, without } from '../../../machines/allocation/cpuSet.ts';
import { cpusMachine } from '../../../machines/allocation/cpus/cpusMachine.ts';
import { CPU_STATE_BYTES_MAX, CPU_STATE_FILE, encodeCpuState, openCpuState } from '../../../machines/allocation/cpus/file.ts';
import { type CpuCounts, type CpuLedger, type CpuPlace, cpusOf } from '../../../machines/allocation/cpus/ledger.ts';
import { cpusView } from '../../../machines/allocation/cpus/messages.ts';
import { allCpus } from '../../../machines/allocation/cpus/topology.ts';
import type { AllocationEvent } from '../../../machines/allocation/messages.ts';
import type { GrantReply, LedgerFacts } from '../../../machines/allocation/requests.ts';
import { podRef } from '../../../machines/pod/names.ts';
import type { ListedPod } from '../../../machines/pod/runtime/seen.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import { type CriClient, criCall, criClient } from '../../runtime/client.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { LEDGER_ACTOR, type LedgerIo, LedgerMoment, ledgerEffects } from '../ledgerActor.ts';
import { StateFile } from '../stateFile.ts';
import { cpuMetrics } from './metrics.ts';

export interface CpusOptions {
  /** The node's root directory. */
  rootDir: string;
  place: CpuPlace;
  /** cpuManagerReconcilePeriod. */
  everyMs: number;
  /** Gate DisableCPUQuotaWithExclusiveCPUs. */
  quotaLifted: boolean;
}

/** A change of cpuset is a write or two. */
const UPDATE_TIMEOUT_MS = 10_000;
/**
 * What was given up, or asked before this manager began, may still have its effect, after what is told later. The reference
 * gives its runtime this long for a call (--runtime-request-timeout); then a container is told once more.
 */
const LATE_MAX_MS = 120_000;

export function cpusSpec(opts: CpusOptions): ActorSpec<AllocationEvent> {
  return {
    ...LEDGER_ACTOR,
    id: 'cpus',
    start: (ctx) => {
      const manager = new CpuManager(ctx, opts);
      return { logic: logicOf(manager, () => new LedgerMoment(ctx)), input: { everyMs: opts.everyMs, place: opts.place } };
    },
  };
}

function logicOf(manager: CpuManager, facts: () => LedgerFacts) {
  const { actors, actions } = ledgerEffects<CpuLedger, CpuCounts>(manager);
  const share = fromPromise<string, CpuLedger | null>(({ input, signal }) => manager.share(input, signal));
  return provided(cpusMachine, { actors: { ...actors, share }, actions }, facts);
}

class CpuManager implements LedgerIo<CpuLedger, CpuCounts> {
  readonly #ctx: ActorCtx<AllocationEvent>;
  readonly #o: CpusOptions;
  readonly #cri: CriClient;
  readonly file: StateFile;
  /** What a running container was last given, by its id. `sure`: nothing that came before can still change it. */
  readonly #given = new Map<string, { cpus: string; sure: boolean }>();
  /** Until when something else may still change a container's set, in monotonic ms, by its id. */
  readonly #doubted = new Map<string, number>();
  /** Containers that run were looked at once. */
  #looked = false;
  /** What was last said of a container that could not be given its set, by its id. */
  readonly #said = new Map<string, string>();
  readonly #metrics: ReturnType<typeof cpuMetrics>;
  readonly #allocatable: CpuSet;

  constructor(ctx: ActorCtx<AllocationEvent>, o: CpusOptions) {
    this.#ctx = ctx;
    this.#o = o;
    this.#cri = criClient(ctx.registry);
    this.file = new StateFile(ctx, { rootDir: o.rootDir, name: CPU_STATE_FILE, bytesMax: CPU_STATE_BYTES_MAX, what: 'CPUs' });
    this.#metrics = cpuMetrics(ctx.ports.metrics);
    this.#metrics.begin();
    this.#allocatable = without(allCpus(o.place.topology), o.place.reserved);
  }

  open(text: string | null, file: string): ReturnType<typeof openCpuState> {
    return openCpuState(text, { place: this.#o.place, file });
  }

  encode(ledger: CpuLedger): string {
    return encodeCpuState(ledger);
  }

  count(replies: readonly GrantReply<CpuCounts>[]): void {
    this.#metrics.answered(replies);
  }

  sayReleased(uids: readonly string[]): void {
    const records = this.#ctx.registry.read(podsView)?.value.records;
    for (const uid of uids) this.#ctx.log.info({ ...refOf(records?.get(uid)?.pod, uid) }, 'CPUs of a pod that is over are released');
  }

  /** Each running container that is to have another set than it was last given. A stop of its pod that is under way goes first. */
  async share(ledger: CpuLedger | null, signal: AbortSignal): Promise<string> {
    const { registry } = this.#ctx;
    const listing = registry.read(runtimePodsView)?.value;
    if (ledger === null || listing === undefined || registry.read(criView)?.value.state !== 'ready') return '';
    const running = [...listing.pods.values()].map((pod) => ({ pod, containers: pod.containers.filter((c) => c.state === 'running') }));
    const ids = new Set(running.flatMap(({ containers }) => containers.map((c) => c.id)));
    for (const known of [this.#given, this.#doubted, this.#said]) for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    if (!this.#looked) for (const id of ids) this.#doubt(id);
    this.#looked = true;
    const failed = await Promise.all(running.map(({ pod, containers }) => this.#confine(ledger, { pod, containers }, signal)));
    return failed.flat().join('; ');
  }

  async #confine(
    ledger: CpuLedger,
    { pod, containers }: { pod: ListedPod; containers: ListedPod['containers'] },
    signal: AbortSignal,
  ): Promise<string[]> {
    const wanted = containers.flatMap(({ id, name }) => {
      const cpus = formatCpuSet(cpusOf(ledger, pod.uid, name).cpus);
      // No set at all would be no limit at all.
      return cpus === '' || this.#has(id, cpus) ? [] : [{ id, name, cpus }];
    });
    if (wanted.length === 0) return [];
    const calls = wanted.map(({ id, cpus }) =>
      criCall('UpdateContainerResources', { containerId: id, linux: { cpusetCpus: cpus } }, UPDATE_TIMEOUT_MS),
    );
    // Unknown until it is answered.
    for (const { id } of wanted) this.#given.delete(id);
    const results = await this.#cri.act(pod.uid, null, calls, { signal });
    return wanted.flatMap(({ id, name, cpus }, i) => {
      const result = results[i];
      if (result?.ok === true) {
        this.#given.set(id, { cpus, sure: !this.#isDoubted(id) });
        this.#said.delete(id);
        return [];
      }
      this.#doubt(id);
      const why = `container ${name} of pod ${pod.namespace}/${pod.name} is not on CPUs ${cpus} yet: ${result?.error.details ?? 'no answer'}`;
      if (!signal.aborted && this.#said.get(id) !== why) {
        this.#said.set(id, why);
        this.#ctx.log.warn({ uid: pod.uid, container: name, cpus }, `${why}; tried again at the next look`);
      }
      return [why];
    });
  }

  #has(id: string, cpus: string): boolean {
    const given = this.#given.get(id);
    return given?.cpus === cpus && (given.sure || this.#isDoubted(id));
  }

  #doubt(id: string): void {
    this.#doubted.set(id, this.#ctx.ports.clock.monoMs() + LATE_MAX_MS);
  }

  #isDoubted(id: string): boolean {
    return this.#ctx.ports.clock.monoMs() < (this.#doubted.get(id) ?? 0);
  }

  publish(ledger: CpuLedger): void {
    this.#ctx.publish(cpusView, { ledger, quotaLifted: this.#o.quotaLifted, allocatable: this.#allocatable });
    this.#metrics.now(ledger, this.#o.place);
  }
}

function refOf(pod: Parameters<typeof podRef>[0] | undefined, uid: string): object {
  return pod === undefined ? { uid } : podRef(pod);
}
