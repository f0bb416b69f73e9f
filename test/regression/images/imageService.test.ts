/** A separate image service was refused although the port has one: images are its, containers the runtime's. */
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { afterEach, expect, it } from 'vitest';
import { startRuntime, type TestRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { createGrpcCri } from '../../../src/boot/dependencies/cri/grpcCri.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';

const runtimes: TestRuntime[] = [];
afterEach(async () => {
  for (const r of runtimes.splice(0)) await r.close();
});
const once = { timeoutMs: 20_000, signal: new AbortController().signal };

it('pulls images through the image service, and asks the runtime for all else', async () => {
  const [main, images] = [await startRuntime(), await startRuntime()];
  runtimes.push(main, images);
  const endpoint = (r: TestRuntime) => `unix://${layout(r.rootDir).socket}`;
  const { log } = fakePorts();
  const clock = { ...fakePorts().clock, wallMs: () => Date.now() };
  const cri = createGrpcCri({ endpoint: endpoint(main), imageEndpoint: endpoint(images), log, clock });
  const image = { image: 'actorlet.dev/web:latest', annotations: {}, userSpecifiedImage: '', runtimeHandler: '' };
  await cri.call('PullImage', { image } as Parameters<typeof cri.call<'PullImage'>>[1], once);
  const listed = async (r: TestRuntime) => (await r.cri.call('ListImages', {}, once)).images.flatMap((i) => i.repoTags);
  expect([await listed(main), await listed(images)]).toEqual([[], ['actorlet.dev/web:latest']]);
  // Gone with its images: the runtime goes on answering.
  await images.kill();
  expect((await cri.call('Version', { version: '' }, once)).runtimeName).toBe('actorlet-process');
  await expect(cri.call('ListImages', {}, once)).rejects.toThrow();
  cri.close();
}, 60_000);
