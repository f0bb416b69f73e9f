/** The inhibitor over D-Bus, against a bus of this process and programs in the place of systemd-inhibit. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker, createClient, type MessageBus } from 'dbus-native';
import { expect, onTestFinished, test } from 'vitest';
import { takeLock } from '../../../src/boot/dependencies/logind/lock.ts';
import { createInhibitor } from '../../../src/boot/dependencies/logind/logind.ts';
import type { Inhibitor } from '../../../src/ports/machine/inhibitor.ts';
import { collectingLogger, type LogLine } from '../../supervision/fakePorts.ts';

const PATH = '/org/freedesktop/login1';
const MANAGER = 'org.freedesktop.login1.Manager';

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-logind-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
/** A program with this script; its arguments are in the file `args` beside it. */
function program(dir: string, script: string): string {
  const path = join(dir, 'inhibit');
  writeFileSync(path, `#!/bin/sh\nprintf '%s\\n' "$@" >'${join(dir, 'args')}'\n${script}\n`, { mode: 0o755 });
  return path;
}
const until = (what: string, look: () => boolean) => expect.poll(look, { interval: 20, message: what }).toBe(true);

interface Logind {
  socket: string;
  bus: MessageBus;
  /** Of InhibitDelayMaxUSec; what a reload makes of it. */
  manager: { InhibitDelayMaxUSec: number; PreparingForShutdown: boolean };
  reloadedTo: () => number;
  reloads: unknown[][];
  announce(shuttingDown: boolean): void;
  leave(): Promise<unknown>;
}

async function logind(): Promise<Logind> {
  const socket = join(folder(), 'bus');
  const broker = createBroker();
  await broker.listen({ socket });
  const bus = createClient({ socket });
  const manager = { InhibitDelayMaxUSec: 5_000_000, PreparingForShutdown: false };
  const properties = { InhibitDelayMaxUSec: 't', PreparingForShutdown: 'b' };
  bus.exportInterface(manager, PATH, { name: MANAGER, methods: {}, signals: {}, properties });
  const self: Logind = {
    ...{ socket, bus, manager, reloads: [] },
    reloadedTo: () => manager.InhibitDelayMaxUSec,
    announce: (shuttingDown) => {
      manager.PreparingForShutdown = shuttingDown;
      bus.sendSignal(PATH, MANAGER, 'PrepareForShutdown', 'b', [shuttingDown]);
    },
    leave: async () => await bus.releaseName('org.freedesktop.login1'),
  };
  const KillUnit = (...args: unknown[]): null => {
    self.reloads.push(args.slice(0, 3));
    manager.InhibitDelayMaxUSec = self.reloadedTo();
    return null;
  };
  const name = 'org.freedesktop.systemd1.Manager';
  bus.exportInterface({ KillUnit }, '/org/freedesktop/systemd1', {
    ...{ name, methods: { KillUnit: ['ssi', '', [], []] } },
    ...{ signals: {}, properties: {} },
  });
  await bus.requestName('org.freedesktop.login1', 0);
  await bus.requestName('org.freedesktop.systemd1', 0);
  onTestFinished(() => {
    bus.connection.stream.destroy();
    broker.close();
  });
  return self;
}
const it = test.extend('there', () => logind());

function inhibitorOf(
  socket: string,
  o: { script?: string; reloadMs?: number; callMs?: number } = {},
): { port: Inhibitor; dir: string; lines: LogLine[] } {
  const dir = folder();
  const lines: LogLine[] = [];
  const script = program(dir, o.script ?? `trap "rm -f '${dir}/held'" EXIT; trap exit TERM; touch '${dir}/held'; cat`);
  const port = createInhibitor({
    log: collectingLogger(lines),
    bus: socket,
    callMs: o.callMs ?? 30_000,
    reloadMs: o.reloadMs ?? 10_000,
    dropIn: join(dir, 'logind.conf.d', '99-kubelet.conf'),
    lock: () => takeLock({ program: script, withinMs: 30_000 }),
  });
  onTestFinished(() => port.release());
  return { port, dir, lines };
}
const held = (dir: string): boolean => {
  try {
    readFileSync(join(dir, 'held'));
    return true;
  } catch {
    return false;
  }
};
const open = (port: Inhibitor, delayMs = 5_000) => port.open({ delayMs, signal: new AbortController().signal });

it('takes a delay lock as the kubelet does, hears what logind announces, and drops the lock', async ({ there }) => {
  const { port, dir } = inhibitorOf(there.socket);
  using session = await open(port);
  expect([session.shuttingDown, session.held, held(dir)]).toEqual([false, true, true]);
  expect(readFileSync(join(dir, 'args'), 'utf8').split('\n')).toEqual([
    ...['--what=shutdown', '--who=kubelet', '--why=Kubelet needs time to handle node shutdown', '--mode=delay', 'cat', ''],
  ]);
  const heard: boolean[] = [];
  there.announce(true);
  await until('the property says so', () => there.manager.PreparingForShutdown);
  // What is announced before anybody listens is not lost.
  session.onShutdown((shuttingDown) => heard.push(shuttingDown));
  there.announce(false);
  await until('both are heard', () => heard.length === 2);
  expect(heard).toEqual([true, false]);
  port.release();
  await until('the lock is dropped', () => !held(dir));
  port.release();
});

