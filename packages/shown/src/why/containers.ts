/** What `why` says of a pod's containers, as data for programs and as lines for people. Pure. */
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { ContainerStatus, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import type { PodRecord } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { ContainerSummary } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { oneLine } from '@actorlet/kubelet/machines/text/oneLine.ts';
import type { PodExplained } from '../answers.ts';
import { backsOffUntilMs } from '../observer/backOff.ts';

/** Of what a container said last. */
const WORDS_CHARS_MAX = 400;

type ContainerExplained = PodExplained['containers'][number];

const PROBES_UNSEEN = 'a liveness or startup probe may have ended it: the events of the kubelet say so (kubectl describe pod)';

interface Explained {
  data: ContainerExplained;
  /** What cannot be seen from here. */
  hint: string;
  /** Nobody has said anything of it yet. */
  unheard: boolean;
  startedAtMs: number | undefined;
  /** Its last exit is the end of its present run. */
  over: boolean;
}

/** Containers in the order of the pod's definition, init containers first. `observed`: another kubelet starts them, and says when. */
export function explainedContainers({ pod, worker }: PodRecord, status: PodStatus | undefined, { observed = false } = {}): Explained[] {
  const { initContainerStatuses = [], containerStatuses = [] } = observed ? pod.status : {};
  const of = (list: readonly Container[] | undefined, told: readonly ContainerStatus[] | undefined, init: boolean) =>
    (list ?? []).map((container) =>
      explained(container, init, {
        seen: worker?.containers.find((s) => s.name === container.name && s.init === init),
        api: told?.find((s) => s.name === container.name),
        kubelet: (init ? initContainerStatuses : containerStatuses).find((s) => s.name === container.name),
      }),
    );
  return [
    ...of(pod.spec.initContainers, status?.initContainerStatuses, true),
    ...of(pod.spec.containers, status?.containerStatuses, false),
  ];
}

/** The worker knows at once; the status follows. */
function explained(
  container: Container,
  init: boolean,
  { seen, api, kubelet }: { seen: ContainerSummary | undefined; api: ContainerStatus | undefined; kubelet: ContainerStatus | undefined },
): Explained {
  const { name } = container;
  const { running, terminated, waiting } = api?.state ?? {};
  const backOffEndMs = seen?.state === 'running' ? 0 : backsOffUntilMs(kubelet ?? {});
  const told = backOffEndMs > 0 ? { ...kubelet?.state.waiting, nextStartAtMs: backOffEndMs } : seen;
  const ended = terminated ?? api?.lastState.terminated;
  const data = {
    ...{ name, init },
    state: seen?.state ?? (running ? 'running' : terminated ? 'terminated' : 'waiting'),
    reason: told?.reason || waiting?.reason || terminated?.reason || '',
    message: told?.message || waiting?.message || terminated?.message || heldBackBy(container, api),
    restarts: Math.max(seen?.restartCount ?? 0, api?.restartCount ?? 0),
    ...(told?.nextStartAtMs === undefined ? {} : { nextStartAtMs: told.nextStartAtMs }),
    ...lastExit(ended),
  };
  const startedAtMs = running?.startedAt === undefined ? undefined : Date.parse(running.startedAt);
  const isProbed = container.livenessProbe !== undefined || container.startupProbe !== undefined;
  const hint = kubelet !== undefined && isProbed && ended !== undefined && ended.reason !== 'OOMKilled' ? PROBES_UNSEEN : '';
  return { data, hint, unheard: seen === undefined && api === undefined, startedAtMs, over: terminated !== undefined };
}

/** Which probe keeps a running container from Ready; '': none does. */
export function heldBackBy(container: Container, status: ContainerStatus | undefined): string {
  if (status?.state.running === undefined || status.ready) return '';
  if (container.startupProbe !== undefined && status.started !== true) return 'not ready: its startup probe has not passed';
  return container.readinessProbe === undefined ? '' : 'not ready: its readiness probe does not pass';
}

function lastExit(ended: ContainerStatus['state']['terminated']): Pick<ContainerExplained, 'lastExit'> {
  if (ended === undefined) return {};
  const atMs = Date.parse(ended.finishedAt ?? '');
  const { exitCode, signal = 0, reason = '', message } = ended;
  return { lastExit: { exitCode, signal, reason, ...(Number.isFinite(atMs) ? { atMs } : {}), ...(message ? { message } : {}) } };
}

/** `exit code 1 (Error)`. */
export function exitText({ exitCode, signal, reason }: { exitCode: number; signal?: number; reason?: string | undefined }): string {
  return `${signal ? `signal ${signal}` : `exit code ${exitCode}`}${reason ? ` (${reason})` : ''}`;
}

export function containerLines(containers: readonly Explained[], nowMs: number): string[] {
  const lines = containers.filter((c) => !c.unheard).flatMap((c) => linesOf(c, nowMs));
  return lines.length === 0 ? [] : ['Containers', ...lines];
}

function linesOf({ data, hint, startedAtMs, over }: Explained, nowMs: number): string[] {
  const { name, init, state, reason, message, restarts, nextStartAtMs: next, lastExit } = data;
  const since = state === 'running' && startedAtMs !== undefined ? ` for ${shortDuration(nowMs - startedAtMs)}` : '';
  const parts = [`${state}${reason === '' ? '' : ` (${reason})`}${since}`, restarts === 1 ? '1 restart' : `${restarts} restarts`];
  if (next !== undefined)
    parts.push(next > nowMs ? `next start in ${shortDuration(next - nowMs)} at ${clockTime(next)}` : 'next start is due now');
  const lines = [`  ${init ? 'init ' : ''}${name}: ${parts.join(', ')}`];
  if (message !== '') lines.push(`      ${message}`);
  if (lastExit !== undefined) {
    const when = lastExit.atMs === undefined ? '' : `, ended ${shortDuration(nowMs - lastExit.atMs)} ago`;
    lines.push(`      ${over ? 'this run' : 'last run'}: ${exitText(lastExit)}${when}`);
    if (lastExit.message !== undefined && lastExit.message !== message)
      lines.push(`      ${oneLine(lastExit.message.trim()).slice(0, WORDS_CHARS_MAX)}`);
    if (hint !== '') lines.push(`      ${hint}`);
  }
  return lines;
}
