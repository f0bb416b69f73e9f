/** A node with one pod behind its API, for somebody who was let in. Ends with the test. */
import { onTestFinished } from 'vitest';
import type { ContainerStatus, PodStatus } from '../../../src/machines/kube/types.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import { CRI_LABELS } from '../../../src/machines/wire/cri.ts';
import { pod, record, running, statusView, viewOfPods } from '../metrics/samples.ts';
import { type Ask, clientCa, type Lab, startLab } from './lab.ts';

export const ann = clientCa.leaf({ commonName: 'ann', organizations: ['dev'] });

export const web = pod('web', { containers: ['main', 'side'] });
export const uid = web.metadata.uid;
export const WAIT_MS = 20_000;

export async function start(o: Parameters<typeof startLab>[0] = {}) {
  const lab = await startLab(o);
  onTestFinished(() => lab.stop());
  lab.registry.set(podsView, viewOfPods([record(web), record(pod('orphan', { uid: 'r' }), { source: 'runtime' })]));
  say(lab, { main: { state: { running: { startedAt: '2026-01-01T00:00:00Z' } } } });
  const ask = (path: string, a: Ask = {}) => lab.ask(path, { client: ann, ...a });
  const upgrade = (path: string, a: Ask = {}) => lab.upgrade(path, { client: ann, ...a });
  return { ...lab, lab, ask, upgrade };
}
export function say(lab: Lab, containers: Record<string, Partial<ContainerStatus>>): void {
  const containerStatuses = Object.entries(containers).map(([name, more]) => ({
    ...{ name, ready: true, restartCount: 0, image: 'busybox', imageID: 'i', state: {}, lastState: {} },
    ...more,
  }));
  const status: PodStatus = { ...running, containerStatuses };
  lab.registry.set(statusesView, statusView({ [uid]: status }));
}
export const criContainer = (name: string, more: object = {}) => ({
  ...{ id: `id-${name}`, podSandboxId: 'sb', metadata: { name, attempt: 0 }, image: { image: 'busybox' }, imageRef: 'ref' },
  ...{ state: 'CONTAINER_RUNNING', createdAt: '1700000000000000000', annotations: {} },
  labels: {
    [CRI_LABELS.podUid]: uid,
    [CRI_LABELS.podName]: 'web',
    [CRI_LABELS.podNamespace]: 'default',
    [CRI_LABELS.containerName]: name,
  },
  ...more,
});
export const sandbox = { ...criContainer('x'), id: 'sb', state: 'SANDBOX_READY' };
export const coded = (code: number, message: string) => Object.assign(new Error(message), { code });
