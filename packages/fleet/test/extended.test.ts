/** Extended resources of a node: written when the node is shown without them, and again where the API server refuses. */

import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Logger } from '@actorlet/kubelet/ports/ports.ts';
import { expect, it, vi } from 'vitest';
import { advertise } from '../src/extended.ts';

const refused: KubeResult = {
  ok: false,
  failure: { code: 429, reason: 'TooManyRequests', message: 'later', outcome: 'failed', retryAfterMs: 0 },
};

it('are written again until the API server takes them, and no more once that is disposed of', async () => {
  vi.useFakeTimers();
  const answers = [refused, refused, { ok: true, code: 200, body: {} } satisfies KubeResult];
  const asked: KubeRequest[] = [];
  const request = async (one: KubeRequest): Promise<KubeResult> => {
    asked.push(one);
    return answers.shift() ?? refused;
  };
  const kube: KubeApi = { server: '', request, watch: () => Promise.reject(new Error('none')), closeConnections() {}, close() {} };
  const said: string[] = [];
  const log: Logger = { debug() {}, info() {}, warn: (_, text) => said.push(text ?? ''), error() {}, child: () => log };
  let show: (view: { object: unknown }) => void = () => {};
  const registry = {
    watch: (_: unknown, seen: (view: { object: unknown }) => void) => {
      show = seen;
      return { [Symbol.dispose]() {} };
    },
  };
  const clock = createClock();
  const own = advertise(registry as unknown as Pick<Registry, 'watch'>, {
    name: 'n',
    extended: { 'example.com/gpu': 4 },
    kube,
    clock,
    log,
  });
  const bare = { object: { status: { capacity: { cpu: '8' } } } };
  show(bare);
  show(bare);
  await vi.advanceTimersByTimeAsync(4_999);
  expect(asked).toEqual([
    {
      ...{ verb: 'PATCH', path: '/api/v1/nodes/n/status', patchType: 'strategic' },
      body: { status: { capacity: { 'example.com/gpu': '4' }, allocatable: { 'example.com/gpu': '4' } } },
    },
  ]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(asked).toHaveLength(3);
  expect(said).toHaveLength(2);
  show(bare);
  await vi.advanceTimersByTimeAsync(1_000);
  own[Symbol.dispose]();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(4);
  vi.useRealTimers();
});
