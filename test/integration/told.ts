/** What a virtual node says of a pod of the API, and what of it runs. */
import { view } from '../../src/machines/protocol.ts';
import { explainPod } from '../../src/machines/why.ts';
import type { VirtualNode } from './virtualNode.ts';

/** What `actorctl why` prints. */
export function whyOf(h: VirtualNode, query: string): string {
  const { registry } = h.tree;
  const [nowMs, monoMs] = [h.time.clock.wallMs(), h.time.clock.monoMs()];
  return explainPod({
    ...{ query, nowMs, monoMs, actorAt: () => undefined },
    ...{ pods: registry.read(view.pods)?.value, waiting: registry.read(view.waitingPods)?.value },
    ...{ statuses: registry.read(view.statuses)?.value, events: registry.read(view.events)?.value },
    ...{ sourceErrors: registry.read(view.sourceErrors)?.value, cri: registry.read(view.cri)?.value },
  }).lines.join('\n');
}

export function runningOf(h: VirtualNode, name: string) {
  const { sandboxes, containers } = h.runtime.dump();
  const mine = new Set(sandboxes.filter((s) => s.name === name).map((s) => s.id));
  return containers.filter((c) => mine.has(c.sandboxId) && c.state === 'CONTAINER_RUNNING');
}

/** Actors that crashed or were set aside. */
export function fallen(h: VirtualNode): unknown[] {
  return h.events.filter(
    (e) => (e.kind === 'child.exited' && e.reason.kind === 'error') || e.kind === 'supervisor.escalated' || e.kind === 'quarantined',
  );
}