it('raises the longest delay with a drop-in file, once, and waits until logind has read it', async ({ there }) => {
  const { port, dir, lines } = inhibitorOf(there.socket);
  // logind answers before it has read its files.
  there.reloadedTo = () => {
    setTimeout(() => {
      there.manager.InhibitDelayMaxUSec = 42_000_000;
    }, 300);
    return 5_000_000;
  };
  (await open(port, 41_500))[Symbol.dispose]();
  const file = join(dir, 'logind.conf.d', '99-kubelet.conf');
  expect(readFileSync(file, 'utf8')).toBe('# Written by actorlet: a shutdown waits for pods.\n[Login]\nInhibitDelayMaxSec=42\n');
  expect(there.reloads).toEqual([['systemd-logind.service', 'all', 1]]);
  expect(lines).toHaveLength(1);
  (await open(port, 30_000))[Symbol.dispose]();
  expect(there.reloads).toHaveLength(1);
});

it('says which file asked for what, where another keeps the delay short, and takes no lock then', async ({ there }) => {
  const { port, dir } = inhibitorOf(there.socket, { reloadMs: 200 });
  await expect(open(port, 30_000)).rejects.toThrow(
    `systemd-logind: InhibitDelayMaxSec is 5 s after ${join(dir, 'logind.conf.d', '99-kubelet.conf')} asked for 30 s: does another file set it?`,
  );
  expect(held(dir)).toBe(false);
});

it('keeps one lock over many sessions, and takes another when that one is lost', async ({ there }) => {
  const { port, dir } = inhibitorOf(there.socket, { script: `echo $$ >'INTO'; exec cat` });
  const script = readFileSync(join(dir, 'inhibit'), 'utf8').replace('INTO', join(dir, 'pid'));
  writeFileSync(join(dir, 'inhibit'), script);
  const first = await open(port);
  const pid = readFileSync(join(dir, 'pid'), 'utf8');
  first[Symbol.dispose]();
  using second = await open(port);
  expect(readFileSync(join(dir, 'pid'), 'utf8')).toBe(pid);
  process.kill(Number(pid), 'SIGKILL');
  expect((await second.ended).message).toMatch(/inhibit ended by signal SIGKILL$/);
  using third = await open(port);
  expect(third.held).toBe(true);
  expect(readFileSync(join(dir, 'pid'), 'utf8')).not.toBe(pid);
});

it('finds a shutdown under way, for which logind gives no lock', async ({ there }) => {
  const { port, dir } = inhibitorOf(there.socket);
  there.manager.PreparingForShutdown = true;
  using session = await open(port);
  expect([session.shuttingDown, session.held, held(dir)]).toEqual([true, false, false]);
});

it('names what the program says when it gives no lock, and when it is not there', async ({ there }) => {
  const { port } = inhibitorOf(there.socket, { script: 'echo "Failed to inhibit: Access denied" >&2; exit 1' });
  await expect(open(port)).rejects.toThrow(/^systemd-logind: .*inhibit ended with exit code 1: Failed to inhibit: Access denied$/);
  await expect(takeLock({ program: '/nowhere/systemd-inhibit' })).rejects.toThrow(
    /^\/nowhere\/systemd-inhibit cannot be started: .*ENOENT/,
  );
  const silent = program(folder(), 'exec sleep 60 </dev/null');
  await expect(takeLock({ program: silent, withinMs: 300 })).rejects.toThrow('did not take the lock within 0.3 s');
});

it('ends the session when logind leaves the bus, and when the bus is gone', async ({ there }) => {
  const { port } = inhibitorOf(there.socket);
  using session = await open(port);
  await there.leave();
  expect((await session.ended).message).toBe('systemd-logind has ended');
  await expect(open(port)).rejects.toThrow(/^systemd-logind: /);
  await there.bus.requestName('org.freedesktop.login1', 0);
  using again = await open(port);
  const server = there.bus.connection.stream;
  expect(again.held).toBe(true);
  server.destroy();
  expect((await again.ended).message).toBe('systemd-logind has ended');
});

it('waits no longer than its deadline for a bus that says nothing, and says where there is none', async () => {
  const socket = join(folder(), 'deaf');
  const deaf = await new Promise<Server>((resolve) => {
    const server = createServer(() => {}).listen(socket, () => resolve(server));
  });
  onTestFinished(() => void deaf.close());
  await expect(open(inhibitorOf(socket, { callMs: 500 }).port)).rejects.toThrow(/^systemd-logind: /);
  await expect(open(inhibitorOf('/nowhere/bus').port)).rejects.toThrow(/^systemd-logind: .*ENOENT.*\/nowhere\/bus/);
});
