/** What a virtual node says of a pod of the API, and what of it runs. */
import { explainPod } from '@actorlet/shown/src/why/why.ts';
import { claimStepsView, claimsView } from '../../src/machines/allocation/claims/messages.ts';
import { eventsView } from '../../src/machines/foundation/messages.ts';
import { waitingPodsView } from '../../src/machines/pods/admission/messages.ts';
import { podsView } from '../../src/machines/pods/manager/messages.ts';
import { sourceErrorsView } from '../../src/machines/pods/podConfig/messages.ts';
import { statusesView } from '../../src/machines/pods/status/messages.ts';
import { criView } from '../../src/machines/runtime/cri/messages.ts';
import type { VirtualNode } from './virtualNode.ts';

/** What `actorctl why` prints. */
export function whyOf(h: VirtualNode, query: string): string {
  const { registry } = h.tree;
  const [nowMs, monoMs] = [h.time.clock.wallMs(), h.time.clock.monoMs()];
  return explainPod({
    ...{ query, nowMs, monoMs, actorAt: () => undefined },
    ...{ pods: registry.read(podsView)?.value, waiting: registry.read(waitingPodsView)?.value },
    ...{ statuses: registry.read(statusesView)?.value, events: registry.read(eventsView)?.value },
    claims: { records: registry.read(claimsView)?.value, steps: registry.read(claimStepsView)?.value },
    ...{ sourceErrors: registry.read(sourceErrorsView)?.value, cri: registry.read(criView)?.value },
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
