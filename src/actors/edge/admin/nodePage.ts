/** `/node` of the admin socket: what this daemon knows of its node and of the API server, for `actorctl node`. */

import { apiView } from '../../../machines/api/messages.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';
import { statusesView } from '../../../machines/pods/status/messages.ts';
import { pressureView } from '../../../machines/reclaim/eviction/messages.ts';
import { criView } from '../../../machines/runtime/cri/messages.ts';
import type { NodeFactsPage } from '../../../machines/shown/nodePage.ts';

import type { Registry } from '../../supervision/types.ts';
import type { Inspect } from '../server.ts';

export function nodePage(registry: Registry, inspect: Inspect): NodeFactsPage {
  const cri = registry.read(criView)?.value;
  const link = registry.read(apiView.link)?.value;
  const node = registry.read(apiView.node)?.value;
  const { name = '', version = '', kubeconfig = '' } = inspect.identity ?? {};
  return {
    name,
    version,
    kubeconfig,
    startedAtMs: inspect.started?.wallMs ?? 0,
    runtime: {
      name: cri?.runtimeName ?? '',
      version: cri?.runtimeVersion ?? '',
      ready: cri?.state === 'ready' && cri.runtimeReady,
      networkReady: cri?.networkReady ?? false,
      reason: cri?.reason || cri?.networkReason || cri?.remark || '',
    },
    pressures: [...(registry.read(pressureView)?.value.pressures ?? [])],
    api: link === undefined ? null : { state: link.state, server: link.server, reason: link.reason, sinceMs: link.sinceMs },
    registered: node === undefined ? null : { uid: node.uid, registered: node.registered, deleting: node.deleting },
    pods: [...(registry.read(podsView)?.value.records ?? [])].map(([uid, record]) => ({
      uid,
      namespace: record.pod.metadata.namespace,
      name: record.pod.metadata.name,
      source: record.source,
      phase: registry.read(statusesView)?.value.get(uid)?.status.phase ?? record.pod.status?.phase ?? 'Pending',
    })),
  };
}
