/** Runs one source or podConfig against real files, with virtual time and a registry that only records what was sent. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AnyActorRef, createActor } from 'xstate';
import type { ActorCtx, ActorSpec, Registry } from '../../../src/actors/supervision/types.ts';
import { createEntropy, createYield } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { createSys } from '../../../src/boot/dependencies/machine/sys.ts';
import type { EventsEvent } from '../../../src/machines/foundation/messages.ts';
import type { PodOpEvent } from '../../../src/machines/pods/manager/messages.ts';
import type { ConfigEvent } from '../../../src/machines/pods/podConfig/messages.ts';
import type { Address, Message, ViewKey } from '../../../src/machines/supervision/address.ts';
import type { Ports } from '../../../src/ports/ports.ts';
import { type FakePorts, fakePorts } from '../../supervision/fakePorts.ts';

export interface Sent {
  to: string;
  event: Message;
}
export interface Running {
  ports: FakePorts;
  sent: Sent[];
  views: Map<string, unknown>;
  ref: AnyActorRef;
  stop(): void;
  /** Deepest state value as text. */
  state(): string;
}

const CLOSE_TO_REAL_MS = 5;

export function run<E extends Message>(spec: ActorSpec<E>, overrides: Partial<Ports> = {}): Running {
  const ports = fakePorts({
    fs: createHostFs(),
    sys: createSys({ notify: () => false }),
    entropy: createEntropy(),
    yield: createYield(),
    ...overrides,
  });
  const sent: Sent[] = [];
  const views = new Map<string, unknown>();
  const registry: Registry = {
    send: (to: Address<never>, event: Message) => {
      sent.push({ to: to.path, event });
      return 'delivered';
    },
    ask: async () => ({ kind: 'lost', reason: 'no asking here' }),
    read: <T>(key: ViewKey<T>) => {
      const value = views.get(key.view);
      return value === undefined ? undefined : { version: 1, value: value as T };
    },
    watch: () => ({ [Symbol.dispose]: () => {} }),
    deadLetters: () => ({ total: 0, byReason: {}, recent: [] }),
  };
  const end = new AbortController();
  const path = `node/pods/sources/${spec.id}`;
  const ctx: ActorCtx<E> = {
    path,
    id: spec.id,
    incarnation: 1,
    self: { path },
    ports,
    registry,
    log: ports.log,
    signal: end.signal,
    publish: (key, value) => void views.set(key.view, value),
    note: () => {},
  };
  const { logic, input } = spec.start(ctx);
  const ref = createActor(logic, { input, clock: ports.clock as never });
  ref.subscribe({ error: (error) => sent.push({ to: 'crash', event: { type: String(error) } }) });
  ref.start();
  return {
    ports,
    sent,
    views,
    ref,
    stop: () => {
      end.abort();
      ref.stop();
    },
    state: () => JSON.stringify(ref.getSnapshot().value),
  };
}

/** Waits for a condition while real I/O goes on; with `ticking`, virtual time keeps pace, so settling ends. */
export async function until(
  r: Running,
  condition: () => boolean,
  opts: { ticking?: boolean; withinMs?: number; what?: string } = {},
): Promise<void> {
  const deadline = performance.now() + (opts.withinMs ?? 30_000);
  while (!condition()) {
    if (performance.now() > deadline)
      throw new Error(
        `never happened: ${opts.what ?? condition.toString()}; sent: ${JSON.stringify(r.sent.map((s) => s.event)).slice(-2_000)}`,
      );
    if (opts.ticking !== false) await r.ports.advance(CLOSE_TO_REAL_MS);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

type SetEvent = Extract<ConfigEvent, { type: 'source.set' }>;
export const sets = (r: Running): SetEvent[] => r.sent.map((s) => s.event).filter((e): e is SetEvent => e.type === 'source.set');
export const errorsSent = (r: Running) =>
  r.sent.map((s) => s.event).filter((e): e is Extract<ConfigEvent, { type: 'source.errors' }> => e.type === 'source.errors');
export const ops = (r: Running): PodOpEvent[] => r.sent.map((s) => s.event).filter((e): e is PodOpEvent => e.type === 'pods.op');
export const events = (r: Running): EventsEvent['event'][] =>
  r.sent
    .map((s) => s.event)
    .filter((e): e is EventsEvent => e.type === 'event.record')
    .map((e) => e.event);
export const lastSet = (r: Running): SetEvent => {
  const set = sets(r).at(-1);
  if (set === undefined) throw new Error('no set was sent');
  return set;
};
export const names = (r: Running): string[] => (sets(r).length === 0 ? ['(no set yet)'] : lastSet(r).pods.map((p) => p.metadata.name));
export const wheres = (r: Running): string[] =>
  lastSet(r).errors.map((e) => `${e.where.slice(e.where.lastIndexOf('/') + 1)}: ${e.message}`);

export async function tempDir(): Promise<{ dir: string; file: (name: string) => string; remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'actorlet-sources-'));
  return { dir, file: (name) => join(dir, name), remove: () => rm(dir, { recursive: true, force: true }) };
}
export const yaml = (name: string, image = 'busybox:1.36'): string =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: main\n    image: ${image}\n`;
