/** The PodList of /pods: what the pod manager knows, each with its live status. Pure. */
import type { Pod } from '../../machines/k8s.ts';
import type { PodsView, StatusView } from '../../machines/protocol.ts';

export interface PodList {
  kind: 'PodList';
  apiVersion: 'v1';
  metadata: Record<never, never>;
  /** null, not `[]`, when there is none: clients of the kubelet's list are used to that. */
  items: Omit<Pod, 'kind' | 'apiVersion'>[] | null;
}

/** Pods that some source wants, rejected ones included; neither removed ones nor strangers found in the runtime. */
export function podList(pods: PodsView, statuses: StatusView | undefined): PodList {
  const items: Omit<Pod, 'kind' | 'apiVersion'>[] = [];
  for (const [uid, record] of pods.records) {
    if (record.removed || record.source === 'runtime') continue;
    const { kind: _kind, apiVersion: _apiVersion, resize: _resize, ...pod } = record.pod;
    items.push({ ...pod, status: statuses?.get(uid)?.status ?? pod.status });
  }
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: items.length === 0 ? null : items };
}
