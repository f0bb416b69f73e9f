/** The form in which statuses are stored, compared and sent (pod lifecycle 7.3). */

import { sameData } from '../../data/sameData.ts';
import type { ContainerState, ContainerStatus, PodCondition, PodStatus } from '../../kube/types.ts';
import { headBytes, messageBytesMax } from '../../pod/runtime/terminationMessage.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import { isOwnedCondition } from './conditions.ts';

/** Whole seconds in UTC. A text that is no time is left for the reader to see. */
function wholeSeconds(text: string): string {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? text : rfc3339(ms);
}

function normalizeState(state: ContainerState, bytesMax: number): ContainerState {
  if (state.running !== undefined) return { running: { startedAt: wholeSeconds(state.running.startedAt) } };
  const ended = state.terminated;
  if (ended === undefined) return state;
  return {
    terminated: {
      ...ended,
      ...(ended.message === undefined ? {} : { message: headBytes(ended.message, bytesMax) }),
      ...(ended.startedAt ? { startedAt: wholeSeconds(ended.startedAt) } : {}),
      ...(ended.finishedAt ? { finishedAt: wholeSeconds(ended.finishedAt) } : {}),
    },
  };
}

/**
 * Times to whole seconds, termination messages cut so that together they fit, containers sorted by name; init containers
 * keep the order of the definition, in which they are generated.
 */
export function normalizeStatus(status: PodStatus): PodStatus {
  const bytesMax = messageBytesMax(status);
  const one = (c: ContainerStatus): ContainerStatus => ({
    ...c,
    state: normalizeState(c.state, bytesMax),
    lastState: normalizeState(c.lastState, bytesMax),
  });
  const byName = (list: readonly ContainerStatus[]): ContainerStatus[] =>
    list.map(one).sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return {
    ...status,
    ...(status.startTime === undefined ? {} : { startTime: wholeSeconds(status.startTime) }),
    ...(status.conditions === undefined
      ? {}
      : {
          conditions: status.conditions.map((c) =>
            c.lastTransitionTime ? { ...c, lastTransitionTime: wholeSeconds(c.lastTransitionTime) } : c,
          ),
        }),
    ...(status.initContainerStatuses === undefined ? {} : { initContainerStatuses: status.initContainerStatuses.map(one) }),
    ...(status.containerStatuses === undefined ? {} : { containerStatuses: byName(status.containerStatuses) }),
    ...(status.ephemeralContainerStatuses === undefined ? {} : { ephemeralContainerStatuses: byName(status.ephemeralContainerStatuses) }),
  };
}

/** Own conditions by what they say, not when; other writers' not at all. */
function comparable(status: PodStatus): unknown {
  const own = (status.conditions ?? [])
    .filter((c) => isOwnedCondition(c.type))
    .map(({ type, status: value, reason, message }: PodCondition) => [type, value, reason ?? '', message ?? ''])
    .sort((a, b) => ((a[0] ?? '') < (b[0] ?? '') ? -1 : 1));
  return { ...status, conditions: own };
}

/** Equal as far as writing goes (trap 57). Both normalised. */
export function sameStatus(a: PodStatus, b: PodStatus): boolean {
  return sameData(comparable(a), comparable(b));
}
