/** Slices over D-Bus, against a bus of this process: systemd that answers, refuses, is slow or away. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBroker, createClient, type DBusBroker, type MessageBus } from 'dbus-native';
import { expect, onTestFinished, test } from 'vitest';
import { createSlices, type Slices } from '../../../src/boot/dependencies/cgroups/systemd.ts';
import { newSlice } from '../../../src/machines/allocation/cgroups/units.ts';

const NAME = 'org.freedesktop.systemd1';
const PATH = '/org/freedesktop/systemd1';
const MANAGER = `${NAME}.Manager`;

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-bus-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
function slicesOf(o: { bus?: string; own?: string }): Slices {
  const slices = createSlices({ bus: '/nowhere/bus', own: '/nowhere/own', callMs: 300, jobMs: 300, ...o });
  onTestFinished(() => slices.close());
  return slices;
}

interface Systemd {
  socket: string;
  bus: MessageBus;
  broker: DBusBroker;
  said: unknown[][];
  /** Of the next job; null: nothing is heard of it. */
  result: string | null;
  /** The next call is answered with this error. */
  refusal: string | null;
}

async function systemd(): Promise<Systemd> {
  const socket = join(folder(), 'bus');
  const broker = createBroker();
  await broker.listen({ socket });
  const bus = createClient({ socket });
  const self: Systemd = { socket, bus, broker, said: [], result: 'done', refusal: null };
  let jobs = 0;
  const job = (...call: unknown[]): string => {
    self.said.push(call);
    if (self.refusal !== null) throw Object.assign(new Error('no'), { dbusName: self.refusal });
    jobs += 1;
    const path = `${PATH}/job/${jobs}`;
    // Said before the call is answered: systemd gives no order.
    if (self.result !== null) bus.sendSignal(PATH, MANAGER, 'JobRemoved', 'uoss', [jobs, path, call[1], self.result]);
    return path;
  };
  bus.exportInterface(
    {
      Subscribe: () => null,
      StartTransientUnit: (...args: unknown[]) => job('start', ...args),
      StopUnit: (...args: unknown[]) => job('stop', ...args),
      SetUnitProperties: (...args: unknown[]) => {
        self.said.push(['set', ...args]);
        return null;
      },
      Version: '257.9-1',
    },
    PATH,
    {
      name: MANAGER,
      methods: {
        Subscribe: ['', '', [], []],
        StartTransientUnit: ['ssa(sv)a(sa(sv))', 'o', [], []],
        StopUnit: ['ss', 'o', [], []],
        SetUnitProperties: ['sba(sv)', '', [], []],
      },
      signals: {},
      properties: { Version: 's' },
    },
  );
  await bus.requestName(NAME, 0);
  onTestFinished(() => {
    bus.connection.stream.destroy();
    broker.close();
  });
  return self;
}
const it = test.extend('there', () => systemd());

it('asks for the version, makes a slice with its properties, sets limits and takes it away', async ({ there }) => {
  const slices = slicesOf({ bus: there.socket });
  expect(await slices.version()).toBe(257);
  await slices.start('a.slice', newSlice('a.slice', 2));
  await slices.set('a.slice', [['TasksMax', { type: 't', value: 7n }]]);
  await slices.set('a.slice', []);
  await slices.stop('a.slice');
  expect(there.said.map(([what, unit]) => `${what} ${unit}`)).toEqual(['start a.slice', 'set a.slice', 'stop a.slice']);
  expect(there.said[0]?.[3]).toContainEqual(['Wants', ['-.slice']]);
  expect(there.said[1]?.slice(2, 4)).toEqual([true, [['TasksMax', 7n]]]);
});

it('takes a unit that is there for made and one that is not for gone, and says of other refusals which slice', async ({ there }) => {
  const slices = slicesOf({ bus: there.socket });
  there.refusal = `${NAME}.UnitExists`;
  await slices.start('a.slice', []);
  there.refusal = `${NAME}.NoSuchUnit`;
  await slices.stop('a.slice');
  there.refusal = 'org.freedesktop.DBus.Error.AccessDenied';
  await expect(slices.start('a.slice', [])).rejects.toMatchObject({
    message: expect.stringMatching(/^systemd: a\.slice could not be made: /),
    code: 'org.freedesktop.DBus.Error.AccessDenied',
  });
});

it('fails when a job fails, and when nothing is heard of it in time', async ({ there }) => {
  const slices = slicesOf({ bus: there.socket });
  there.result = 'failed';
  await expect(slices.start('a.slice', [])).rejects.toThrow('systemd: a.slice could not be made: the job ended as "failed"');
  there.result = null;
  await expect(slices.stop('a.slice')).rejects.toMatchObject({ code: 'ETIMEDOUT', message: expect.stringContaining('within 0.3 s') });
});

it('says where it looked for systemd when it is away, and finds it once it is back', async () => {
  const slices = slicesOf({ own: '/nowhere/own' });
  await expect(slices.version()).rejects.toMatchObject({
    message: expect.stringMatching(/^systemd cannot be reached over D-Bus \(\/nowhere\/bus: .*ENOENT.*; \/nowhere\/own: .*ENOENT/),
    code: 'ECONNREFUSED',
  });
  const there = await systemd();
  const later = slicesOf({ bus: there.socket });
  expect(await later.version()).toBe(257);
  there.bus.connection.stream.destroy();
  await there.broker.close();
  await expect(later.version()).rejects.toThrow();
});

it('waits no longer than its deadline for a bus that says nothing', async () => {
  const socket = join(folder(), 'deaf');
  const deaf = await new Promise<Server>((resolve) => {
    const server = createServer(() => {}).listen(socket, () => resolve(server));
  });
  onTestFinished(() => void deaf.close());
  const began = performance.now();
  await expect(slicesOf({ bus: socket }).version()).rejects.toThrow('systemd cannot be reached over D-Bus');
  expect(performance.now() - began).toBeLessThan(20_000);
});
