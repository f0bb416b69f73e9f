/** Daemons beside each other on one API server of Kubernetes, each on a hollow runtime of its own (a process behind the CRI). */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDaemon, type Daemon } from '../../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../../test/e2e/lab/cluster/controlPlane.ts';
import { cleanUpOnce } from './cleanUp.ts';
import { ClusterView, NAMESPACE, type PodHistory } from './cluster.ts';
import { LONG_MS } from './member.ts';
import { say, until } from './report.ts';

const READY = { timeoutMs: 90_000, everyMs: 100 };

export interface Agent {
  /** Of the agent and of its node. */
  name: string;
  /** A program that stands in for Node (ACTORLET_NODE); '': Node itself. */
  node: string;
  daemon: Daemon;
}

export interface Beside {
  all: Agent[];
  start(agent: Agent): Promise<void>;
  /** So many pods on each node at once, until all are Ready. */
  make(prefix: string, count: number): Promise<PodHistory[]>;
  remove(pods: readonly PodHistory[]): Promise<void>;
  end(): Promise<unknown>;
}

const pod = (name: string, node: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: NAMESPACE, labels: { app: 'bench' } },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'hollow/idle:1', imagePullPolicy: 'IfNotPresent', command: ['idle'] }],
  },
});

export async function startBeside(agents: readonly Pick<Agent, 'name' | 'node'>[], o: { podCount: number }): Promise<Beside> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-beside-'));
  const runtimes: ChildProcess[] = [];
  const all: Agent[] = [];
  let plane: ControlPlane | undefined;
  let view: ClusterView | undefined;
  const end = cleanUpOnce(async () => {
    view?.close();
    for (const { daemon } of all) await daemon.dispose();
    for (const child of runtimes) child.kill('SIGKILL');
    await plane?.stop();
    rmSync(dir, { recursive: true, force: true });
    return [];
  });
  async function hollow(name: string): Promise<string> {
    const socket = join(dir, `${name}.sock`);
    const server = join(import.meta.dirname, 'hollowServer.ts');
    runtimes.push(spawn(process.execPath, ['--expose-gc', server, socket], { stdio: ['ignore', 'ignore', 'inherit'] }));
    await until('the hollow runtime', async () => (existsSync(socket) ? true : undefined), READY);
    return `unix://${socket}`;
  }
  try {
    plane = await startControlPlane({ controllerManager: true });
    const server = plane;
    for (const { name, node } of agents) {
      const config = { maxPods: o.podCount + 10, kubeAPIQPS: 50, kubeAPIBurst: 100 };
      const args = [`--hostname-override=${name}`, '--kubeconfig', plane.nodeKubeconfig(name)];
      all.push({ name, node, daemon: await createDaemon({ endpoint: await hollow(name) }, config, args) });
    }
    view = await ClusterView.open(plane);
    await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), READY);
  } catch (error) {
    await end();
    throw error;
  }
  const seen = view;
  const orLog = async (act: () => Promise<void>): Promise<void> => {
    try {
      await act();
    } catch (error) {
      for (const { daemon } of all) say(daemon.log().slice(-2000));
      throw error;
    }
  };
  return {
    all,
    async start({ node, daemon }) {
      if (node === '') delete process.env.ACTORLET_NODE;
      else process.env.ACTORLET_NODE = node;
      await daemon.start();
    },
    async make(prefix, count) {
      const names = Array.from({ length: count }, (_, i) => all.map(({ name }) => ({ pod: `${prefix}-${i}-${name}`, name }))).flat();
      const made = await Promise.all(names.map((n) => seen.create(pod(n.pod, n.name))));
      await orLog(() => seen.ready(made, LONG_MS));
      return made;
    },
    async remove(pods) {
      await Promise.all(pods.map((p) => seen.remove(p, 1)));
      await orLog(() => seen.gone(pods, LONG_MS));
    },
    end,
  };
}
