/** Invariants about what the kernel says of processes that it killed for want of memory. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';

import { EMPTY_OOM_LEDGER, oomView, SYSTEM_OOM } from '@actorlet/kubelet/machines/runtime/oom.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { KernelVoice } from '../../nemesis/trouble/kernelVoice.ts';
import type { Checker } from '../checker.ts';

const OOM_WATCHER = 'node/runtime/oomWatcher';

/** An event about a node that ran out of memory is about a kill that was one, and there are no two about the same. */
export function nodeKillsAreReportedOnce(): Checker {
  return {
    name: 'node-kills-are-told-once',
    beat(s) {
      const kernel = s.environment.kernelOf(s.node);
      if (kernel === undefined) return undefined;
      for (const { reason, message, count } of s.node.daemon?.tree.registry.read(eventsView)?.value ?? []) {
        if (reason !== SYSTEM_OOM) continue;
        if (count > 1) return `${s.node.name}: told ${count} times: ${message}`;
        if (!kernel.nodeKills.some(({ pid }) => message === `System OOM encountered, victim process: hog${pid}, pid: ${pid}`))
          return `${s.node.name}: the kernel said no such thing of the node: ${message}`;
      }
      return undefined;
    },
  };
}

/** In fair weather the log is read to its end, and of what the kernel said since somebody listened nothing was left out. */
export function killsUnreported(node: SimNode, { kernel, tree }: { kernel: KernelVoice; tree: SupervisionTree }): string[] {
  const snapshot: unknown = tree.actorAt(OOM_WATCHER)?.getSnapshot();
  const value = snapshot !== null && typeof snapshot === 'object' && 'value' in snapshot ? snapshot.value : undefined;
  if (value !== 'following') return ["the kernel's log is not read"];
  const ledger = tree.registry.read(oomView)?.value ?? EMPTY_OOM_LEDGER;
  const { seq, beganAt } = node.kernelLog;
  if (ledger.seq !== seq) return [`the kernel's log is read up to ${ledger.seq ?? 'nothing'} of ${seq}`];
  const kills = kernel.nodeKills.filter((kill) => beganAt === null || kill.seq > beganAt).length;
  return ledger.told === kills ? [] : [`${kills} processes were killed for want of the node's memory, ${ledger.told} were told`];
}
