/**
 * Supervision benchmark: mailbox deliveries per second. Prints one JSON object with every sample. Run: `node bench/supervision.ts`
 * under Node 24. What idle workers cost is in bench/workers.ts.
 */
import { loadavg } from 'node:os';
import { fromCallback, setup } from 'xstate';
import { createTree } from '../src/actors/supervision/tree.ts';
import type { ActorSpec, AnySpec, SupervisionEvent, SupervisorSpec } from '../src/actors/supervision/types.ts';
import { address, because, type Message } from '../src/machines/supervision/address.ts';
import type { Logger, Metrics, Ports } from '../src/ports/ports.ts';
import { machine as describeMachine } from './lib/report.ts';

const MESSAGES = 200_000;
const BATCH = 1_000;
const ROUNDS = 5;

type Flip = Message & { type: 'flip'; key?: string };

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
const ports: Ports = {
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
const root = (children: AnySpec[]): SupervisorSpec => ({
  ...rules,
  type: 'supervisor',
  id: 'node',
  strategy: 'one_for_one',
  escalate: 'parent',
  children,
});

/** A flight recorder: keeps the newest 4,096 events. */
function recorder(): (e: SupervisionEvent) => void {
  const ring: (SupervisionEvent | undefined)[] = new Array(4096).fill(undefined);
  let at = 0;
  return (e) => {
    ring[at] = e;
    at = (at + 1) & 4095;
  };
}

const toggle = setup({
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
interface Sample {
  perS: number;
  perCpuS: number;
}

async function deliveries(start: (count: () => void) => ReturnType<ActorSpec<Flip>['start']>): Promise<Sample[]> {
  let seen = 0;
  const count = () => {
    seen += 1;
  };
  const spec: ActorSpec<Flip> = { ...rules, type: 'actor', id: 'sink', mailbox: { capacity: BATCH * 2 }, start: () => start(count) };
  const tree = createTree(root([spec]), ports, { observers: [recorder()] });
  await tree.start();
  const to = address<Flip>('node/sink');
  const samples: Sample[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    seen = 0;
    const began = performance.now();
    const cpuBegan = process.cpuUsage();
    for (let sent = 0; sent < MESSAGES; sent += BATCH) {
      for (let i = 0; i < BATCH; i++) {
        const causes = because(undefined, { atMs: ports.clock.wallMs(), by: 'bench', what: 'a message was sent' });
        if (tree.registry.send(to, { type: 'flip', causes }) !== 'delivered') throw new Error('the mailbox refused a message');
      }
      while (seen < sent + BATCH) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    // Round 0 warms up.
    const cpu = process.cpuUsage(cpuBegan);
    const perS = Math.round((MESSAGES * 1000) / (performance.now() - began));
    if (round > 0) samples.push({ perS, perCpuS: Math.round((MESSAGES * 1e6) / (cpu.user + cpu.system)) });
  }
  await tree.stop();
  return samples;
}

const summary = (samples: Sample[]) => ({
  medianPerS: median(samples.map((s) => s.perS)),
  medianPerCpuS: median(samples.map((s) => s.perCpuS)),
  samples,
});
const median = (samples: number[]): number => samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0;

const callback = await deliveries((count) => ({ logic: fromCallback(({ receive }) => receive(count)) }));
const machine = await deliveries((count) => ({ logic: toggle.provide({ actions: { count } }) }));
const targets = { callbackPerS: 200_000, machinePerS: 80_000 };
console.log(
  JSON.stringify(
    {
      benchmark: 'supervision',
      machine: { ...(await describeMachine()), loadavg: loadavg() },
      targets,
      callbackDeliveries: summary(callback),
      machineDeliveries: summary(machine),
      met: summary(callback).medianPerS >= targets.callbackPerS && summary(machine).medianPerS >= targets.machinePerS,
    },
    null,
    2,
  ),
);
