/** What a cluster sees of the nodes of a fleet meanwhile: the oldest lease, and nodes that are not Ready. */
import type { KubeClient } from './kubeClient.ts';
import { tenths } from './onPlane.ts';
import { sleep } from './report.ts';

const LOOK_MS = 1_000;
/** `node-monitor-grace-period` of a controller manager: a node without a lease for longer is NotReady. */
const GRACE_MS = 50_000;
export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

export interface Lease {
  metadata: { name: string };
  spec: { renewTime: string };
}
export interface Node {
  metadata: { name: string };
  status: { conditions?: { type: string; status: string }[] };
}

export class Heartbeats {
  readonly #client: KubeClient;
  readonly #looking: Promise<void>;
  readonly #notReady = new Set<string>();
  readonly #graceOver = new Set<string>();
  #oldestMs = 0;
  #looks = 0;
  #ended = false;

  /** All nodes are Ready now. */
  constructor(client: KubeClient) {
    this.#client = client;
    this.#looking = this.#look();
  }

  async #items<T>(path: string): Promise<T[]> {
    return ((await this.#client.ask('GET', `${path}?resourceVersion=0`)) as { items: T[] }).items;
  }

  async #look(): Promise<void> {
    while (!this.#ended) {
      const [leases, nodes] = await Promise.all([this.#items<Lease>(LEASES), this.#items<Node>('/api/v1/nodes')]);
      this.#looks += 1;
      for (const { metadata, spec } of leases) {
        const ageMs = Date.now() - Date.parse(spec.renewTime);
        this.#oldestMs = Math.max(this.#oldestMs, ageMs);
        if (ageMs > GRACE_MS) this.#graceOver.add(metadata.name);
      }
      for (const { metadata, status } of nodes)
        if (!status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')) this.#notReady.add(metadata.name);
      await sleep(LOOK_MS);
    }
  }

  /** Ends it. */
  async seen() {
    this.#ended = true;
    await this.#looking;
    return {
      looks: this.#looks,
      oldestLeaseSeconds: tenths(this.#oldestMs / 1000),
      nodesNotReady: this.#notReady.size,
      /** Where no controller manager judges. */
      nodesWithoutLeaseForGrace: this.#graceOver.size,
    };
  }
}
