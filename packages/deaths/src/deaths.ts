/**
 * Keeps a bundle of facts for each death of a container or a pod.
 *
 * State held: deaths that wait for their bundle, kills by an unknown sender, where pods stand that may be stuck, the heads of the bundles.
 * Lost on restart: the first three; a death that was seen and not written yet gets no bundle.
 * Rebuilt from: `<root-dir>/actorlet/deaths/*.json`.
 */

import { lookout } from '@actorlet/kubelet/actors/supervision/looks/lookout.ts';
import type { ActorCtx, ActorSpec } from '@actorlet/kubelet/actors/supervision/types.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import {
  type Death,
  type DeathHead,
  type DeathsEvent,
  deathOf,
  deathsAddr,
  deathsDir,
  deathsView,
} from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { LazyMoment } from '@actorlet/kubelet/machines/xstate/facts.ts';
import { provided } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { bundleOf, bundleText, type DeathBundle, withKernelsWord } from '@actorlet/shown/src/deaths/bundle.ts';
import { lastSaid, wasOutOfMemory } from '@actorlet/shown/src/deaths/gathered.ts';
import { workerWords } from '@actorlet/shown/src/workerWords.ts';
import { fromPromise } from 'xstate';
import { type DeathsFacts, deathsMachine, type Kept, pushedOut } from './deathsMachine.ts';
import { BundleFiles } from './files.ts';
import { type GatherOptions, gather } from './gather.ts';
import type { Bundle } from './keeping.ts';
import { mayBeStuck, type Standings } from './stuck.ts';

export interface DeathsOptions extends Omit<GatherOptions, 'moment'> {
  /** The node at the newest moment. */
  moment(from: Pick<ActorCtx, 'registry' | 'ports'>): Moment;
  rootDir: string;
  /** Bundles kept at most, and bytes of each. */
  max: number;
  bytesMax: number;
  stuckAfterMs: number;
}

export function deathsSpec(o: DeathsOptions): ActorSpec<DeathsEvent> {
  return {
    type: 'actor',
    id: deathsAddr.path.split('/').at(-1) ?? 'deaths',
    backoff: { minMs: 1_000, maxMs: 30_000, jitter: 0.1 },
    // Nobody waits for it: of a storm it may lose the oldest.
    mailbox: { capacity: 1_024, overflow: 'drop-oldest' },
    start: (ctx) => {
      const bundles = new Bundles(ctx, o);
      return {
        logic: provided(
          deathsMachine,
          {
            actors: {
              read: fromPromise<readonly DeathHead[]>(() => bundles.read()),
              keep: fromPromise<Kept, KeepInput>(({ input }) => bundles.keep(input)),
              // Also where a pod only just got on: it is forgotten then.
              lookout: lookout<{ standings: Standings; unexplained: readonly Bundle[] }>(
                ctx.ports.clock,
                ({ standings, unexplained }) => standings.size > 0 || unexplained.length > 0 || bundles.isAnyUnsettled(),
              ),
            },
            actions: {
              publish: (_, { kept }) => bundles.publish(kept),
              report: (_, params) => bundles.report(params),
            },
          },
          () => new Facts(ctx, o),
        ),
        input: { max: o.max, stuckAfterMs: o.stuckAfterMs },
      };
    },
  };
}

interface KeepInput {
  death: Death;
  nth: number;
  /** It was kept before its cause was known. */
  before: Bundle | undefined;
  kept: readonly DeathHead[];
  max: number;
}

class Facts extends LazyMoment implements DeathsFacts {
  readonly #moment: Moment;

