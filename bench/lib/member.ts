/** A node under test in a real cluster, for benchmarks: its daemon, its runtime, and what the API server shows of its pods. */
import type { CriContainer } from '../../src/machines/wire/cri.ts';
import type { Daemon } from '../../test/e2e/daemon.ts';
import type { Containerd } from '../../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../../test/e2e/lab/images.ts';
import type { Audit } from './audit.ts';
import type { ClusterView, PodHistory } from './cluster.ts';
import { summary, until } from './report.ts';

/** Pods of the smaller parts. */
export const FEW = 20;
export const LONG_MS = 180_000;
/** A busybox shell that obeys TERM. */
export const RUN = 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done';
export const GRACE_SECONDS = 1;
const call = { timeoutMs: 10_000, signal: new AbortController().signal };
const READINESS = { exec: { command: ['true'] }, periodSeconds: 5 };

function pod(name: string, o: { probed?: boolean } = {}) {
  const container = { name: 'main', image: BUSYBOX_IMAGES[1], imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', RUN] };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'bench' } },
    spec: {
      terminationGracePeriodSeconds: GRACE_SECONDS,
      containers: [{ ...container, ...(o.probed ? { readinessProbe: READINESS } : {}) }],
    },
  };
}

export const withSamples = (samples: readonly number[]) => ({ ...summary(samples), samples: samples.map((s) => Math.round(s * 10) / 10) });
export const since = (at: number | undefined, from: number): number => (at ?? Number.NaN) - from;

/** Keeps the node: our daemon, or the reference kubelet on its folders. */
interface Agent {
  readonly pid: number | undefined;
  log(): string;
  end(signal: NodeJS.Signals): Promise<unknown>;
  start(o: { ready: boolean }): Promise<unknown>;
  healthy(): Promise<unknown>;
}

export class Member {
  readonly lab: Containerd;
  readonly daemon: Daemon;
  readonly view: ClusterView;
  readonly audit: Audit;
  readonly #agent: Agent;
  constructor(o: { lab: Containerd; daemon: Daemon; view: ClusterView; audit: Audit; agent?: Agent }) {
    this.lab = o.lab;
    this.daemon = o.daemon;
    this.view = o.view;
    this.audit = o.audit;
    this.#agent = o.agent ?? o.daemon;
  }

  get pid(): number {
    const { pid } = this.#agent;
    if (pid === undefined) throw new Error(`the node's agent ended:\n${this.#agent.log().slice(-2000)}`);
    return pid;
  }
  async create(prefix: string, count: number, o: { probed?: boolean } = {}): Promise<PodHistory[]> {
    return Promise.all(Array.from({ length: count }, (_, i) => this.view.create(pod(`${prefix}-${i}`, o))));
  }
  async remove(all: readonly PodHistory[]): Promise<void> {
    await Promise.all(all.map((p) => this.view.remove(p, GRACE_SECONDS)));
  }
  /** The node collects what is dead later and at its leisure: the next part begins with a runtime that holds nothing. */
  async rest(): Promise<void> {
    await until(
      'the runtime to hold nothing any more',
      async () => ((await this.lab.cri.call('ListPodSandbox', {}, call)).items.length === 0 ? true : undefined),
      { timeoutMs: LONG_MS, everyMs: 500 },
    );
  }
  async containers(): Promise<CriContainer[]> {
    return (await this.lab.cri.call('ListContainers', {}, call)).containers;
  }

  /** Ends the node's agent as a crash would and starts it at once. Gives the time of the new process's start. */
  async kill(): Promise<number> {
    await this.#agent.end('SIGKILL');
    const at = performance.now();
    await this.#agent.start({ ready: false });
    return at;
  }
  healthy(): Promise<unknown> {
    return this.#agent.healthy();
  }
}
