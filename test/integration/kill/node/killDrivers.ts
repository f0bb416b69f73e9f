/** Who minds plugins beside the node, and who tells the cluster of them, killed in each state of each of their charts. */
import type { KubeVerdict } from '@actorlet/world/src/kube/types.ts';
import { driversView, pluginsAddr } from '../../../../src/machines/services/plugins/messages.ts';
import { isReady, post, put } from '../../cluster/clusterPods.ts';
import { pod, ROOT, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const PLUGINS = 'node/services/plugins';
const CSI_NODE = 'node/api/csiNode';
const NAME = 'csi.example.com';
const FOLDER = `${ROOT}/plugins_registry`;
const SOCKET = `${FOLDER}/${NAME}-reg.sock`;
const STORAGE = '/apis/storage.k8s.io/v1';
const NONE: KubeVerdict = { delayMs: 0 };

/** A driver, and a pod with a volume of it. */
function bring(h: VirtualNode, o: { down?: boolean } = {}): void {
  put(h, `${STORAGE}/csidrivers`, { metadata: { name: NAME }, spec: { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] } });
  h.drivers.add(SOCKET, { name: NAME, down: o.down === true });
  h.fs.makeSocket(SOCKET);
  const container = { volumeMounts: [{ name: 'disk', mountPath: '/data' }] };
  const volumes = [{ name: 'disk', csi: { driver: NAME } }];
  post(h, 'pods', pod('subject', { container, spec: { nodeName: 'n1', volumes } }));
}
/** The pod runs on its volume, the driver is known, and so it is to the cluster. */
function atRest(h: VirtualNode): boolean {
  const found = h.kube.handle({ verb: 'GET', path: `${STORAGE}/csinodes/n1` });
  const drivers = found.ok ? (found.body as { spec: { drivers: { name: string }[] } }).spec.drivers : [];
  const known = h.tree.registry.read(driversView)?.value.has(NAME) === true;
  return isReady(h, 'subject') && known && drivers.length === 1 && h.drivers.violations.length === 0 && h.mounts.table.length === 1;
}
const chart = (h: VirtualNode): string => h.charts(PLUGINS, SOCKET)[0] ?? '';
/** What is asked of these objects is answered like this from here on. */
function csiNodes(h: VirtualNode, verdict: KubeVerdict): void {
  h.kube.trouble.verdict = (r) => (r.path.includes('/csinodes') ? verdict : NONE);
}

function story(covers: string, path: string, more: Partial<KillCase> = {}): KillCase {
  return {
    covers,
    path,
    options: { cluster: true, drivers: true },
    arrange: async (h) => {
      bring(h);
      await h.until('all is at rest', () => atRest(h));
    },
    rests: atRest,
    restsWithinMs: 300_000,
    ...more,
  };
}

export const DRIVER_CASES: KillCase[] = [
  story('plugins watching', PLUGINS),
  story('plugins looking', PLUGINS, {
    arrange: async (h) => {
      h.fs.delayMs = (op, path) => (op === 'readdir' && path === FOLDER ? 3_000 : 0);
      bring(h);
    },
  }),
  story('plugins hinted', PLUGINS, {
    arrange: async (h) => {
      bring(h);
      await h.until('all is at rest', () => atRest(h));
      h.fs.put(`${FOLDER}/note`, 'x');
    },
  }),
  story('plugin registering', PLUGINS, {
    arrange: async (h) => {
      h.drivers.latencyMs = () => 2_000;
      bring(h);
    },
    at: (h) => chart(h) === 'registering',
  }),
  story('plugin failed', PLUGINS, {
    arrange: async (h) => bring(h, { down: true }),
    at: (h) => chart(h) === 'failed',
  }),
  story('plugin registered', PLUGINS, { at: (h) => chart(h) === 'registered' }),
  story('plugin renewing', PLUGINS, {
    arrange: async (h) => {
      bring(h);
      await h.until('all is at rest', () => atRest(h));
      h.drivers.latencyMs = (method) => (method === 'NodeGetInfo' ? 2_000 : 1);
      h.tree.registry.send(pluginsAddr, { type: 'plugins.renew', driver: NAME });
    },
    at: (h) => chart(h) === 'renewing',
  }),
  story('csiNode settled', CSI_NODE),
  story('csiNode converging', CSI_NODE, {
    arrange: async (h) => {
      csiNodes(h, { delayMs: 3_000 });
      bring(h);
    },
  }),
  story('csiNode failed', CSI_NODE, {
    arrange: async (h) => {
      csiNodes(h, { delayMs: 0, refuse: { status: 500 } });
      bring(h);
    },
  }),
];
