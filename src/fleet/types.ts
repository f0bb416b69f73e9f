/** What a fleet is given of the outside, and what it shows. */
import type { BuildInfo } from '../actors/edge/metrics/nodeMetrics.ts';
import type { KubeApi } from '../ports/kube.ts';
import type { Clock, Entropy, Logger, Net, Yield } from '../ports/ports.ts';

/** Shared by all nodes of the fleet. */
export interface FleetWorld {
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
  /** PEM; null: no node serves its API. */
  serving: { cert: string; key: string; clientCa: string; firstPort: number } | null;
  /** The way of one node to the API server, anew for each of its daemons. */
  connect(node: string): KubeApi;
}

export interface FleetOverview {
  nodes: {
    total: number;
    /** Their daemon runs. */
    running: number;
    /** Ready is True on the object that the API server shows of it. */
    ready: number;
  };
  pods: {
    total: number;
    ready: number;
    byPhase: Readonly<Record<string, number>>;
  };
}
