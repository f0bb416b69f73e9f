/** The real Csi port against a real gRPC server on a unix socket. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createGrpcCsi } from '../../../src/boot/dependencies/csi/grpcCsi.ts';
import { unixTarget } from '../../../src/boot/dependencies/grpc/unixGrpc.ts';
import { CsiError } from '../../../src/ports/sockets/csi.ts';
import { eachFolder } from '../../eachFolder.ts';
import { type DriverOptions, startDriver, type TestDriver } from '../../volumes/csiDriver.ts';

const csi = createGrpcCsi({ clock: createClock() });
let dir: string;
let driver: TestDriver | undefined;
const call = (timeoutMs = 60_000, signal = new AbortController().signal) => ({ timeoutMs, signal });
const failure = async (work: Promise<unknown>): Promise<CsiError> => {
  const error: unknown = await work.then(
    () => new Error('it succeeded'),
    (e: unknown) => e,
  );
  if (!(error instanceof CsiError)) throw error;
  return error;
};
async function start(o: Partial<DriverOptions> = {}): Promise<string> {
  const socket = join(dir, 'csi.sock');
  driver = await startDriver({ name: 'csi.example.com', socket, ...o });
  return socket;
}
eachFolder((made) => (dir = made));
afterEach(async () => {
  await driver?.stop();
  driver = undefined;
});

const MOUNT = {
  mount: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' },
  accessMode: { mode: 'SINGLE_NODE_WRITER' as const },
};

describe('the port to plugins', () => {
  it('asks who listens, and tells what became of it', async () => {
    const socket = await start();
    expect(await csi.getInfo(socket, call())).toEqual({
      type: 'CSIPlugin',
      name: 'csi.example.com',
      endpoint: socket,
      supportedVersions: ['1.0.0'],
    });
    await csi.notify(socket, { pluginRegistered: false, error: 'no' }, call());
    await csi.notify(socket, { pluginRegistered: true, error: '' }, call());
    expect(driver?.told).toEqual(['no', '']);
  });

  it('carries requests and answers whole', async () => {
    const socket = await start({ capabilities: ['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP'] });
    expect(await csi.call(`unix://${socket}`, 'NodeGetInfo', {}, call())).toEqual({
      nodeId: 'test-node',
      maxVolumesPerNode: '11',
      accessibleTopology: { segments: { 'topology.example.com/rack': 'r1' } },
    });
    const { capabilities } = await csi.call(socket, 'NodeGetCapabilities', {}, call());
    expect(capabilities.map((c) => c.rpc?.type)).toEqual(['STAGE_UNSTAGE_VOLUME', 'VOLUME_MOUNT_GROUP']);
    const request = {
      volumeId: 'v1',
      publishContext: { device: '/dev/vdb' },
      stagingTargetPath: '',
      targetPath: join(dir, 'mount'),
      volumeCapability: MOUNT,
      readonly: true,
      secrets: { key: 'value' },
      volumeContext: { 'a.b/c': 'd' },
    };
    await csi.call(socket, 'NodePublishVolume', request, call());
    expect(driver?.calls.at(-1)?.request).toMatchObject(request);
    await csi.call(socket, 'NodeUnpublishVolume', { volumeId: 'v1', targetPath: request.targetPath }, call());
    expect(driver?.published.size).toBe(0);
    const block = { block: {}, accessMode: { mode: 'MULTI_NODE_MULTI_WRITER' as const } };
    await csi.call(socket, 'NodeStageVolume', { ...request, stagingTargetPath: '/s', volumeCapability: block }, call());
    expect(driver?.calls.at(-1)?.request).toMatchObject({ volumeCapability: { block: {} } });
  });

  it("gives the driver's code and words, and tells silence, absence and a caller that goes apart", async () => {
    expect(await failure(csi.getInfo(join(dir, 'nobody.sock'), call()))).toMatchObject({ code: 14 });
    const socket = await start({
      fault: (m) => (m === 'NodeGetCapabilities' ? { code: 9, details: 'not today' } : m === 'NodeGetInfo' ? 'silence' : undefined),
    });
    const refused = await failure(csi.call(socket, 'NodeGetCapabilities', {}, call()));
    expect(refused).toMatchObject({ code: 9, message: 'rpc error: code = FailedPrecondition desc = not today' });
    expect(await failure(csi.call(socket, 'NodeGetInfo', {}, call(500)))).toMatchObject({ code: 4 });
    const gone = new AbortController();
    const waiting = failure(csi.call(socket, 'NodeGetInfo', {}, call(60_000, gone.signal)));
    gone.abort();
    expect(await waiting).toMatchObject({ code: 1 });
    expect(await failure(csi.call(socket, 'NodeGetInfo', {}, call(60_000, gone.signal)))).toMatchObject({ code: 1 });
  });

  it('takes paths and unix URLs, and nothing else, for sockets', () => {
    expect(unixTarget('/run/x.sock')).toBe('unix:///run/x.sock');
    expect(unixTarget('unix:///run/x.sock')).toBe('unix:///run/x.sock');
    expect(unixTarget('unix:/run/x.sock')).toBe('unix:///run/x.sock');
    expect(() => unixTarget('tcp://1.2.3.4:5')).toThrow('is not a unix socket');
  });
});
