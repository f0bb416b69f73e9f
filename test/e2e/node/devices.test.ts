/** Device plugins beside a real daemon on a real containerd: devices, variables and mounts reach the container, and stay with it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startPlugin, type TestPlugin } from '../../allocation/devicePlugin.ts';
import { askPodResources } from '../../edge/podResourcesClient.ts';
import { BY_PROGRAM, type Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec } from '../runtime.ts';

const RESOURCE = 'e2e.example.com/gpu';
const LIMITS = { resources: { limits: { [RESOURCE]: '1' } } };
const LONG = { timeoutMs: 60_000 };

let lab: Containerd;
let daemon: Daemon;
let plugin: TestPlugin | undefined;
const folder = () => join(daemon.rootDir, 'device-plugins');
const server = () => join(folder(), 'kubelet.sock');

onContainerd((made) => {
  ({ lab, daemon } = made);
  mkdirSync(join(daemon.dir, 'lib'));
  writeFileSync(join(daemon.dir, 'lib', 'driver.txt'), 'of the driver\n');
});
afterAll(() => plugin?.kill());

/** Starts it anew, as its own supervisor would, and registers it once somebody listens. */
async function plug(ids: string[], hangs = ''): Promise<TestPlugin> {
  plugin?.kill();
  await daemon.wait('the socket to register at', () => existsSync(server()), LONG);
  const started = await startPlugin({
    socket: join(folder(), 'gpu.sock'),
    devices: ids.map((ID) => ({ ID, health: 'Healthy' })),
    ...{ preStart: true, hangs },
    respond: (given) => ({
      envs: { GPUS: given.join(',') },
      mounts: [{ containerPath: '/opt/driver', hostPath: join(daemon.dir, 'lib'), readOnly: true }],
      devices: given.map((id) => ({ containerPath: `/dev/${id}`, hostPath: '/dev/null', permissions: 'rw' })),
      annotations: { 'e2e.example.com/gpus': given.join(',') },
    }),
  });
  plugin = started;
  const registered = () =>
    started.register(server(), { resource: RESOURCE }).then(
      () => true,
      () => false,
    );
  await daemon.wait('the plugin to register', registered, LONG);
  await daemon.wait('its devices to be known', heard, LONG);
  return started;
}
/** The record on disk names the resource with its healthy devices. */
function heard(): boolean {
  const file = join(folder(), 'kubelet_internal_checkpoint');
  return existsSync(file) && readFileSync(file, 'utf8').includes(`"${RESOURCE}":["`);
}
async function idOf(pod: string): Promise<string> {
  const id = (await containers(lab, pod)).find((c) => c.running)?.id;
  if (id === undefined) throw new Error(`${pod} is not running`);
  return id;
}
const ready = (name: string) =>
  daemon.podWhere(name, `${name} ready`, (p) => p.status.containerStatuses?.every((c) => c.ready) === true, 60_000);
const inside = async (pod: string, script: string) => (await exec(lab, await idOf(pod), script)).out.trim();

const asking = (name: string) => manifest(name, [steady('main', LIMITS)], { spec: { terminationGracePeriodSeconds: 1 } });

