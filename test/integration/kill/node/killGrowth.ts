/** The volume manager killed while the claim of one of its volumes grows. What is grown in the end, and said of it, is the same. */
import { isReady, must, NS } from '../../cluster/clusterPods.ts';
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const VOLUMES = 'node/services/volumes';
const NAME = 'csi.example.com';
const SOCKET = `${ROOT}/plugins_registry/${NAME}-reg.sock`;
const CLAIM = `${NS}/persistentvolumeclaims/data`;

function send(h: VirtualNode, verb: 'POST' | 'PATCH', path: string, body: object): void {
  must(h, { verb, path, body, ...(verb === 'PATCH' ? { patchType: 'merge' as const } : {}) });
}
function claim(h: VirtualNode): { metadata: { uid: string }; status: { capacity?: { storage?: string }; conditions?: unknown[] } } {
  const got = h.kube.handle({ verb: 'GET', path: CLAIM });
  return (got.ok ? got.body : { metadata: { uid: '' }, status: {} }) as ReturnType<typeof claim>;
}
function bring(h: VirtualNode): void {
  h.drivers.add(SOCKET, { name: NAME, capabilities: new Set(['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME']) });
  h.fs.makeSocket(SOCKET);
  send(h, 'POST', '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: NAME }, spec: { attachRequired: false } });
  send(h, 'POST', `${NS}/persistentvolumeclaims`, {
    metadata: { name: 'data' },
    spec: { volumeName: 'pv-1', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  });
  const csi = { driver: NAME, volumeHandle: 'vol-1' };
  const claimRef = { uid: claim(h).metadata.uid };
  const spec = { accessModes: ['ReadWriteOnce'], claimRef, capacity: { storage: '1Gi' }, csi };
  send(h, 'POST', '/api/v1/persistentvolumes', { metadata: { name: 'pv-1' }, spec });
  const container = { volumeMounts: [{ name: 'disk', mountPath: '/data' }] };
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'data' } }];
  send(h, 'POST', `${NS}/pods`, pod('subject', { container, spec: { nodeName: 'n1', volumes } }));
}
const asked = (h: VirtualNode) => send(h, 'PATCH', CLAIM, { spec: { resources: { requests: { storage: '2Gi' } } } });
function resized(h: VirtualNode): void {
  send(h, 'PATCH', '/api/v1/persistentvolumes/pv-1', { spec: { capacity: { storage: '2Gi' } } });
  const status = { allocatedResources: { storage: '2Gi' }, allocatedResourceStatuses: { storage: 'NodeResizePending' } };
  send(h, 'PATCH', `${CLAIM}/status`, { status });
}
const chart = (h: VirtualNode): string => h.charts(VOLUMES, /\/disk#/)[0] ?? '';
const runs = (h: VirtualNode) => isReady(h, 'subject');
const grown = (h: VirtualNode) => runs(h) && claim(h).status.capacity?.storage === '2Gi' && h.drivers.violations.length === 0;

function story(state: string, more: Partial<KillCase> = {}): KillCase {
  return {
    covers: `volume ${state}`,
    path: VOLUMES,
    options: { cluster: true, drivers: true },
    arrange: async (h) => {
      bring(h);
      await h.until('the subject runs', () => runs(h));
      asked(h);
      resized(h);
    },
    at: (h) => chart(h) === state,
    release: resized,
    rests: grown,
    restsWithinMs: 300_000,
    ...more,
  };
}

export const GROWTH_CASES: KillCase[] = [
  story('growing', {
    arrange: async (h) => {
      bring(h);
      await h.until('the subject runs', () => runs(h));
      h.drivers.answerMs = (method) => (method === 'NodeExpandVolume' ? 5_000 : 0);
      asked(h);
      resized(h);
      await h.until('its driver is asked', () => h.drivers.calls.some((c) => c.method === 'NodeExpandVolume'), 100_000);
    },
  }),
  story('growFailed', {
    arrange: async (h) => {
      bring(h);
      await h.until('the subject runs', () => runs(h));
      h.drivers.fault = (_, method) => (method === 'NodeExpandVolume' ? { code: 14, details: 'no', effect: false } : undefined);
      asked(h);
      resized(h);
    },
  }),
];
