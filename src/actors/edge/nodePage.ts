/** `/node` of the admin socket: what this daemon knows of its node and of the API server, for `actorctl node`. */
import { apiView } from '../../machines/api/messages.ts';
import type { NodeFactsPage } from '../../machines/nodePage.ts';
import { view } from '../../machines/protocol.ts';
import type { Registry } from '../supervision/types.ts';
import type { Inspect } from './server.ts';

export function nodePage(registry: Registry, inspect: Inspect): NodeFactsPage {
  const cri = registry.read(view.cri)?.value;
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
      reason: cri?.reason || cri?.networkReason || '',
    },
    pressures: [...(registry.read(view.pressure)?.value.pressures ?? [])],
    api: link === undefined ? null : { state: link.state, server: link.server, reason: link.reason, sinceMs: link.sinceMs },
    registered: node === undefined ? null : { uid: node.uid, registered: node.registered, deleting: node.deleting },
    pods: [...(registry.read(view.pods)?.value.records ?? [])].map(([uid, record]) => ({
      uid,
      namespace: record.pod.metadata.namespace,
      name: record.pod.metadata.name,
      source: record.source,
      phase: registry.read(view.statuses)?.value.get(uid)?.status.phase ?? record.pod.status?.phase ?? 'Pending',
    })),
  };
}
