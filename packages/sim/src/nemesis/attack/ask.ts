/** Messages of the protocol that nobody in the tree sends yet, sent as a later manager would. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { apiAddr, apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { serverAddr } from '@actorlet/kubelet/machines/edge/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { plegAddr } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';

import type { WorkloadAct } from '../faults.ts';

/** More than the mailbox of lifecycle events holds: what is too much becomes one resync. */
const FLOOD = 5_000;
/** More than are asked about one by one. */
const UNKNOWN_CONTAINERS = 24;

/** False: there is nobody to ask, or nothing to ask for. */
export function ask(what: WorkloadAct['kind'] & `ask.${string}`, tree: SupervisionTree | undefined): boolean {
  if (tree === undefined) return false;
  const { registry } = tree;
  switch (what) {
    case 'ask.listing':
      return registry.send(plegAddr, { type: 'pleg.relist', why: 'somebody asks' }) !== 'dead';
    case 'ask.api':
      if (registry.read(apiView.link) === undefined) return false;
      registry.send(apiAddr.link, { type: 'api.check' });
      // Another call is answered in that very moment.
      if (registry.read(apiView.link)?.value.state === 'reachable') registry.send(apiAddr.link, { type: 'api.answered' });
      registry.send(apiAddr.nodeStatus, { type: 'node.report', why: 'somebody asks' });
      registry.send(apiAddr.events, { type: 'api.found' });
      return true;
    case 'ask.certificates':
      registry.send(serverAddr.https, { type: 'server.refresh' });
      return registry.send(serverAddr.https, { type: 'server.refresh' }) !== 'dead';
    case 'ask.flood':
      for (let i = 0; i < FLOOD; i++) registry.send(plegAddr, { type: 'pleg.hint', id: `nobody-${i}`, kind: 'other' });
      return true;
    case 'ask.unknown':
      for (let i = 0; i < UNKNOWN_CONTAINERS; i++) registry.send(plegAddr, { type: 'pleg.hint', id: `unknown-${i}`, kind: 'stopped' });
      return registry.send(plegAddr, { type: 'pleg.relist', why: 'somebody asks in that very moment' }) !== 'dead';
    case 'ask.hurry': {
      let hurried = false;
      for (const [uid, { worker, pod }] of registry.read(podsView)?.value.records ?? []) {
        // Only one that was deleted and stops anyway: its grace may shrink, nothing else changes.
        if (worker?.phase !== 'terminating' || pod.metadata.deletionTimestamp === undefined) continue;
        registry.send(workersAddr, { type: 'pod.kill', uid, life: 0, graceOverrideSeconds: 0 });
        hurried = true;
      }
      return hurried;
    }
  }
}
