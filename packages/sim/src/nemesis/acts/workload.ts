/** Carries out the entries of a schedule that are no faults: what users, operators and other programs do. */
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ask } from '../attack/ask.ts';
import type { WorkloadAct, WorkloadEntry } from '../faults.ts';
import type { Operator } from '../workload/operator.ts';
import { NOTHING_TO_DO, type Stage } from './act.ts';
import type { PodRestarts } from './restarts.ts';

type Kind = WorkloadAct['kind'];
type EntryOf<K extends Kind> = Extract<WorkloadEntry, { kind: K }>;
interface Place {
  node: SimNode;
  operator: Operator;
}
/** Their result is '' where something was done, else why not. */
type Works = { readonly [K in Kind]: (f: EntryOf<K>, place: Place) => string };

export const HEALTHY: SimNode['probed'] = () => ({ kind: 'healthy', afterMs: 1 });

export function workloadActs(stage: Stage, restarts: PodRestarts): (f: WorkloadEntry, place: Place) => string {
  const works: Works = {
    ...operatorWorks(stage),
    ...nodeWorks(stage),
    'pod.restart': (f, { node }) => done(restarts.ask(f, node)),
  };
  return (f, place) => {
    // The compiler does not see that the act of this kind takes an entry of this kind.
    const work = works[f.kind] as (f: WorkloadEntry, place: Place) => string;
    return work(f, place);
  };
}

function done(isDone: boolean, why = NOTHING_TO_DO): string {
  return isDone ? '' : why;
}

function operatorWorks({ clock, kube }: Stage) {
  return {
    'pod.put': (f, { operator }) => {
      operator.put(f.pod, f.source);
      return '';
    },
    'pod.remove': (f, { operator }) => {
      operator.remove(f.name);
      return '';
    },
    'pod.break': (f, { operator }) => done(operator.breakManifest(f.name), 'nothing to break'),
    'pod.mend': (_, { operator }) => {
      operator.mend();
      return '';
    },
    'pod.delete': (f, { operator }) => done(operator.deleteInApi(f.name, f.graceSeconds)),
    'pod.meddle': (f, { operator }) => done(operator.meddle(f.name, f.what)),
    'object.put': (f, { operator }) => done(operator.putObject(f.object)),
    'object.remove': (f, { operator }) => done(operator.removeObject(f.object)),
    'history.compact': (_, { operator }) => done(operator.compact()),
    'history.behind': (f) => {
      if (kube === undefined) return NOTHING_TO_DO;
      kube.store.compact();
      kube.trouble.behind = true;
      clock.setTimeout(() => {
        kube.trouble.behind = false;
      }, f.forMs);
      return '';
    },
    'manifests.away': (f, { operator }) => {
      if (!operator.takeManifests()) return NOTHING_TO_DO;
      clock.setTimeout(() => operator.mend(), f.forMs);
      return '';
    },
    'manifests.swap': (_, { operator }) => done(operator.swapManifests()),
    'node.moved': (_, { operator }) => done(operator.moveNode()),
  } satisfies Partial<Works>;
}

function nodeWorks({ clock, active }: Stage) {
  /** Windows of failing probes that are open, by node. */
  const sick = new Map<number, number>();
  const asks = (f: EntryOf<Kind & `ask.${string}`>, { node }: Place) => done(ask(f.kind, node.daemon?.tree));
  return {
    'ask.listing': asks,
    'ask.flood': asks,
    'ask.unknown': asks,
    'ask.hurry': asks,
    'ask.api': asks,
    'ask.certificates': asks,
    'probes.fail': (f, { node }) => {
      const refused = active.chance(f.id).chance(0.5);
      sick.set(f.node, (sick.get(f.node) ?? 0) + 1);
      node.probed = () => ({ kind: refused ? 'refused' : 'unhealthy', afterMs: 1 });
      clock.setTimeout(() => {
        const left = (sick.get(f.node) ?? 1) - 1;
        sick.set(f.node, left);
        if (left === 0) node.probed = HEALTHY;
      }, f.forMs);
      return '';
    },
    'figures.away': (f, { node }) => {
      node.runtime.trouble.noFigures += 1;
      clock.setTimeout(() => {
        node.runtime.trouble.noFigures -= 1;
      }, f.forMs);
      return '';
    },
  } satisfies Partial<Works>;
}
