/**
 * The ledger of probe results: what a container instance begins with, what is dropped, what the rest of the node concludes
 * from it (pod lifecycle 8.1, 8.2, 8.5). Pure.
 */
import type { Container } from '../../kube/podTable.ts';
import type { ContainerStatus, Pod, PodStatus } from '../../kube/types.ts';
import { podAddress } from '../../pod/probes/netRequests.ts';
import {
  type ContainerProbes,
  PROBE_FIELDS,
  PROBE_TYPES,
  type ProbeLedger,
  type ProbeResult,
  type ProbeResults,
  type ProbeTarget,
  type ProbeType,
} from '../../pod/probes/probes.ts';
import { lastingContainers } from '../../pod/resources/podLevel.ts';
import { containerFieldPath } from '../../pod/runtime/killOrder.ts';
import type { PodRuntimeStatus } from '../../pod/runtime/seen.ts';

/** One pod as the probes see it. */
export interface PodFacts {
  pod: Pod;
  /** As the status manager last accepted it. */
  status: PodStatus;
  /** It is being stopped: no probe may end a container any more, readiness goes on. */
  terminating: boolean;
  /** What the API server shows of it; of a static pod, what it shows of the mirror. Null: it was not heard yet. */
  said: PodStatus | null;
}

const INITIAL: Readonly<Record<ProbeType, ProbeResult>> = { startup: 'unknown', readiness: 'failure', liveness: 'success' };

/** `containerd://abc` is `abc`. */
function bareId(containerID: string | undefined): string {
  return containerID?.slice(containerID.indexOf('://') + 3) ?? '';
}

