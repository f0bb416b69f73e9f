/** The mailbox benchmark: one actor, and how many messages a second it is given. */
import { setup } from 'xstate';
import { createTree, type SupervisionTree } from '../../src/actors/supervision/tree.ts';
import type { ActorSpec, SupervisionEvent, SupervisorSpec } from '../../src/actors/supervision/types.ts';
import { address, because, type Message } from '../../src/machines/supervision/address.ts';
import type { Logger, Metrics, Ports } from '../../src/ports/ports.ts';

const MESSAGES = 200_000;
const BATCH = 1_000;

export type Flip = Message & { type: 'flip'; key?: string };

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const noMetrics: Metrics = {
  counter: () => ({ inc() {}, remove() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  histogram: () => ({ observe() {}, remove() {} }),
  onCollect() {},
  render: async () => '',
};
const missing = new Proxy(
  {},
  {
    get: (_t, name) => {
      throw new Error(`the benchmark has no port method ${String(name)}`);
    },
  },
);
export const ports: Ports = {
  clock: {
    wallMs: () => Date.now(),
    monoMs: () => performance.now(),
    setTimeout: (fn, ms) => setTimeout(fn, ms),
    clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
  },
  rng: { next: () => 0.5 },
  yield: { defer: (fn) => void setImmediate(fn) },
  log: silent,
  metrics: noMetrics,
  entropy: missing as Ports['entropy'],
  fs: missing as Ports['fs'],
  documents: missing as Ports['documents'],
  sys: missing as Ports['sys'],
  net: missing as Ports['net'],
  prober: missing as Ports['prober'],
  host: missing as Ports['host'],
  cri: missing as Ports['cri'],
};

const rules = {
  restart: 'permanent',
  shutdownMs: 1_000,
  intensity: { max: 3, periodMs: 60_000 },
  backoff: { minMs: 100, maxMs: 1_000, factor: 2, jitter: 0 },
} as const;

export const toggle = setup({
  types: { events: {} as Flip },
  actions: { count: () => undefined },
}).createMachine({
  initial: 'off',
  states: {
    off: { meta: { reason: 'Off' }, on: { flip: { target: 'on', actions: 'count' } } },
    on: { meta: { reason: 'On' }, on: { flip: { target: 'off', actions: 'count' } } },
  },
});

/** Deliveries per second of wall time, and per second of this process's CPU time, which a busy machine does not change much. */
export interface Sample {
  perS: number;
  perCpuS: number;
}

export class MailboxBench {
  readonly tree: SupervisionTree;
  #seen = 0;

  constructor(start: (count: () => void) => ReturnType<ActorSpec<Flip>['start']>, observers: ((e: SupervisionEvent) => void)[]) {
    const count = () => {
      this.#seen += 1;
    };
    const spec: ActorSpec<Flip> = { ...rules, type: 'actor', id: 'sink', mailbox: { capacity: BATCH * 2 }, start: () => start(count) };
    const root: SupervisorSpec = {
      ...rules,
      type: 'supervisor',
      id: 'node',
      strategy: 'one_for_one',
      escalate: 'parent',
      children: [spec],
    };
    this.tree = createTree(root, ports, { observers });
  }

  async round(): Promise<Sample> {
    const to = address<Flip>('node/sink');
    this.#seen = 0;
    const began = performance.now();
    const cpuBegan = process.cpuUsage();
    for (let sent = 0; sent < MESSAGES; sent += BATCH) {
      for (let i = 0; i < BATCH; i++) {
        const causes = because(undefined, { atMs: ports.clock.wallMs(), by: 'bench', what: 'a message was sent' });
        if (this.tree.registry.send(to, { type: 'flip', causes }) !== 'delivered') throw new Error('the mailbox refused a message');
      }
      while (this.#seen < sent + BATCH) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const cpu = process.cpuUsage(cpuBegan);
    return {
      perS: Math.round((MESSAGES * 1000) / (performance.now() - began)),
      perCpuS: Math.round((MESSAGES * 1e6) / (cpu.user + cpu.system)),
    };
  }
}