describe('device plugins', () => {
  it('gives a container what the plugin says, keeps it there while plugin and daemon are away, and gives it on when it is over', async () => {
    const first = await plug(['gpu0']);
    daemon.put('one.yaml', asking('one'));
    const one = await ready('one');
    // Where it registered by the socket of plugins it was asked for its options first, as the kubelet does.
    expect(first.calls.map((c) => c.method)).toEqual(['GetDevicePluginOptions', 'Allocate', 'PreStartContainer']);
    expect(await inside('one', 'echo $GPUS')).toBe('gpu0');
    expect(await inside('one', 'cat /opt/driver/driver.txt')).toBe('of the driver');
    expect((await exec(lab, await idOf('one'), 'touch /opt/driver/x')).err).toContain('Read-only file system');
    // It is a device, and the container may use it.
    expect(await inside('one', 'test -c /dev/gpu0 && echo x > /dev/gpu0 && echo used')).toBe('used');

    const held = { resourceName: RESOURCE, deviceIds: ['gpu0'], topology: null };
    const podResources = join(daemon.rootDir, 'pod-resources', 'kubelet.sock');
    const whole = { podName: one.metadata.name, podNamespace: 'default' };
    expect(await askPodResources(podResources, 'Get', whole)).toMatchObject({
      podResources: { containers: [{ name: 'main', devices: [held] }] },
    });
    expect(await askPodResources(podResources, 'GetAllocatableResources')).toMatchObject({ devices: [held] });

    daemon.put('two.yaml', asking('two'));
    const two = await daemon.podWhere('two', 'two to be refused', (p) => p.status.phase === 'Failed', 60_000);
    expect(two.status.reason).toBe('UnexpectedAdmissionError');
    expect(two.status.message).toContain(`requested number of devices unavailable for ${RESOURCE}. Requested: 1, Available: 0`);
    daemon.remove('two.yaml');

    const before = await idOf('one');
    first.kill();
    await daemon.end('SIGKILL');
    await daemon.start();
    await ready('one');
    expect(await idOf('one')).toBe(before);
    // Answered from the record, while the plugin is away.
    expect(await askPodResources(podResources, 'Get', whole)).toMatchObject({ podResources: { containers: [{ devices: [held] }] } });
    // Its socket went with the start: that is what tells a plugin to come again.
    expect(existsSync(join(folder(), 'gpu.sock'))).toBe(false);

    const second = await plug(['gpu0', 'gpu1']);
    daemon.put('three.yaml', asking('three'));
    await ready('three');
    expect(await inside('three', 'echo $GPUS')).toBe('gpu1');
    expect(second.calls.filter((c) => c.method === 'Allocate').map((c) => c.request)).toEqual([
      { containerRequests: [{ devicesIds: ['gpu1'] }] },
    ]);
    expect(await idOf('one')).toBe(before);

    const dir = join(daemon.rootDir, 'pods', one.metadata.uid);
    daemon.remove('one.yaml');
    // What it held is free when its containers have ended, of which its directory is the last that goes.
    await daemon.wait('one to be gone', () => !existsSync(dir), LONG);
    daemon.put('four.yaml', asking('four'));
    await ready('four');
    expect(await inside('four', 'echo $GPUS')).toBe('gpu0');
    for (const name of ['three', 'four']) daemon.remove(`${name}.yaml`);
    await daemon.wait('all to be gone', async () => (await daemon.pods()).length === 0, LONG);
  });

  it('that does not answer holds up its own pod alone, which says so, and goes on with the next plugin; a refused one is told why', async () => {
    const mute = await plug(['gpu0'], 'Allocate');
    daemon.put('waits.yaml', asking('waits'));
    await daemon.wait('it to be asked', () => mute.calls.some(({ method }) => method === 'Allocate'), LONG);
    daemon.put('plain.yaml', manifest('plain', [steady('main')]));
    await ready('plain');
    const tells = (words: RegExp, ...of: string[]) =>
      daemon.wait(`why to say ${words}`, async () => words.test(await daemon.ctl('why', ...of)), { ...BY_PROGRAM, ...LONG });
    await tells(/device plugin of e2e\.example\.com\/gpu: Allocate of container main: no answer for/, 'waits');
    await expect(mute.register(server(), { resource: 'nodomain' })).rejects.toThrow('the ResourceName "nodomain" is invalid');
    await expect(mute.register(server(), { resource: RESOURCE, version: 'v9' })).rejects.toThrow('API version "v9" is not supported');
    await tells(/device plugin of nodomain: Register: failed .*the ResourceName "nodomain" is invalid/, 'node');
    await plug(['gpu0']);
    await ready('waits');
    for (const name of ['waits', 'plain']) daemon.remove(`${name}.yaml`);
    await daemon.wait('all to be gone', async () => (await daemon.pods()).length === 0, LONG);
  });
});
