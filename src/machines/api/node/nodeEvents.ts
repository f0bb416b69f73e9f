/** Events about the node, from what flips between two reports. Pure. */
import type { NodeStatus } from './nodeObject.ts';

/** An event about the node. */
export interface NodeEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** Events about what flips between two statuses, as the reference words them. */
export function nodeEvents(name: string, old: NodeStatus, next: NodeStatus): NodeEvent[] {
  const out: NodeEvent[] = [];
  const [before, now] = [old.nodeInfo?.bootID ?? '', next.nodeInfo?.bootID ?? ''];
  if (before !== '' && now !== '' && before !== now)
    out.push({ type: 'Warning', reason: 'Rebooted', message: `Node ${name} has been rebooted, boot id: ${now}` });
  for (const c of next.conditions ?? []) {
    const before = old.conditions?.find((o) => o.type === c.type);
    if (before?.status === c.status) continue;
    // The first word on Ready is no news; the first on a pressure is.
    if (c.type === 'Ready' && before === undefined) continue;
    const reason = c.type === 'Ready' ? (c.status === 'True' ? 'NodeReady' : 'NodeNotReady') : c.reason.replace(/^Kubelet/, 'Node');
    if (/^Node(Ready|NotReady|Has)/.test(reason)) out.push(flip(name, reason));
  }
  return out;
}

/** Whether pods may be scheduled here, where that is news. */
export function schedulableEvent(name: string, before: boolean, unschedulable: boolean): NodeEvent | null {
  return before === unschedulable ? null : flip(name, unschedulable ? 'NodeNotSchedulable' : 'NodeSchedulable');
}

function flip(name: string, reason: string): NodeEvent {
  return { type: 'Normal', reason, message: `Node ${name} status is now: ${reason}` };
}
