/** What a kubelet, or somebody behind its back, may do wrong; each is named by an observer beside it. */
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { CRI_LABELS } from '../../../../src/machines/wire/cri.ts';
import type { CriRequest } from '../../../../src/machines/wire/criCalls.ts';
import type { Cri } from '../../../../src/ports/ports.ts';
import type { ApiProxy } from '../../../e2e/lab/cluster/apiProxy.ts';
import type { ReferenceKubelet } from '../../../e2e/lab/cluster/referenceKubelet.ts';
import { IMAGE, sh, steady } from '../../../e2e/manifests.ts';
import { type Cluster, STAY } from '../../cluster.ts';

export interface Lab {
  cluster: Cluster;
  kubelet: ReferenceKubelet;
  /** Between the kubelet and the API server; the observer has a way of its own. */
  proxy: ApiProxy;
}

export interface Lie {
  id: string;
  /** Before the clock runs. */
  prepare?(lab: Lab): Promise<void>;
  begin(lab: Lab): Promise<void>;
  end(lab: Lab): Promise<void>;
  named: RegExp;
}

const once = { timeoutMs: 20_000, signal: new AbortController().signal };

const signal = ({ kubelet }: Lab, name: NodeJS.Signals): void => void process.kill(kubelet.pid ?? 0, name);
const freeze = (lab: Lab): void => signal(lab, 'SIGSTOP');
const thaw = async (lab: Lab): Promise<void> => signal(lab, 'SIGCONT');
const victim =
  (name: string) =>
  async ({ cluster }: Lab): Promise<void> => {
    await cluster.create(name, { containers: [steady()] });
    await cluster.ready(name);
  };
/** The kubelet goes on, and the pod goes. */
const without = (name: string) => async (lab: Lab) => {
  await thaw(lab);
  await lab.cluster.kubectl('delete', 'pod', name, '--force', '--grace-period=0');
};
/** Every object of the kubelet's patches that has this field, at whatever depth. */
function rewritten(value: unknown, change: (object: Record<string, unknown>) => void): unknown {
  if (Array.isArray(value)) for (const part of value) rewritten(part, change);
  else if (typeof value === 'object' && value !== null) {
    change(value as Record<string, unknown>);
    for (const part of Object.values(value)) rewritten(part, change);
  }
  return value;
}
/** `shows`: the lie is in the API. */
const lying = (
  name: string,
  { change, shows }: { change: (object: Record<string, unknown>) => void; shows(pod: Pod): boolean },
): Pick<Lie, 'begin' | 'end'> => ({
  async begin({ cluster, proxy }) {
    proxy.sent = (call, body) => (call.method === 'PATCH' && call.path.endsWith(`/pods/${name}/status`) ? rewritten(body, change) : body);
    await cluster.create(name, { containers: [steady()] });
    await cluster.podWhere(name, 'lies', (pod) => pod.status.phase === 'Running' && shows(pod));
  },
  async end({ cluster, proxy }) {
    proxy.sent = undefined;
    await cluster.kubectl('delete', 'pod', name, '--force', '--grace-period=0');
  },
});

async function sandboxOf(cri: Cri, name: string) {
  const { items } = await cri.call('ListPodSandbox', { filter: { labelSelector: { [CRI_LABELS.podName]: name } } }, once);
  const sandbox = items.find((s) => s.state === 'SANDBOX_READY');
  if (sandbox === undefined) throw new Error(`${name} has no sandbox`);
  return sandbox;
}
async function strangeContainer(
  cri: Cri,
  podSandboxId: string,
  o: { name: string; sandboxConfig: CriRequest<'CreateContainer'>['sandboxConfig']; labels: Record<string, string> },
): Promise<void> {
  const config = {
    ...{ metadata: { name: o.name, attempt: 0 }, image: { image: IMAGE }, command: ['sleep', '1000'] },
    ...{ labels: { ...o.labels, [CRI_LABELS.containerName]: o.name }, annotations: {}, logPath: `${o.name}.log`, linux: {} },
  };
  const { containerId } = await cri.call('CreateContainer', { podSandboxId, config, sandboxConfig: o.sandboxConfig }, once);
  await cri.call('StartContainer', { containerId }, once);
}

