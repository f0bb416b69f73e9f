/** What the containers of a pod did, from what was seen of them. Pure. */

import type { ContainerStatus, PodStatus } from '../../machines/kube/types.ts';
import type { ContainerSpan, SeenContainer } from '../../machines/recorder/podHistory.ts';

/** Adds a span for each container that is in another state than its last span says. Answers whether there was one. */
export function noteContainers(spans: ContainerSpan[], seen: readonly SeenContainer[], atMs: number): boolean {
  let noted = false;
  for (const { name, init, state, reason, restartCount, lastExit } of seen) {
    const last = spans.findLast((s) => s.name === name && s.init === init);
    if (last?.state === state && last.reason === reason && last.restartCount === restartCount) continue;
    spans.push({ name, init, state, reason, restartCount, lastExit, fromMs: atMs });
    noted = true;
  }
  return noted;
}

export function seenIn(status: PodStatus | undefined): SeenContainer[] {
  const seen = (init: boolean) => (c: ContainerStatus) => ({
    name: c.name,
    init,
    state: stateOf(c),
    reason: c.state.waiting?.reason ?? c.state.terminated?.reason ?? '',
    restartCount: c.restartCount,
    lastExit: exitOf(c),
  });
  return [...(status?.initContainerStatuses ?? []).map(seen(true)), ...(status?.containerStatuses ?? []).map(seen(false))];
}

export function stateOf(s: ContainerStatus | undefined): string {
  if (s?.state.running !== undefined) return 'running';
  return s?.state.terminated === undefined ? 'waiting' : 'terminated';
}

export function exitOf(s: ContainerStatus | undefined): string {
  const ended = s?.state.terminated ?? s?.lastState.terminated;
  if (ended === undefined) return '';
  return `${ended.signal ? `signal ${ended.signal}` : `exit code ${ended.exitCode}`}${ended.reason ? ` (${ended.reason})` : ''}`;
}
