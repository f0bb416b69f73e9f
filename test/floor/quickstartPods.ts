/** Waits until each pod of the quick start is in the state that its manifest promises. */

interface SeenContainer {
  name: string;
  restartCount: number;
  state?: Record<string, { reason?: string; exitCode?: number }>;
  lastState?: { terminated?: { exitCode: number } };
}
interface SeenPod {
  metadata: { labels?: Record<string, string> };
  status?: {
    phase?: string;
    conditions?: { type: string; status: string }[];
    containerStatuses?: SeenContainer[];
    initContainerStatuses?: SeenContainer[];
  };
}

const main = (pod: SeenPod) => pod.status?.containerStatuses?.[0];
const ready = (pod: SeenPod) => pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const running = (pod: SeenPod) => pod.status?.phase === 'Running';
const steady = (pod: SeenPod) => running(pod) && ready(pod) && main(pod)?.restartCount === 0 && main(pod)?.state?.running !== undefined;
const completed = (c: SeenContainer) => c.state?.terminated?.exitCode === 0 && c.state.terminated.reason === 'Completed';

/** Whether a pod has reached its state, by its label `app`. */
const EXPECTED: Record<string, (pod: SeenPod) => boolean> = {
  steady,
  graceful: steady,
  init: (pod) => steady(pod) && pod.status?.initContainerStatuses?.length === 2 && pod.status.initContainerStatuses.every(completed),
  crasher: (pod) =>
    running(pod) &&
    (main(pod)?.restartCount ?? 0) >= 1 &&
    main(pod)?.state?.waiting?.reason === 'CrashLoopBackOff' &&
    main(pod)?.lastState?.terminated?.exitCode === 3,
};

/** Asks the read-only port until each pod has been as expected; answers with what it saw of those that were not. */
export async function quickstartPods(url: string, timeoutMs: number): Promise<{ missing: Record<string, unknown> }> {
  const until = performance.now() + timeoutMs;
  const open = new Map(Object.entries(EXPECTED));
  for (;;) {
    const seen = await podsAt(url);
    // A static pod's name carries the node's behind a dash, so its label tells which one it is.
    const of = (name: string) => seen.find((pod) => pod.metadata.labels?.app === name);
    for (const [name, reached] of open) {
      const pod = of(name);
      if (pod !== undefined && reached(pod)) open.delete(name);
    }
    if (open.size === 0 || performance.now() > until)
      return { missing: Object.fromEntries([...open.keys()].map((name) => [name, of(name)?.status])) };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function podsAt(url: string): Promise<SeenPod[]> {
  const answer = await fetch(`${url}/pods`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
  return answer?.ok === true ? (((await answer.json()) as { items: SeenPod[] | null }).items ?? []) : [];
}