export const LIES: readonly Lie[] = [
  {
    id: 'a frozen kubelet',
    begin: async (lab) => freeze(lab),
    end: thaw,
    named: /^missing Lease /,
  },
  {
    id: 'a kubelet that was killed',
    async begin({ cluster, kubelet }) {
      await kubelet.end('SIGKILL');
      await cluster.create('orphan', { nodeName: 'e2e', containers: [steady()] });
    },
    async end({ cluster, kubelet }) {
      await kubelet.start();
      // The next fault is of a kubelet that is up: one that starts is given its time.
      await cluster.ready('orphan');
      await cluster.kubectl('delete', 'pod', 'orphan', '--force', '--grace-period=0');
    },
    named: /^\w+ (?:Folder|PodStatus) default\/orphan /,
  },
  {
    id: 'a watch of pods that brings nothing any more',
    async begin({ cluster, proxy }) {
      proxy.fault = ({ path, method }) =>
        path === '/api/v1/pods' && method === 'GET' ? { kind: 'refused', code: 503, reason: 'ServiceUnavailable' } : undefined;
      proxy.cut();
      await cluster.create('unheard', { nodeName: 'e2e', containers: [steady()] });
    },
    async end({ cluster, proxy }) {
      proxy.fault = () => undefined;
      // A kubelet waits longer after each watch that was refused.
      await cluster.ready('unheard');
      await cluster.kubectl('delete', 'pod', 'unheard', '--force', '--grace-period=0');
    },
    named: /^\w+ (?:Folder|PodStatus) default\/unheard /,
  },
  {
    id: 'a wrong readiness',
    ...lying('unready-lie', {
      change: (object) => {
        // Not where a patch says the order of the conditions.
        if ((object.type === 'Ready' || object.type === 'ContainersReady') && typeof object.status === 'string') object.status = 'False';
      },
      shows: ({ status }) => status.containerStatuses?.every((c) => c.ready) === true,
    }),
    named: /^differs PodStatus default\/unready-lie .*conditions\[Ready\]\.status is False, not True/,
  },
  {
    id: 'a status that lies',
    ...lying('counted', {
      change: (object) => {
        if (typeof object.restartCount === 'number') object.restartCount = 7;
      },
      shows: ({ status }) => status.containerStatuses?.[0]?.restartCount === 7,
    }),
    named: /^differs PodStatus default\/counted .*restartCount is 7, not 0/,
  },
  {
    id: 'a container that nobody asked for',
    prepare: victim('mined'),
    async begin(lab) {
      freeze(lab);
      const { cri } = lab.cluster.lab;
      const { id, metadata, labels } = await sandboxOf(cri, 'mined');
      if (metadata === null || metadata === undefined) throw new Error('no metadata');
      const sandboxConfig = {
        metadata,
        labels,
        annotations: {},
        logDirectory: '/tmp',
        linux: {},
      } as unknown as CriRequest<'CreateContainer'>['sandboxConfig'];
      await strangeContainer(cri, id, { name: 'miner', sandboxConfig, labels });
    },
    end: without('mined'),
    named: /^unexpected StartContainer default\/mined .*container miner/,
  },
  {
    id: 'a container that was removed behind its back',
    prepare: victim('robbed'),
    async begin(lab) {
      freeze(lab);
      const { cri } = lab.cluster.lab;
      const { id } = await sandboxOf(cri, 'robbed');
      const { containers } = await cri.call('ListContainers', { filter: { podSandboxId: id } }, once);
      for (const { id: containerId } of containers) {
        await cri.call('StopContainer', { containerId, timeout: 0 }, once);
        await cri.call('RemoveContainer', { containerId }, once);
      }
    },
    end: without('robbed'),
    named: /^missing CreateContainer default\/robbed made container main/,
  },
  {
    id: 'a sandbox without a pod',
    async begin(lab) {
      freeze(lab);
      const metadata = { name: 'ghost', namespace: 'default', uid: 'c0ffee00-0000-4000-8000-000000000000', attempt: 0 };
      const { podName, podNamespace, podUid } = CRI_LABELS;
      const labels = { [podName]: metadata.name, [podNamespace]: metadata.namespace, [podUid]: metadata.uid };
      const config = {
        metadata,
        labels,
        annotations: {},
        logDirectory: '/tmp',
        linux: {},
      } as unknown as CriRequest<'RunPodSandbox'>['config'];
      await lab.cluster.lab.cri.call('RunPodSandbox', { config }, once);
    },
    end: thaw,
    named: /^missing StopPodSandbox default\/ghost /,
  },
  {
    id: 'a mount that is missing',
    // The driver says that it published the volume, and did nothing.
    async begin({ cluster }) {
      const csi = { driver: 'lies.example.com' };
      await cluster.create('unmounted', {
        containers: [sh('main', STAY, { volumeMounts: [{ name: 'disk', mountPath: '/data' }] })],
        volumes: [{ name: 'disk', csi }],
      });
    },
    end: async ({ cluster }) => void (await cluster.kubectl('delete', 'pod', 'unmounted', '--force', '--grace-period=0')),
    named: /^missing Mount default\/unmounted mounted volume disk/,
  },
  {
    id: 'a pod that is never removed from the API',
    prepare: victim('stuck'),
    async begin({ cluster, proxy }) {
      proxy.fault = ({ path, method }) =>
        path.endsWith('/pods/stuck') && method === 'DELETE' ? { kind: 'refused', code: 503, reason: 'ServiceUnavailable' } : undefined;
      await cluster.kubectl('delete', 'pod', 'stuck', '--wait=false', '--grace-period=1');
    },
    async end({ cluster, proxy }) {
      proxy.fault = () => undefined;
      await cluster.kubectl('delete', 'pod', 'stuck', '--force', '--grace-period=0', '--ignore-not-found');
    },
    named: /^missing PodDeletion default\/stuck /,
  },
];
