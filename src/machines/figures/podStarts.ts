/** How long the start of a pod took (kubelet_pod_start_*). Pure. */
import type { ContainerStatus, Pod } from '../kube/types.ts';
import { isMadeHere } from '../pod/volumes/kinds.ts';

interface Span {
  fromMs: number;
  toMs: number;
}
interface StartDurations {
  /** From the pod's creation to its containers seen running. */
  totalSeconds: number;
  /** The same without pulls of images and init containers, which are not the node's doing. */
  sliSeconds: number;
}

/** Seconds: buckets of the kubelet's metrics of pod starts. */
export const POD_START_SECONDS = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
] as const;

/** Every container of it runs. */
export function hasStarted(pod: Pod): boolean {
  const { startTime, containerStatuses = [] } = pod.status;
  const started = (s: ContainerStatus): boolean => (s.state.running?.startedAt ?? null) !== null;
  return (
    startTime !== undefined &&
    startTime !== null &&
    containerStatuses.length === pod.spec.containers.length &&
    containerStatuses.every(started)
  );
}

/** Some volume of it comes from elsewhere: the reference leaves such a pod out of the start-up indicator. */
export function isStateful({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some((volume) => !isMadeHere(volume));
}

/** Null while it has not started, or where its times say nothing. `pull`: from the first to the last pull for it. */
export function startDurations(pod: Pod, o: { seenMs: number; pull: Span | undefined }): StartDurations | null {
  const createdMs = Date.parse(pod.metadata.creationTimestamp ?? '');
  if (!hasStarted(pod) || !Number.isFinite(createdMs)) return null;
  const totalMs = Math.max(0, o.seenMs - createdMs);
  const inits = initSpan(pod);
  const others = [o.pull, inits].filter((s) => s !== undefined);
  return { totalSeconds: totalMs / 1000, sliSeconds: Math.max(0, totalMs - covered(others)) / 1000 };
}

/** From the start of the first init container that ends to the end of the last one. */
function initSpan(pod: Pod): Span | undefined {
  const ended = (pod.status.initContainerStatuses ?? []).flatMap((s) => s.state.terminated ?? []);
  const from = ended.map((t) => Date.parse(t.startedAt ?? '')).filter(Number.isFinite);
  const to = ended.map((t) => Date.parse(t.finishedAt ?? '')).filter(Number.isFinite);
  return from.length === 0 || to.length === 0 ? undefined : { fromMs: Math.min(...from), toMs: Math.max(...to) };
}

/** What the spans cover together; where they overlap once. */
function covered(spans: readonly Span[]): number {
  let sum = 0;
  let upToMs = Number.NEGATIVE_INFINITY;
  for (const s of [...spans].sort((a, b) => a.fromMs - b.fromMs)) {
    sum += Math.max(0, s.toMs - Math.max(s.fromMs, upToMs));
    upToMs = Math.max(upToMs, s.toMs);
  }
  return sum;
}
