/** Expectations about what the API server keeps: it is asked at each look. */
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { EventsSpec, Measure } from '../spec/expect.ts';
import type { Cluster } from './cluster.ts';
import { countOf } from './expectation.ts';
import { leftBehind } from './leftBehind.ts';
import { type Where, where } from './where.ts';

export type AskedMeasure = Extract<Measure, { what: 'objects' | 'events' | 'leftBehind' }>;

export function isAsked(measure: Measure): measure is AskedMeasure {
  return measure.what === 'objects' || measure.what === 'events' || measure.what === 'leftBehind';
}

/** As it was read, for every look. */
const CONDITIONS = new WeakMap<AskedMeasure, Where>();

/** `which`: told of the objects that are left behind. @throws Error with the words of the API server. */
export async function asked(cluster: Cluster, measure: AskedMeasure, which: (left: readonly string[]) => void = () => {}): Promise<number> {
  switch (measure.what) {
    case 'objects': {
      const objects = await cluster.list(measure.of);
      const holds = conditionOf(measure);
      return countOf(holds === null ? objects : cluster.fitting(objects, holds), measure);
    }
    case 'events':
      return countEvents(await cluster.list(eventsOf(measure.of)), measure.of);
    case 'leftBehind': {
      const left = leftBehind(await cluster.listAll());
      which(left);
      return left.length;
    }
  }
}

/** Null: there is none. */
function conditionOf(measure: Extract<AskedMeasure, { what: 'objects' }>): Where | null {
  if (measure.where === undefined) return null;
  let condition = CONDITIONS.get(measure);
  if (condition === undefined) {
    condition = where(measure.where);
    CONDITIONS.set(measure, condition);
  }
  return condition;
}

const eventsOf = ({ namespace }: EventsSpec) => ({ apiVersion: 'v1', kind: 'Event', ...(namespace === undefined ? {} : { namespace }) });

/** One that came again counts as often as it came. */
function countEvents(events: readonly KubeObject[], { reason, type, kind, name }: EventsSpec): number {
  let count = 0;
  for (const event of events) {
    const about = isRecord(event.involvedObject) ? event.involvedObject : {};
    const fits =
      (reason === undefined || event.reason === reason) &&
      (type === undefined || event.type === type) &&
      (kind === undefined || about.kind === kind) &&
      (name === undefined || about.name === name);
    const series = isRecord(event.series) ? Number(event.series.count) : 0;
    if (fits) count += Math.max(1, Number(event.count) || 0, series || 0);
  }
  return count;
}