function statusesOf(status: PodStatus): ContainerStatus[] {
  return [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
}

/**
 * What holds of an instance that has had no result yet. An instance that the API server's copy of the status shows as
 * running keeps what was said of it there: this node said it, before it was restarted. Nothing flips for want of memory.
 */
export function initialResult(type: ProbeType, of: { said: PodStatus | null; containerId: string }): ProbeResult {
  const said = statusesOf(of.said ?? {}).find((s) => s.state.running !== undefined && bareId(s.containerID) === of.containerId);
  if (type === 'readiness' && said?.ready === true) return 'success';
  if (type === 'startup' && said?.started === true) return 'success';
  return INITIAL[type];
}

export interface ProbeVerdicts {
  /** By container id; only containers with the probe concerned. */
  started: ReadonlyMap<string, boolean>;
  ready: ReadonlyMap<string, boolean>;
  liveness: ProbeResults;
  startup: ProbeResults;
}

/** What the results mean for a pod's status and for what is to be done with its containers. */
export function probeVerdicts(pod: Pod, status: PodRuntimeStatus, ledger: ProbeLedger): ProbeVerdicts {
  const started = new Map<string, boolean>();
  const ready = new Map<string, boolean>();
  const liveness = new Map<string, ProbeResult>();
  const startup = new Map<string, ProbeResult>();
  const probed = new Map(lastingContainers(pod).map((c) => [c.name, c]));
  for (const { id, name, state } of status.containers) {
    const container = probed.get(name);
    if (container === undefined || state !== 'running') continue;
    const result = (type: ProbeType): ProbeResult => ledger.get(id)?.[type] ?? initialResult(type, { said: pod.status, containerId: id });
    if (container.startupProbe !== undefined) {
      startup.set(id, result('startup'));
      started.set(id, result('startup') === 'success');
    }
    if (container.readinessProbe !== undefined) ready.set(id, result('readiness') === 'success');
    if (container.livenessProbe !== undefined) liveness.set(id, result('liveness'));
  }
  return { started, ready, liveness, startup };
}

interface Instance {
  container: Container;
  id: string;
  startedAtMs: number;
}

/** The running instances that have a probe; none when the pod is over. */
function instances({ pod, status }: PodFacts): Instance[] {
  if (status.phase === 'Failed' || status.phase === 'Succeeded') return [];
  const shown = new Map(statusesOf(status).map((s) => [s.name, s]));
  return lastingContainers(pod).flatMap((container) => {
    const s = shown.get(container.name);
    const id = bareId(s?.containerID);
    if (s?.state.running === undefined || id === '') return [];
    if (!PROBE_TYPES.some((type) => container[PROBE_FIELDS[type]] !== undefined)) return [];
    return [{ container, id, startedAtMs: Date.parse(s.state.running.startedAt) }];
  });
}

function sameProbes(a: ContainerProbes | undefined, b: ContainerProbes): boolean {
  return a !== undefined && a.unheard === b.unheard && PROBE_TYPES.every((type) => a[type] === b[type]);
}

/**
 * The ledger after a look at one pod: new instances begin with their initial results, those that run no more are dropped,
 * and what could only have ended a container counts as passed while the pod is being stopped. The same object when
 * nothing changed. What an instance began with before the API server was heard gives way to what that shows.
 */
export function lookedAt(ledger: ProbeLedger, facts: PodFacts): ProbeLedger {
  const { pod, terminating, said } = facts;
  const { uid } = pod.metadata;
  const next = new Map(ledger);
  let changed = false;
  const running = new Set<string>();
  for (const { container, id } of instances(facts)) {
    running.add(id);
    const had = ledger.get(id);
    const unheard = said === null && (had === undefined || had.unheard === true);
    const now: ContainerProbes = { uid, container: container.name, ...(unheard ? { unheard } : {}) };
    for (const type of PROBE_TYPES) {
      if (container[PROBE_FIELDS[type]] === undefined) continue;
      const found = had?.unheard === true && had[type] === INITIAL[type] ? undefined : had?.[type];
      const result = found ?? initialResult(type, { said, containerId: id });
      now[type] = terminating && type !== 'readiness' ? 'success' : result;
    }
    if (sameProbes(had, now)) continue;
    next.set(id, now);
    changed = true;
  }
  for (const [id, entry] of ledger) {
    if (entry.uid !== uid || running.has(id)) continue;
    next.delete(id);
    changed = true;
  }
  return changed ? next : ledger;
}

/** The results differ from those that the pod's worker went by: it has to look. */
export function isNews(before: ProbeLedger, now: ProbeLedger, { pod, terminating }: PodFacts): boolean {
  if (terminating) return false;
  const known = (id: string, type: ProbeType) => before.get(id)?.[type] ?? initialResult(type, { said: pod.status, containerId: id });
  const ofPod = [...now].filter(([, { uid }]) => uid === pod.metadata.uid);
  return ofPod.some(([id, entry]) => PROBE_TYPES.some((type) => entry[type] !== undefined && entry[type] !== known(id, type)));
}

/** Containers with probes of which no instance runs: the next one starts here. */
export function unstarted(facts: PodFacts): ReadonlySet<string> {
  const running = new Set(instances(facts).map(({ container }) => container.name));
  const probed = lastingContainers(facts.pod).filter((c) => PROBE_TYPES.some((type) => c[PROBE_FIELDS[type]] !== undefined));
  return new Set(probed.map((c) => c.name).filter((name) => !running.has(name)));
}

/** The probes that are to be running for a pod, from a ledger that {@link lookedAt} it. */
export function targetsOf(ledger: ProbeLedger, facts: PodFacts): ProbeTarget[] {
  const { pod, status, terminating } = facts;
  const { uid, name, namespace } = pod.metadata;
  return instances(facts).flatMap(({ container, id, startedAtMs }) => {
    const started = container.startupProbe === undefined || ledger.get(id)?.startup === 'success';
    return PROBE_TYPES.flatMap((type): ProbeTarget[] => {
      const probe = container[PROBE_FIELDS[type]];
      if (probe === undefined || (terminating && type !== 'readiness')) return [];
      return [
        {
          key: `${uid}/${container.name}/${type}`,
          pod: { uid, name, namespace },
          container,
          fieldPath: containerFieldPath(pod, container.name) ?? '',
          type,
          probe,
          containerId: id,
          podIP: podAddress(pod, status.podIP ? [status.podIP] : []),
          startedAtMs,
          started,
        },
      ];
    });
  });
}

/** The ledger with one result in it; the same object when it says so already, or when the instance is not in it any more. */
export function withResult(ledger: ProbeLedger, of: { containerId: string; type: ProbeType; result: ProbeResult }): ProbeLedger {
  const entry = ledger.get(of.containerId);
  if (entry === undefined || entry[of.type] === of.result) return ledger;
  return new Map(ledger).set(of.containerId, { ...entry, [of.type]: of.result });
}

/** Without the results of these pods. */
export function withoutPods(ledger: ProbeLedger, uids: ReadonlySet<string>): ProbeLedger {
  const kept = [...ledger].filter(([, entry]) => !uids.has(entry.uid));
  return kept.length === ledger.size ? ledger : new Map(kept);
}
