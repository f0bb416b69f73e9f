/**
 * What a recording holds of a pod and its status: what its views and pages are worked out from, and nothing of its
 * environment, commands, labels or annotations, nor what a container printed. Pure.
 */
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { ContainerState, ContainerStatus, Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { podFields } from '@actorlet/kubelet/machines/pods/admission/supported.ts';
import type { LifeState, PodRecord } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { STATUS_UNKNOWN_REASON } from '@actorlet/kubelet/machines/pods/status/containers.ts';
import { type Check, isNumber, isText, isTruth, listOf, oneOf, optional, orNull, shape } from '../checks.ts';

/** In the place of what a container printed last. */
const PRINTED = '(what it printed is in no recording)';

/** Reasons of ends of which the node or the runtime tells, and no container. */
const TOLD: readonly unknown[] = [STATUS_UNKNOWN_REASON, 'StartError'];
function printed(reason: string | undefined, message: string | undefined): string | undefined {
  return message && !TOLD.includes(reason) ? PRINTED : message;
}

/** A pod as a recording has it: with what its other fields came to. */
export type RecordedPod = Pick<PodRecord, 'pod' | 'leftAlone'>;

const known = new WeakMap<Pod, { api?: RecordedPod; other?: RecordedPod }>();

/** The same answer for the same pod: definitions change rarely, records all the time. */
export function podOfRecord(pod: Pod, source: PodRecord['source']): RecordedPod {
  const key = source === 'api' ? 'api' : 'other';
  const kept = known.get(pod);
  if (kept?.[key] !== undefined) return kept[key];
  const made = podKept(pod, key === 'api');
  known.set(pod, { ...kept, [key]: made });
  return made;
}

function podKept(pod: Pod, api: boolean): RecordedPod {
  const { metadata, spec, status } = pod;
  const images = (spec.volumes ?? []).flatMap(({ name, image }) => {
    const reference = (image as { reference?: unknown } | undefined)?.reference;
    return typeof reference === 'string' ? [{ name, image: { reference: reference } }] : [];
  });
  return {
    pod: {
      metadata: {
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
        ...(metadata.creationTimestamp === undefined ? {} : { creationTimestamp: metadata.creationTimestamp }),
      },
      spec: {
        containers: spec.containers.map(definitionKept),
        ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(definitionKept) }),
        ...(spec.ephemeralContainers === undefined ? {} : { ephemeralContainers: spec.ephemeralContainers.map(definitionKept) }),
        ...(spec.hostNetwork === true ? { hostNetwork: true } : {}),
        ...(spec.resourceClaims === undefined ? {} : { resourceClaims: spec.resourceClaims }),
        ...(images.length === 0 ? {} : { volumes: images }),
      },
      status: statusKept(status),
    } as unknown as Pod,
    leftAlone: podFields(pod, { api }).leftAlone,
  };
}

/** Whether it is a sidecar, and which probes it has: not what these ask. */
function definitionKept(c: Pick<Container, 'name'> & Partial<Container>): object {
  const probes = PROBES.filter((probe) => c[probe] !== undefined);
  return {
    ...{ name: c.name, image: c.image ?? '' },
    ...(c.restartPolicy === undefined ? {} : { restartPolicy: c.restartPolicy }),
    ...Object.fromEntries(probes.map((probe) => [probe, {}])),
  };
}
const PROBES = ['startupProbe', 'readinessProbe', 'livenessProbe'] as const;

export function statusKept(status: PodStatus | undefined): PodStatus {
  const kept = {
    phase: status?.phase,
    reason: status?.reason,
    message: status?.message,
    podIP: status?.podIP,
    startTime: status?.startTime,
    conditions: status?.conditions?.map(({ type, status: is, reason, message, lastTransitionTime }) => ({
      ...{ type, status: is, reason, message, lastTransitionTime },
    })),
    initContainerStatuses: status?.initContainerStatuses?.map(containerKept),
    containerStatuses: status?.containerStatuses?.map(containerKept),
    ephemeralContainerStatuses: status?.ephemeralContainerStatuses?.map(containerKept),
    resourceClaimStatuses: status?.resourceClaimStatuses,
    extendedResourceClaimStatus: status?.extendedResourceClaimStatus,
  };
  return kept as PodStatus;
}

