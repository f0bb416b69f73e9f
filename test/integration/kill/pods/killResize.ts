/** For every state of a change of resources: how a node is driven there; and the pod manager killed while one waits. */
import type { ResourceRequirements } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { must } from '../../cluster/clusterPods.ts';
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const PODS = '/api/v1/namespaces/default/pods';
const POD_MANAGER = 'node/pods/podManager';
const WAS: ResourceRequirements = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '2', memory: '512Mi' } };
/** Less memory, so that its use is asked about first. */
const WANTED: ResourceRequirements = { requests: { cpu: '200m', memory: '64Mi' }, limits: { cpu: '3', memory: '256Mi' } };

const subject = (h: VirtualNode): Pod => must<Pod>(h, { verb: 'GET', path: `${PODS}/subject` });
const isReady = (h: VirtualNode): boolean => subject(h).status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const says = (h: VirtualNode, type: string): boolean => subject(h).status.conditions?.some((c) => c.type === type) === true;
const worker = (h: VirtualNode): string => `node/pods/workers/${subject(h).metadata.uid}`;
const inForce = (h: VirtualNode) => h.running().find((c) => c.podUid === subject(h).metadata.uid)?.resources;
/** Of the chart in the subject's worker, '' while there is none. */
const chart = (h: VirtualNode): string => h.charts(worker(h), /^resize$/)[0] ?? '';
function ask(h: VirtualNode, resources: ResourceRequirements): void {
  const containers = subject(h).spec.containers.map((c) => ({ ...c, resources }));
  must<Pod>(h, { verb: 'PATCH', path: `${PODS}/subject`, patchType: 'merge', body: { spec: { containers } } });
}
function resizing(state: string, hold: (h: VirtualNode) => void, wanted = WANTED): KillCase {
  return {
    covers: `resize ${state}`,
    path: worker,
    options: { cluster: true },
    arrange: async (h) => {
      const { spec, ...rest } = pod('subject', { container: { resources: WAS } }) as Pod;
      must<Pod>(h, { verb: 'POST', path: PODS, body: { ...rest, spec: { ...spec, nodeName: 'n1' } } });
      await h.until('the subject is Ready', () => isReady(h));
      await h.advance(2_000);
      hold(h);
      ask(h, wanted);
    },
    at: (h) => chart(h) === state,
    rests: (h) =>
      isReady(h) &&
      subject(h).status.containerStatuses?.[0]?.restartCount === 0 &&
      JSON.stringify(subject(h).status.containerStatuses?.[0]?.resources) === JSON.stringify(wanted) &&
      !says(h, 'PodResizeInProgress') &&
      inForce(h)?.memoryLimitInBytes === 256 * 1024 * 1024 &&
      inForce(h)?.cpuShares === 204,
    restsWithinMs: 180_000,
  };
}

export const RESIZE_CASES: KillCase[] = [
  resizing('idle', () => {}),
  resizing('measuring', (h) => {
    h.faults.latencyMs.ContainerStats = 3_000;
  }),
  resizing('updating', (h) => {
    h.faults.latencyMs.UpdateContainerResources = 3_000;
  }),
  resizing('failed', (h) => {
    h.faults.fault = (method) => (method === 'UpdateContainerResources' ? { kind: 'refuse', code: 13, details: 'no' } : undefined);
  }),
  {
    ...resizing('', () => {}, { ...WANTED, requests: { cpu: '64', memory: '64Mi' }, limits: { cpu: '64', memory: '512Mi' } }),
    covers: 'podManager holdingResizes',
    path: POD_MANAGER,
    at: (h) => h.state(POD_MANAGER) === 'holdingResizes' && says(h, 'PodResizePending'),
    rests: (h) => isReady(h) && says(h, 'PodResizePending') && h.state(POD_MANAGER) === 'holdingResizes' && inForce(h)?.cpuShares === 102,
  },
];
