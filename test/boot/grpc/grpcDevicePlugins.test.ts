/** The real DevicePlugins port against real gRPC on unix sockets. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcDevicePlugins } from '../../../src/boot/dependencies/devicePlugins/grpcDevicePlugins.ts';
import type { PluginDevice, RegisterRequest } from '../../../src/machines/allocation/devices/types.ts';
import { type PluginOptions, startPlugin, type TestPlugin } from '../../allocation/devicePlugin.ts';
import { eachFolder } from '../../eachFolder.ts';

const port = createGrpcDevicePlugins({ clock: createClock() });
const SOON = { timeout: 20_000, interval: 20 };
const call = (signal = new AbortController().signal) => ({ timeoutMs: 60_000, signal });
let dir: string;
let plugin: TestPlugin | undefined;

async function start(o: Partial<PluginOptions> = {}): Promise<string> {
  const socket = join(dir, 'p.sock');
  plugin = await startPlugin({ socket, devices: [{ ID: 'a', health: 'Healthy', topology: { nodes: [{ ID: 1 }] } }], ...o });
  return socket;
}
function given(): TestPlugin {
  if (plugin === undefined) throw new Error('no plugin was started');
  return plugin;
}
eachFolder((made) => (dir = made));
afterEach(() => {
  plugin?.kill();
  plugin = undefined;
});

describe('the port to device plugins', () => {
  it('lets plugins register, and tells them why they may not', async () => {
    const at = join(dir, 'kubelet.sock');
    const seen: RegisterRequest[] = [];
    const server = await port.serve(at, async (request) => {
      seen.push(request);
      if (request.version !== 'v1beta1') throw new Error('not this one');
    });
    await start({ preStart: true });
    await given().register(at, { resource: 'example.com/gpu' });
    await expect(given().register(at, { resource: 'example.com/gpu', version: 'v9' })).rejects.toThrow('not this one');
    expect(seen[0]).toEqual({
      version: 'v1beta1',
      endpoint: 'p.sock',
      resourceName: 'example.com/gpu',
      options: { preStartRequired: true, getPreferredAllocationAvailable: false },
    });
    server.close();
    expect(existsSync(at)).toBe(false);
    const again = await port.serve(at, () => Promise.resolve());
    await given().register(at, { resource: 'example.com/gpu' });
    again.close();
  });

  it('says why it cannot listen', async () => {
    const long = join(dir, 'x'.repeat(120));
    await expect(port.serve(long, () => Promise.resolve())).rejects.toThrow(/a socket's may have 107/);
  });

  it('hears of devices until the plugin ends', async () => {
    const connection = await port.connect(await start(), call());
    const lists: (readonly PluginDevice[])[] = [];
    const ends: string[] = [];
    connection.listAndWatch({ devices: (d) => lists.push(d), end: (why) => ends.push(why) });
    await vi.waitFor(() => expect(lists).toEqual([[{ id: 'a', healthy: true, numaNodes: [1] }]]), SOON);
    given().list([{ ID: 'a', health: 'Unhealthy' }]);
    await vi.waitFor(() => expect(lists[1]).toEqual([{ id: 'a', healthy: false, numaNodes: [] }]), SOON);
    given().kill();
    await vi.waitFor(() => expect(ends).toHaveLength(1), SOON);
    expect(ends[0]).toContain('rpc error: code = ');
    connection.close();
  });

  it('hears nothing any more once it let go', async () => {
    const connection = await port.connect(await start(), call());
    const ends: string[] = [];
    const first = Promise.withResolvers<void>();
    const stop = connection.listAndWatch({ devices: () => first.resolve(), end: (why) => ends.push(why) });
    await first.promise;
    stop();
    connection.close();
    given().kill();
    // Another plugin on the same path is reached although the one before was let go of.
    await start();
    (await port.connect(join(dir, 'p.sock'), call())).close();
    expect(ends).toEqual([]);
  });

  it('carries requests and answers whole', async () => {
    const respond = (ids: string[]) => ({
      envs: { IDS: ids.join(',') },
      mounts: [{ containerPath: '/c', hostPath: '/h', readOnly: true }],
      devices: [{ containerPath: '/dev/c', hostPath: '/dev/null', permissions: 'rw' }],
      annotations: { a: 'b' },
      cdiDevices: [{ name: 'example.com/gpu=a' }],
    });
    const connection = await port.connect(await start({ respond, preferred: ['b'] }), call());
    expect(await connection.options(call())).toEqual({ preStartRequired: false, getPreferredAllocationAvailable: true });
    expect(await connection.preferred({ available: ['a', 'b'], mustInclude: ['a'], size: 2 }, call())).toEqual(['b']);
    expect(await connection.allocate(['a', 'b'], { ...call(), timeoutMs: null })).toEqual({
      envs: { IDS: 'a,b' },
      mounts: [{ containerPath: '/c', hostPath: '/h', readOnly: true }],
      devices: [{ containerPath: '/dev/c', hostPath: '/dev/null', permissions: 'rw' }],
      annotations: { a: 'b' },
      cdiDevices: ['example.com/gpu=a'],
    });
    await connection.preStart(['a'], call());
    expect(given().calls.map((c) => c.method)).toEqual([
      'GetDevicePluginOptions',
      'GetPreferredAllocation',
      'Allocate',
      'PreStartContainer',
    ]);
    expect(given().calls[1]?.request).toEqual({
      containerRequests: [{ availableDeviceIDs: ['a', 'b'], mustIncludeDeviceIDs: ['a'], allocationSize: 2 }],
    });
    expect(given().calls[3]?.request).toEqual({ devicesIds: ['a'] });
    connection.close();
  });

  it('gives up with the words of the plugin, of nobody, or of who asked', async () => {
    const socket = await start({
      respond: () => {
        throw new Error('broken');
      },
    });
    const connection = await port.connect(socket, call());
    await expect(connection.allocate(['a'], call())).rejects.toThrow('rpc error: code = Internal desc = broken');
    connection.close();
    await expect(port.connect(join(dir, 'nobody.sock'), { ...call(), timeoutMs: 300 })).rejects.toThrow(/nobody answered within 0.3 s/);
    const over = new AbortController();
    over.abort();
    await expect(port.connect(socket, { timeoutMs: 60_000, signal: over.signal })).rejects.toThrow();
  });
});
