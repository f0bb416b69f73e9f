/** The real port to drivers of dynamic resources, against a driver over a real socket. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcDra } from '../../../src/boot/dependencies/dra/grpcDra.ts';
import type { DraService } from '../../../src/machines/allocation/claims/messages.ts';
import type { DraConnection } from '../../../src/ports/sockets/dra.ts';
import { type DraDriverOptions, startDraDriver, type TestDraDriver } from '../../allocation/draDriver.ts';
import { until } from '../../e2e/lab/ports.ts';
import { eachFolder } from '../../eachFolder.ts';

const CLAIM = { namespace: 'ns', name: 'claim', uid: 'uid-1' };
const call = (timeoutMs = 10_000) => ({ timeoutMs, signal: new AbortController().signal });
const WIRE = { requestNames: ['r'], poolName: 'pool', deviceName: 'a', cdiDeviceIds: ['x/y=a'] };
const DEVICE = { requests: ['r'], pool: 'pool', device: 'a', cdiIds: ['x/y=a'], shareId: null };

let dir: string;
let driver: TestDraDriver | undefined;
let connection: DraConnection | undefined;
let up: boolean[];
const open = async (o: Partial<DraDriverOptions> = {}) => {
  driver = await startDraDriver({ name: 'd', socket: join(dir, 'd.sock'), prepare: () => [WIRE], ...o });
  return driver;
};
const connect = (service: DraService = 'v1.DRAPlugin') => {
  const changed = (connected: boolean) => void (up.at(-1) !== connected && up.push(connected));
  connection = createGrpcDra({ clock: createClock() }).connect(join(dir, 'd.sock'), { service, changed });
  return connection;
};
eachFolder((made) => {
  dir = made;
  up = [];
});
afterEach(() => {
  connection?.close();
  driver?.stop();
});

describe('a driver', () => {
  it.each(['v1.DRAPlugin', 'v1beta1.DRAPlugin'] as const)('that serves %s prepares and unprepares', async (service) => {
    const { prepared } = await open({ service });
    const at = connect(service);
    expect(await at.prepare([CLAIM], call())).toEqual({ 'uid-1': { devices: [DEVICE], error: '' } });
    expect([...prepared]).toEqual(['uid-1']);
    expect(await at.unprepare([CLAIM], call())).toEqual({ 'uid-1': { error: '' } });
    expect(prepared.size).toBe(0);
  });

  it('keeps the id of a share', async () => {
    await open({ prepare: () => [{ ...WIRE, shareId: 's' }] });
    expect((await connect().prepare([CLAIM], call()))['uid-1']?.devices).toEqual([{ ...DEVICE, shareId: 's' }]);
  });

  it('is heard to come, go and come again', async () => {
    const at = connect();
    await expect(at.prepare([CLAIM], call())).rejects.toThrow(/code = Unavailable/);
    const first = await open();
    await until('up', () => up.at(-1) === true, { timeoutMs: 20_000 });
    first.stop();
    await until('gone', () => up.at(-1) === false, { timeoutMs: 20_000 });
    await open();
    await until('up again', () => up.at(-1) === true, { timeoutMs: 20_000 });
    expect(await at.prepare([CLAIM], call())).toHaveProperty('uid-1');
  });

  it('that does not answer, or says too much, fails the call', async () => {
    await open({ answer: () => 'silence' });
    await expect(connect().prepare([CLAIM], call(200))).rejects.toThrow(/code = DeadlineExceeded/);
    driver?.stop();
    const huge = { ...WIRE, cdiDeviceIds: ['x'.repeat(5 * 1024 * 1024)] };
    await open({ prepare: () => [huge] });
    connection?.close();
    await expect(connect().prepare([CLAIM], call())).rejects.toThrow(/code = ResourceExhausted/);
  });

  it('tells of the health of its devices; long messages are cut', async () => {
    const { health } = await open();
    const lists: unknown[] = [];
    const ends: string[] = [];
    const end = connect().watchHealth({ devices: (devices) => lists.push(devices), end: (why) => ends.push(why) });
    await until('the first list', () => lists.length === 1);
    health([
      { device: { poolName: 'p', deviceName: 'a' }, health: 'UNHEALTHY', message: 'x'.repeat(2_000), healthCheckTimeoutSeconds: '5' },
    ]);
    await until('the next', () => lists.length === 2);
    const message = `${'x'.repeat(1021)}...`;
    expect(lists[1]).toEqual([{ pool: 'p', device: 'a', health: 'Unhealthy', message, timeoutMs: 5_000 }]);
    // The API server counts bytes: each of these characters has three.
    health([{ device: { poolName: 'p', deviceName: 'a' }, health: 'UNHEALTHY', message: '熱'.repeat(400) }]);
    await until('a message in another script', () => lists.length === 3);
    expect(lists[2]).toMatchObject([{ message: `${'熱'.repeat(340)}...` }]);
    end();
    driver?.stop();
    expect(ends).toEqual([]);
  });
});
