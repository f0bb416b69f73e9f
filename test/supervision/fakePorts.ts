/** Ports for tests: a virtual clock, a seeded generator, a collecting logger, in-memory metrics; every other port throws. */
import { documentsHere } from '../../src/actors/pods/sources/document.ts';
import type { Clock, Cri, Entropy, Host, HostFs, Logger, Metrics, Ports, Rng, Sys } from '../../src/ports/ports.ts';
import type { Prober } from '../../src/ports/prober.ts';
import type { Net } from '../../src/ports/sockets/net.ts';
import { virtualTime } from '../integration/virtualTime.ts';

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  msg: string;
  fields: Record<string, unknown>;
}

export interface FakePorts extends Ports {
  readonly clock: Clock;
  /** Moves virtual time forward, firing timers one by one and settling before, between and after. */
  advance(ms: number): Promise<void>;
  /** Drains microtasks and the yield queue until both are empty. Virtual time stands still. */
  settle(): Promise<void>;
  /** Every log line so far, silent otherwise. */
  readonly lines: LogLine[];
  /** Timers not yet fired or cleared. */
  pendingTimers(): number;
  /** Moves wall time only, as an operator or NTP would. */
  jumpWall(ms: number): void;
}

/** Wall time starts at 2026-01-01T00:00:00Z, monotonic time at 1000. */
export function fakePorts(overrides: Partial<Ports> = {}, opts: { seed?: number } = {}): FakePorts {
  const { clock, yield: yieldPort, settle, advance, pendingTimers, jumpWall } = virtualTime();
  const lines: LogLine[] = [];
  return {
    clock,
    rng: seededRng(opts.seed ?? 1),
    yield: yieldPort,
    log: collectingLogger(lines),
    metrics: memoryMetrics(),
    entropy: throwing<Entropy>('entropy'),
    documents: documentsHere(overrides.entropy ?? throwing<Entropy>('entropy')),
    fs: throwing<HostFs>('fs'),
    sys: throwing<Sys>('sys'),
    net: throwing<Net>('net'),
    prober: throwing<Prober>('prober'),
    // Two cores, as the machines that most tests run on; all else throws.
    host: Object.create(throwing<Host>('host'), {
      capacity: { value: () => ({ memoryBytes: 2 ** 33, cpus: 2 }) },
      bootId: { value: () => 'boot-1' },
      idleMs: { value: undefined },
      usedCpuNs: { value: undefined },
      identity: { value: undefined },
      cpus: { value: undefined },
      memoryControl: { value: undefined },
    }) as Host,
    cri: throwing<Cri>('cri'),
    ...overrides,
    advance,
    settle,
    lines,
    pendingTimers,
    jumpWall,
  };
}

/** Mulberry32: small, seeded, good enough for jitter. */
export function seededRng(seed: number): Rng {
  let a = seed >>> 0;
  return {
    next() {
      a = (a + 0x6d2b79f5) >>> 0;
      let t = a;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    },
  };
}

export function collectingLogger(lines: LogLine[], bindings: object = {}): Logger {
  const at = (level: LogLine['level']) => (fields: object, msg: string) =>
    void lines.push({ level, msg, fields: { ...bindings, ...fields } });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (more) => collectingLogger(lines, { ...bindings, ...more }),
  };
}

/** Counts in memory; `render` gives `name{label="v"} value` lines, sorted. */
export function memoryMetrics(): Metrics {
  const values = new Map<string, number>();
  const collectors: (() => void)[] = [];
  const series = (name: string, labels?: Record<string, string>) => {
    const inner = Object.entries(labels ?? {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => `${k}="${v}"`)
      .join(',');
    return inner === '' ? name : `${name}{${inner}}`;
  };
  const add = (key: string, by: number) => void values.set(key, (values.get(key) ?? 0) + by);
  return {
    counter: (name) => ({
      inc: (labels, by = 1) => add(series(name, labels), by),
      remove: (labels) => void values.delete(series(name, labels)),
    }),
    gauge: (name) => ({
      set: (value, labels) => void values.set(series(name, labels), value),
      remove: (labels) => void values.delete(series(name, labels)),
    }),
    histogram: (name) => ({
      observe(value, labels) {
        add(series(`${name}_count`, labels), 1);
        add(series(`${name}_sum`, labels), value);
      },
      remove(labels) {
        for (const part of ['count', 'sum']) values.delete(series(`${name}_${part}`, labels));
      },
    }),
    onCollect: (fn) => void collectors.push(fn),
    async render() {
      for (const fn of collectors) fn();
      return [...values]
        .map(([k, v]) => `${k} ${v}`)
        .sort()
        .join('\n');
    },
  };
}

/** A port whose every method throws: a test that reaches it forgot to give a fake. */
function throwing<T extends object>(port: string): T {
  return new Proxy({} as T, {
    get(_target, name) {
      if (typeof name === 'symbol' || name === 'then') return undefined;
      return () => {
        throw new Error(`fakePorts: port ${port}.${name} was called but this test gave no fake for it`);
      };
    },
  });
}
