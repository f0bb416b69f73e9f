/** What a fleet is given of the outside, and what it shows. */
import type { BuildInfo } from '@actorlet/kubelet/actors/edge/metrics/nodeMetrics.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { Certificates } from '@actorlet/kubelet/ports/certificates.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock, Entropy, HostFs, Logger, Yield } from '@actorlet/kubelet/ports/ports.ts';
import type { Net } from '@actorlet/kubelet/ports/sockets/net.ts';
import type { ScriptedContainer, StreamAsk } from '@actorlet/runtimes/src/hollow/index.ts';

/** Shared by all nodes of the fleet. */
export interface FleetWorld {
  /** Path of the kubeconfig that all nodes use. Absent: each has its own, on its disk. */
  kubeconfig?: string;
  clock: Clock;
  entropy: Entropy;
  yield: Yield;
  net: Net;
  log: Logger;
  /** What the daemon of a node says. */
  nodeLog(node: string): Logger;
  build: BuildInfo;
  /** At which the API server reaches all nodes. */
  address: string;
  /** One port for the APIs of all nodes; null: none is served. `clientCa`: whose certificates are asked for, PEM. */
  serving: { port: number; cert: string; key: string; clientCa: string } | null;
  /** Where `actorctl --node NAME` asks; '': nowhere. */
  socketPath: string;
  /** Gives the address at which a command in a container is answered. Absent: none is. */
  stream?(container: ScriptedContainer, ask: StreamAsk): string;
  /** The way of one node to the API server, anew for each of its daemons. `disk`: of its machine. */
  connect(node: string, disk: HostFs): KubeApi;
  /** One watch of each kind for all nodes is asked for with it. Absent: each node has watches of its own. */
  sharedWatches?: KubeApi;
  /** With the kubeconfig's own rights. Absent: the fleet adopts no nodes of others. */
  admin?: KubeApi;
  /** Trees beside that of the nodes: of a control plane and of a proxy that go with the fleet. */
  beside?(): readonly ActorView[];
  /** Nodes ask for certificates of their own with it. Absent: the way has its credentials already. */
  certificates?: Certificates;
}

/** Of `count` processes the one with this index, which counts from 0: it has the nodes whose position leaves that rest. */
export interface Shard {
  index: number;
  count: number;
}