  constructor(ctx: ActorCtx<DeathsEvent>, { moment }: DeathsOptions) {
    super(ctx.ports);
    this.#moment = moment(ctx);
  }
  get records(): DeathsFacts['records'] {
    return this.#moment.read(podsView)?.records ?? new Map();
  }
  readonly wordsOf: DeathsFacts['wordsOf'] = (uid, worker) =>
    workerWords(uid, worker, { actorAt: (path) => this.#moment.stateAt(path), nowMs: this.wallMs });
  readonly lastSaid: DeathsFacts['lastSaid'] = (uid, container) => lastSaid(this.#moment, { uid, container });
  readonly wasOutOfMemory = (death: Death): boolean => wasOutOfMemory(this.#moment, death);
  readonly deathOf: DeathsFacts['deathOf'] = ({ pod }) => deathOf(pod, 'stuck', this.wallMs);
}

class Bundles {
  readonly #ctx: ActorCtx<DeathsEvent>;
  readonly #o: DeathsOptions;
  readonly #files: BundleFiles;
  readonly #counts;
  /** Failures of a row are told once. */
  #complained = '';

  constructor(ctx: ActorCtx<DeathsEvent>, o: DeathsOptions) {
    this.#ctx = ctx;
    this.#o = o;
    const { metrics, fs } = ctx.ports;
    this.#files = new BundleFiles(fs, { dir: deathsDir(o.rootDir), rootDir: o.rootDir, log: ctx.log });
    this.#counts = {
      kept: metrics.counter('actorlet_deaths_total', 'Deaths of containers and pods whose facts were kept, by kind', ['kind']),
      lost: metrics.counter(
        'actorlet_deaths_lost_total',
        'Deaths whose facts were not kept: too many at once, or they could not be written',
        ['why'],
      ),
    };
  }

  read(): Promise<DeathHead[]> {
    return this.#files.heads();
  }

  /** @throws what the file system says */
  async keep({ death, nth, before, kept, max }: KeepInput): Promise<Kept> {
    const { ports, log } = this.#ctx;
    const facts = await gather(ports, { ...this.#o, moment: () => this.#o.moment(this.#ctx) }, { death, nth });
    if (facts === null) return { bundle: null, removed: [] };
    const made = bundleOf(facts);
    // What was kept is what this gave.
    const bundle = before === undefined ? made : withKernelsWord(before as DeathBundle, made.kernel);
    const text = bundleText(bundle, this.#o.bytesMax);
    if (text === undefined) throw new Error(`it has more than ${this.#o.bytesMax} bytes, however much is left out`);
    const { head } = bundle;
    // Room first: a full disk is fuller with both.
    const removed = pushedOut(kept, head, max);
    for (const { id } of removed) await this.#files.remove(id);
    await this.#files.write(head.id, text);
    this.#complained = '';
    this.#counts.kept.inc({ kind: head.kind });
    log.info({ pod: `${head.pod.namespace}/${head.pod.name}`, uid: head.pod.uid, container: head.container, death: head.id }, head.title);
    return { bundle, removed };
  }

  publish(kept: readonly DeathHead[]): void {
    this.#ctx.publish(deathsView, kept);
  }

  report({ what, why, death, count }: { what: 'unread' | 'unwritten' | 'left'; why: string; death: Death | null; count: number }): void {
    if (what !== 'unread') this.#counts.lost.inc({ why: what === 'left' ? 'too many' : 'not written' }, count);
    if (what === 'left') return;
    const said = `${what} ${why}`;
    const fields = {
      dir: deathsDir(this.#o.rootDir),
      err: why,
      ...(death === null ? {} : { uid: death.pod.uid, pod: death.pod.name, container: death.container }),
    };
    if (this.#complained === said) this.#ctx.log.debug(fields, 'the facts about a death could not be kept either');
    else if (what === 'unread')
      this.#ctx.log.warn(fields, 'bundles of earlier deaths cannot be read; actorctl deaths shows those of this daemon');
    else this.#ctx.log.warn(fields, 'the facts about a death could not be kept; the pod is not touched by that');
    this.#complained = said;
  }

  /** Most nodes are at rest: then nothing is looked at more closely. */
  isAnyUnsettled(): boolean {
    const records = this.#ctx.registry.read(podsView)?.value.records;
    if (records === undefined) return false;
    for (const record of records.values()) if (mayBeStuck(record)) return true;
    return false;
  }
}
