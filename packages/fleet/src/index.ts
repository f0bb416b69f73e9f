/**
 * A fleet of nodes as a library: `import { startFleet } from 'actorlet/fleet'`.
 *
 * ```ts
 * await using fleet = await startFleet({ nodes: 100, kubeconfig: '/home/me/.kube/config' });
 * await fleet.ready();
 * ```
 */
import { setTimeout as wait } from 'node:timers/promises';
import { scenarioErrorText } from '@actorlet/kubelet/machines/faults/read/decode.ts';
import { adopt, removeNodes } from './boot/adopt.ts';
import { claimed } from './boot/alone.ts';
import { quietLog, realWorld } from './boot/world.ts';
import { decodeFleet, plainFleet, wrongPlain } from './file.ts';
import { Fleet } from './fleet.ts';
import type { FleetOverview, NodeOverview } from './overview.ts';

export type { FleetOverview, NodeOverview };

export interface StartFleetOptions {
  /** So many equal nodes; or `file`. */
  nodes?: number;
  /** Text of a fleet file, in YAML. Its steps and expectations are not carried out. */
  file?: string;
  /** Path of the kubeconfig of the cluster that the nodes join. */
  kubeconfig: string;
  /** Value of the label `actorlet.dev/fleet` of the nodes. Default `fleet`. */
  name?: string;
  /** What names of nodes begin with. Default `fleet`. */
  prefix?: string;
  /** Default 1. */
  seed?: number;
  /** TCP port of the APIs of all nodes. Default 0: none. */
  port?: number;
  /** One watch of each kind for all nodes. Default false. */
  shareWatches?: boolean;
  /** Each node asks as `system:node:NAME`. Default false. */
  asNodes?: boolean;
  /** Path of a kubeconfig with which each node asks for a client certificate of its own. Default: that of `kubeconfig` is used. */
  bootstrapKubeconfig?: string;
  /** Removes the nodes from the API at the end. Default true. */
  cleanup?: boolean;
}

export interface RunningFleet extends AsyncDisposable {
  overview(): FleetOverview;
  nodes(): NodeOverview[];
  /** Requests to the API server so far, by verb and resource: `PATCH pods/status`. */
  calls(): Record<string, number>;
  /** Once all nodes are Ready. @throws Error after `timeoutMs` (default 60 s), with how many there are. */
  ready(timeoutMs?: number): Promise<void>;
  /** Restarts the daemons of nodes of these names; default: of all. Pods run on. */
  restart(names?: readonly string[]): Promise<void>;
  /** Ends all daemons, within 20 s, and removes the nodes unless `cleanup` is false. @throws Error with how many are left. */
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 100;
const CLEAN_UP_MS = 600_000;
const READY_MS = 60_000;

/**
 * Starts all daemons. Nodes that an earlier fleet of that name left are taken over, with their pods. @throws Error that names what is
 * wrong with the file, the kubeconfig, the port or a node, or the nodes of these names that are somebody else's.
 */
export async function startFleet(o: StartFleetOptions): Promise<RunningFleet> {
  const { name = 'fleet', prefix = 'fleet', seed = 1, port = 0, shareWatches = false, asNodes = false, cleanup = true } = o;
  if ((o.nodes === undefined) === (o.file === undefined)) throw new Error('startFleet: give nodes or file');
  const plain = { name, prefix, seed, nodes: o.nodes ?? 0 };
  const wrong = o.file === undefined ? Object.entries(wrongPlain(plain)) : [];
  if (wrong.length > 0) throw new Error(`startFleet: ${wrong.map(([option, why]) => `${option} ${why}`).join('; ')}`);
  if (!o.kubeconfig) throw new Error('startFleet: kubeconfig must be the path of a file');
  const decoded = o.file === undefined ? { ok: true as const, value: plainFleet(plain) } : decodeFleet(o.file);
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => scenarioErrorText('fleet file', e)).join('\n'));
  if (decoded.value.stages.length > 0) throw new Error('fleet file: spec.stages names files, which only `actorlet fleet FILE` reads');
  const { kubeconfig, bootstrapKubeconfig = '' } = o;
  const own = { port, address: '', socket: '', log: quietLog };
  const world = await realWorld({ ...own, kubeconfig, asNodes, bootstrapKubeconfig, shareWatches });
  const fleet = new Fleet(decoded.value, world);
  let stopping: Promise<void> | undefined;
  let adopted = false;
  let claim: Disposable | undefined;
  const stop = async (): Promise<void> => {
    await fleet.stop();
    const names = fleet.members.map((m) => m.name);
    try {
      if (cleanup && adopted) await removeNodes(names, { kube: world.admin, signal: AbortSignal.timeout(CLEAN_UP_MS) });
    } finally {
      world.admin.close();
      world.close();
      claim?.[Symbol.dispose]();
    }
  };
  const it: RunningFleet = {
    overview: () => fleet.overview(),
    nodes: () => fleet.nodes(),
    calls: () => Object.fromEntries(fleet.calls.byKind),
    async ready(timeoutMs = READY_MS) {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const { nodes } = fleet.overview();
        if (nodes.ready === nodes.total) return;
        if (performance.now() > deadline) throw new Error(`${nodes.ready} of ${nodes.total} nodes are Ready after ${timeoutMs} ms`);
        await wait(LOOK_EVERY_MS);
      }
    },
    async restart(names) {
      const [trouble] = await fleet.restart(fleet.members.filter((m) => names?.includes(m.name) !== false));
      if (trouble !== undefined) throw new Error(`the node ${trouble.node} could not be started again: ${trouble.why}`);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
    [Symbol.asyncDispose]: () => it.stop(),
  };
  try {
    claim = await claimed({ server: world.admin.server, fleet: decoded.value.name, shard: { index: 0, count: 1 } });
    await adopt(fleet, decoded.value.name, { kube: world.admin, signal: new AbortController().signal });
    adopted = true;
    const [trouble] = await fleet.start();
    if (trouble !== undefined) throw new Error(`the node ${trouble.node} could not be started: ${trouble.why}`);
    return it;
  } catch (error) {
    await it.stop();
    throw error;
  }
}
