/** What a status of a pod says of its containers. */
import type { PodPhase } from '@actorlet/kubelet/machines/kube/types.ts';
import { isTerminal } from '@actorlet/kubelet/machines/pod/phase.ts';
import { STATUS_UNKNOWN_REASON } from '@actorlet/kubelet/machines/pods/status/containers.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { CriContainer } from '@actorlet/kubelet/machines/wire/cri.ts';

/** As the runtime has it. */
export type StateOf = (containerId: string) => CriContainer['state'] | undefined;

const STATES = ['waiting', 'running', 'terminated'] as const;

/**
 * Whether a container of `has` came further than that of `wanted`: it has an id, is a later instance, runs or has ended. What the runtime
 * does not bear out is not so.
 */
export function isAhead(has: unknown, wanted: unknown, stateOf: StateOf): boolean {
  const all = (status: unknown) =>
    ['initContainerStatuses', 'containerStatuses'].flatMap((field) => {
      const list: unknown = isRecord(status) ? status[field] : undefined;
      const some = Array.isArray(list) ? list.filter(isRecord) : [];
      return some.map(({ name, containerID, restartCount, state }) => {
        const step = STATES.findIndex((s) => isRecord(state) && isRecord(state[s]));
        return { name, id: typeof containerID === 'string' ? containerID : '', count: Number(restartCount), step };
      });
    });
  const shown = new Map(all(has).map((c) => [c.name, c]));
  return all(wanted).some(({ name, id, count, step }) => {
    const other = shown.get(name) ?? { id: '', count: 0, step: 0 };
    if (other.id === '') return false;
    if (id === '') return true;
    const inRuntime = stateOf(other.id.replace(/^[\w-]+:\/\//, ''));
    // A listing may be old: a later instance that it has may have ended since.
    const isOver = inRuntime !== 'CONTAINER_RUNNING' || id !== other.id;
    const isSo = other.step === 2 ? isOver : inRuntime !== undefined && inRuntime !== 'CONTAINER_CREATED';
    return isSo && (id === other.id ? other.step > step : other.count > count);
  });
}

/** For which containers wait that nothing is said of. */
const CREATED = ['ContainerCreating', 'PodInitializing'];
/** And for which they wait as long as an image is not there. */
export const PULLED = [...CREATED, 'ErrImagePull', 'ImagePullBackOff'];

/** Whether nothing of the pod has run yet. */
export function isCreating(status: unknown): boolean {
  return (
    isRecord(status) &&
    status.phase === 'Pending' &&
    Array.isArray(status.containerStatuses) &&
    status.containerStatuses.length > 0 &&
    isWaiting(status, CREATED)
  );
}

/** A patch has neither what is as before. */
export function isWaiting(status: unknown, reasons: readonly unknown[]): boolean {
  const { phase = 'Pending', containerStatuses: all = [] } = isRecord(status) ? status : {};
  const isOne = (c: unknown): boolean =>
    isRecord(c) && isRecord(c.state) && isRecord(c.state.waiting) && reasons.includes(c.state.waiting.reason);
  return phase === 'Pending' && Array.isArray(all) && all.every(isOne);
}

/**
 * A status without what it would take back of the past: an address, and the end of an earlier instance. A kubelet takes back neither. What
 * came and went between two looks of this tree, the kubelet alone has seen.
 */
export function withoutPast(status: unknown): unknown {
  if (!isRecord(status)) return status;
  const ofContainer = (c: unknown): unknown => (isRecord(c) ? withoutEmpty(c, ['lastState']) : c);
  const lists = ['initContainerStatuses', 'containerStatuses'].flatMap((field) => {
    const list = status[field];
    return Array.isArray(list) ? [[field, list.map(ofContainer)] as const] : [];
  });
  return { ...withoutEmpty(status, ['podIP', 'podIPs']), ...Object.fromEntries(lists) };
}
function withoutEmpty(of: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  const isEmpty = (value: unknown): boolean => value == null || (isRecord(value) && Object.values(value).every((v) => v == null));
  return Object.fromEntries(Object.entries(of).filter(([name, value]) => !names.includes(name) || !isEmpty(value)));
}

/** Without ends of earlier instances where the object tells of another one: it came and went between two looks of this tree. */
export function withoutOtherEnds(status: unknown, has: unknown): unknown {
  if (!isRecord(status)) return status;
  const lists = ['initContainerStatuses', 'containerStatuses'].flatMap((field) => {
    const [own, other] = [status[field], isRecord(has) ? has[field] : undefined];
    if (!Array.isArray(own) || !Array.isArray(other)) return [];
    const ends = new Map(other.filter(isRecord).map((c) => [c.name, lastId(c)]));
    const isOther = (c: unknown): c is Record<string, unknown> => isRecord(c) && (ends.get(c.name) ?? lastId(c)) !== lastId(c);
    return [[field, own.map((c: unknown) => (isOther(c) ? Object.fromEntries(Object.entries(c).filter(([k]) => k !== 'lastState')) : c))]];
  });
  return { ...status, ...Object.fromEntries(lists) };
}
function lastId({ lastState }: Readonly<Record<string, unknown>>): unknown {
  return isRecord(lastState) && isRecord(lastState.terminated) ? lastState.terminated.containerID : undefined;
}

export function hasEnded(status: unknown): boolean {
  return isRecord(status) && isTerminal(status.phase as PodPhase | undefined);
}

/** Both refuse it: a kubelet says why in its own words, and nothing of containers. `wanted`: a patch, without what is so already. */
export function isRefused(has: unknown, wanted: unknown): boolean {
  if (!isRecord(has) || !isRecord(wanted) || has.phase !== 'Failed' || typeof has.reason !== 'string') return false;
  const { phase = has.phase, reason = has.reason } = wanted;
  if (phase !== has.phase || reason !== has.reason) return false;
  return !Array.isArray(has.containerStatuses) || has.containerStatuses.length === 0;
}

/** Of a pod that has ended: a kubelet that started meanwhile has not seen its sandbox ready. */
export function withoutAddress(status: unknown): unknown {
  if (!isRecord(status)) return status;
  const { podIP: _, podIPs: __, ...rest } = status;
  return rest;
}

/** Reasons for which containers ended, with their names; or the instances before them. */
export function endedBy(status: unknown, of: 'state' | 'lastState' = 'state'): Map<unknown, Set<unknown>> {
  const reasons = new Map<unknown, Set<unknown>>();
  for (const field of ['initContainerStatuses', 'containerStatuses']) {
    const list: unknown = isRecord(status) ? status[field] : undefined;
    for (const { name, [of]: state } of Array.isArray(list) ? list.filter(isRecord) : []) {
      if (!isRecord(state) || !isRecord(state.terminated)) continue;
      const { reason } = state.terminated;
      reasons.set(reason, (reasons.get(reason) ?? new Set()).add(name));
    }
  }
  return reasons;
}

/**
 * Whether the tree does not know how a container ended, and the object says it; or takes one for ended that the kubelet told of before a
 * listing showed it.
 */
export function isUnseen(wanted: unknown, has: unknown): boolean {
  const unknownIn = (status: unknown, of: 'state' | 'lastState') => endedBy(status, of).get(STATUS_UNKNOWN_REASON) ?? new Set();
  const [unknown, before, said] = [unknownIn(wanted, 'state'), unknownIn(wanted, 'lastState'), unknownIn(has, 'lastState')];
  return (
    [...before].some((name) => !said.has(name)) ||
    (unknown.size > 0 &&
      [...endedBy(has)].some(([reason, names]) => reason !== STATUS_UNKNOWN_REASON && [...names].some((name) => unknown.has(name))))
  );
}

/** Which fields, and the phase where it is among them. */
export function statusWords(status: unknown): string {
  if (!isRecord(status)) return 'the status of the pod';
  const phase = typeof status.phase === 'string' ? ` (phase ${status.phase})` : '';
  return `the status of the pod${phase}`;
}
