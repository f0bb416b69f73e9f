/** The history of a pod's calls: commands of probes, which run all the time, do not push the others out. */

import { createHistory } from '@actorlet/kubelet/actors/recorder/history.ts';
import { type Cri, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { expect, it } from 'vitest';
import { virtualTime } from '../../../../test/integration/virtualTime.ts';

const POD = { config: { metadata: { uid: 'u' } } };

async function told(commands: number, o: { failing?: ReadonlySet<number> } = {}) {
  const { clock } = virtualTime();
  const history = createHistory(clock);
  let asked = 0;
  const cri: Cri = {
    call: (async (method: string) => {
      if (method === 'RunPodSandbox') return { podSandboxId: 's' };
      if (method === 'CreateContainer') return { containerId: 'c' };
      asked += 1;
      if (o.failing?.has(asked) === true) throw new CriError({ method: 'ExecSync', code: 14, outcome: 'failed', details: 'away' });
      return { exitCode: 0 };
    }) as Cri['call'],
    hints: () => new Promise(() => {}),
    reconnect: () => undefined,
    close: () => undefined,
  };
  const heard: string[] = [];
  history.watchCalls((uid, { method, endMs, error }) => heard.push(`${uid} ${method} ${endMs === null ? 'begins' : error || 'ends'}`));
  const watched = history.watch(cri);
  const call = (method: Parameters<Cri['call']>[0], req: object) =>
    watched.call(method, req as never, { timeoutMs: 1, signal: AbortSignal.timeout(60_000) }).catch(() => undefined);
  await call('RunPodSandbox', POD);
  await call('CreateContainer', { podSandboxId: 's', ...POD });
  for (let i = 0; i < commands; i++) await call('ExecSync', { containerId: 'c', cmd: ['true'] });
  const calls = history.of('u')?.calls ?? [];
  return { calls, methods: calls.map((c) => c.method), heard, left: history.of('u')?.left };
}

it('keeps the first commands, however many run', async () => {
  const { methods, heard, left } = await told(500);
  expect(methods).toEqual(['RunPodSandbox', 'CreateContainer', ...Array.from({ length: 8 }, () => 'ExecSync')]);
  expect(left).toBe(0);
  expect(heard.filter((line) => line.includes('ExecSync'))).toHaveLength(16);
});

it('keeps each call that failed, and tells of its end', async () => {
  const { calls, heard } = await told(100, { failing: new Set([50, 51]) });
  expect(calls.filter((c) => c.error !== '')).toHaveLength(2);
  expect(heard.filter((line) => line.includes('away'))).toHaveLength(2);
});

it('keeps no more than a bundle of a death has, where nobody looks at the node', () => {
  const history = createHistory(virtualTime().clock, { lean: true });
  const step = { kind: 'transition', path: 'node/pods/workers/u', atMs: 0, from: 'a', to: 'b', event: 'e' } as const;
  for (let i = 0; i < 300; i++) history.observe({ ...step, reason: `${i} ${'x'.repeat(100_000)}` } as never);
  const { steps = [], left } = history.of('u') ?? {};
  expect(steps).toHaveLength(60);
  expect(left).toBe(240);
  expect(steps.at(-1)?.reason).toHaveLength(1024);
  for (let i = 0; i < 300; i++) history.observe({ ...step, path: `node/pods/workers/other-${i}`, reason: '' } as never);
  expect(history.of('u')).toBeUndefined();
});