function containerKept(c: ContainerStatus): object {
  const { name, ready, started, restartCount, imageID } = c;
  return { name, ready, started, restartCount, imageID, state: stateKept(c.state), lastState: stateKept(c.lastState) };
}
function stateKept({ waiting, running, terminated }: ContainerState): object {
  if (waiting !== undefined) return { waiting: { reason: waiting.reason, message: waiting.message } };
  if (running !== undefined) return { running: { startedAt: running.startedAt } };
  if (terminated === undefined) return {};
  const { exitCode, signal, reason, startedAt, finishedAt, message } = terminated;
  return { terminated: { exitCode, signal, reason, startedAt, finishedAt, message: printed(reason, message) } };
}

export function recordKept(record: PodRecord): object {
  const { source, state, way, seenAtMs, worker } = record;
  return {
    ...podOfRecord(record.pod, source),
    source,
    state: lifeKept(state, source),
    way,
    seenAtMs,
    worker:
      worker === null
        ? null
        : {
            ...worker,
            containers: worker.containers.map((c) => (c.state === 'terminated' ? { ...c, message: printed(c.reason, c.message) } : c)),
          },
  };
}
/** Without what the runtime held when the pod was found there. */
function lifeKept(state: LifeState, source: PodRecord['source']): object {
  const verdict = 'verdict' in state ? { verdict: state.verdict } : {};
  const next =
    'next' in state ? { next: state.next === null ? null : { refusal: state.next.refusal, ...podOfRecord(state.next.pod, source) } } : {};
  return { is: state.is, ...verdict, ...next, ...('error' in state ? { error: state.error } : {}) };
}

// ---- what comes back -------------------------------------------------------------------------------------------------

const anything = optional(shape({}));
const named = listOf(
  shape({
    ...{ name: isText, image: optional(isText), restartPolicy: optional(isText) },
    ...{ startupProbe: anything, readinessProbe: anything, livenessProbe: anything },
  }),
);
const cause = shape({ atMs: isNumber, by: isText, what: isText });
const maybeText = optional(orNull(isText));
const state = shape({
  waiting: optional(shape({ reason: maybeText, message: maybeText })),
  running: optional(shape({ startedAt: maybeText })),
  terminated: optional(
    shape({ exitCode: isNumber, signal: optional(orNull(isNumber)), reason: maybeText, startedAt: maybeText, finishedAt: maybeText }),
  ),
});
const containers = optional(
  listOf(
    shape({
      ...{ name: isText, ready: isTruth, started: optional(orNull(isTruth)), restartCount: isNumber, imageID: maybeText },
      ...{ state, lastState: state },
    }),
  ),
);
const claims = optional(listOf(shape({ name: optional(isText), resourceClaimName: maybeText, resourceClaimTemplateName: maybeText })));
export const isStatus: Check = shape({
  ...{ phase: maybeText, reason: maybeText, message: maybeText, podIP: maybeText, startTime: maybeText },
  conditions: optional(
    listOf(shape({ type: isText, status: isText, reason: maybeText, message: maybeText, lastTransitionTime: maybeText })),
  ),
  ...{ initContainerStatuses: containers, containerStatuses: containers, ephemeralContainerStatuses: containers },
  resourceClaimStatuses: claims,
});
export const isPod: Check = shape({
  metadata: shape({ namespace: isText, name: isText, uid: isText, creationTimestamp: maybeText }),
  spec: shape({
    ...{ containers: named, initContainers: optional(named), ephemeralContainers: optional(named) },
    ...{ hostNetwork: optional(isTruth), resourceClaims: claims },
    volumes: optional(listOf(shape({ name: isText, image: shape({ reference: isText }) }))),
  }),
  status: isStatus,
});
const refused = shape({ reason: isText, message: isText });
const verdict: Check = (v) =>
  shape({ kind: oneOf('rejected'), reason: isText, eviction: orNull(refused) })(v) ||
  shape({ kind: oneOf('refused'), refusal: refused })(v) ||
  shape({ kind: oneOf('evicted'), eviction: refused })(v);
export const isRecord: Check = shape({
  ...{ pod: isPod, leftAlone: listOf(isText), source: isText, seenAtMs: isNumber },
  state: shape({
    is: oneOf('waiting', 'refused', 'running', 'failing', 'leaving', 'ended', 'quarantined'),
    verdict: optional(orNull(verdict)),
    next: optional(orNull(shape({ refusal: orNull(refused), pod: isPod }))),
  }),
  way: optional(listOf(shape({ atMs: isNumber, is: isText, by: isText }))),
  worker: orNull(
    shape({
      ...{ phase: isText, state: isText, reason: isText, message: isText, sinceMs: isNumber, causes: listOf(cause) },
      containers: listOf(
        shape({
          ...{ name: isText, init: isTruth, state: isText, reason: isText, message: isText, restartCount: isNumber },
          nextStartAtMs: optional(isNumber),
        }),
      ),
    }),
  ),
});
