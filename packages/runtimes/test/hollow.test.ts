/** The hollow runtime: conformance on real time, scripted lives and memory on a clock the test moves. */

import { type Clock, CriError } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect, it } from 'vitest';
import { createHollowRuntime, HOLLOW_ANNOTATION, type HollowOptions, parseLife } from '../src/hollow/index.ts';
import { calls, codeOf, containerConfig, criConformance, podConfig, type Recipe } from './conformance.ts';

const realClock: Clock = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
};

/** Time stands still until `advance`; timers fire in order of deadline, each followed by the microtasks it caused. */
function testClock() {
  let now = 1_700_000_000_000;
  let serial = 0;
  const timers = new Map<number, { at: number; fn: () => void }>();
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const clock: Clock = {
    wallMs: () => now,
    monoMs: () => now,
    setTimeout(fn, ms) {
      timers.set(++serial, { at: now + ms, fn });
      return serial;
    },
    clearTimeout: (id) => void timers.delete(id as number),
  };
  return {
    clock,
    timers,
    async advance(ms: number) {
      const until = now + ms;
      await settle();
      for (;;) {
        const next = [...timers].filter(([, t]) => t.at <= until).sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
        if (next === undefined) break;
        timers.delete(next[0]);
        now = Math.max(now, next[1].at);
        next[1].fn();
        await settle();
      }
      now = until;
    },
  };
}

const LIVES: Record<Recipe, string> = {
  forever: 'run=forever',
  stubborn: 'term=ignore',
  exit3: 'run=50ms,exit=3',
  exit0: 'run=50ms',
};

criConformance('hollow', async () => {
  const hollow = createHollowRuntime({
    clock: realClock,
    rng: { next: () => 0.5 },
    image: (name) => (name.includes('missing') ? undefined : {}),
  });
  return {
    cri: hollow,
    image: 'example/app:1',
    missingImage: 'example/missing:1',
    recipe: (kind) => ({ annotations: { [HOLLOW_ANNOTATION]: LIVES[kind] } }),
    logDirectory: '',
    close: async () => hollow.close(),
  };
});

describe('hollow runtime', () => {
  const world = (more: Partial<HollowOptions> = {}) => {
    const time = testClock();
    const hollow = createHollowRuntime({ clock: time.clock, rng: { next: () => 0.5 }, images: ['app'], ...more });
    return { ...time, hollow, ...calls(hollow) };
  };

  it('lives by the pod annotation: start delay, run time, exit code', async () => {
    const w = world();
    const pod = podConfig('a', { annotations: { [HOLLOW_ANNOTATION]: 'startDelay=200ms,run=5s,exit=1' } });
    const { podSandboxId } = await w.call('RunPodSandbox', { config: pod });
    const { containerId } = await w.call('CreateContainer', { podSandboxId, config: containerConfig('main', 'app'), sandboxConfig: pod });
    let started = false;
    void w.call('StartContainer', { containerId }).then(() => {
      started = true;
    });
    await w.advance(199);
    expect(started).toBe(false);
    await w.advance(1);
    expect(started).toBe(true);
    await w.advance(4_999);
    expect((await w.status(containerId)).state).toBe('CONTAINER_RUNNING');
    await w.advance(1);
    expect(await w.status(containerId)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 1, reason: 'Error' });
    expect(w.timers.size).toBe(0);
  });

  it('lets the annotation of one container win, and steps through lives by restart attempt', () => {
    expect(parseLife('run=1s,exit=1;run=forever', 0)).toEqual({ runMs: 1000, exitCode: 1 });
    expect(parseLife('run=1s,exit=1;run=forever', 7)).toEqual({ runMs: null });
    expect(() => parseLife('rum=1s', 0)).toThrow(/unknown key "rum".*run/);
    expect(() => parseLife('run=soon', 0)).toThrow(/bad value "soon" for run/);
  });

  it('refuses a container whose annotation cannot be read, naming the key', async () => {
    const w = world();
    const pod = podConfig('a', { annotations: { [`${HOLLOW_ANNOTATION}.main`]: 'exit=999' } });
    const { podSandboxId } = await w.call('RunPodSandbox', { config: pod });
    const attempt = w.call('CreateContainer', { podSandboxId, config: containerConfig('main', 'app'), sandboxConfig: pod });
    await expect(attempt).rejects.toThrow(/bad value "999" for exit/);
    expect(w.hollow.dump().containers).toEqual([]);
  });

  it('takes the whole grace to stop a container that ignores TERM; a later, shorter stop wins', async () => {
    const w = world({ script: () => ({ obeysTerm: false }) });
    const pod = podConfig('a');
    const { podSandboxId } = await w.call('RunPodSandbox', { config: pod });
    const id = await w.run(pod, containerConfig('main', 'app'), podSandboxId);
    const first = w.call('StopContainer', { containerId: id, timeout: 30 }, 60_000);
    await w.advance(1_000);
    const second = w.call('StopContainer', { containerId: id, timeout: 2 }, 60_000);
    await w.advance(1_999);
    expect((await w.status(id)).state).toBe('CONTAINER_RUNNING');
    await w.advance(1);
    await Promise.all([first, second]);
    expect((await w.status(id)).exitCode).toBe(137);
    expect(w.timers.size).toBe(0);
  });

  it('applies the effect of a call that timed out, and calls the outcome unknown', async () => {
    const w = world({ latencyMs: (m) => (m === 'RunPodSandbox' ? 500 : 0) });
    const call = w.call('RunPodSandbox', { config: podConfig('a') }, 100).catch((e: unknown) => e);
    await w.advance(100);
    const error = await call;
    expect(error).toBeInstanceOf(CriError);
    expect(error).toMatchObject({ code: 4, outcome: 'unknown' });
    expect(w.hollow.dump().sandboxes).toEqual([]);
    await w.advance(400);
    expect(w.hollow.dump().sandboxes).toMatchObject([{ name: 'a', ready: true, ip: '' }]);
  });

  it('forgets what is under way when calls are dropped', async () => {
    const w = world({ image: () => ({ life: { pullDelayMs: 3_000 } }), images: [] });
    const annotations = { [HOLLOW_ANNOTATION]: 'sandboxDelay=3s,startDelay=3s' };
    const pod = { ...podConfig('a'), annotations };
    const made = w.call('RunPodSandbox', { config: pod });
    const pull = w.call('PullImage', { image: { image: 'app' } });
    await w.advance(1_000);
    const ended = Promise.all([made, pull].map(codeOf));
    w.hollow.dropCalls();
    expect(await ended).toEqual([14, 14]);
    await w.advance(10_000);
    expect(w.hollow.dump()).toMatchObject({ sandboxes: [], images: [] });
    expect(w.timers.size).toBe(0);
    // Its name is free again.
    const again = w.call('RunPodSandbox', { config: pod });
    await w.advance(3_000);
    const { podSandboxId } = await again;
    const pulled = w.call('PullImage', { image: { image: 'app' } });
    await w.advance(3_000);
    await pulled;
    const config = { ...containerConfig('main', 'app'), annotations };
    const { containerId } = await w.call('CreateContainer', { podSandboxId, config, sandboxConfig: pod });
    const start = codeOf(w.call('StartContainer', { containerId }));
    await w.advance(1_000);
    w.hollow.dropCalls();
    expect(await start).toBe(14);
    const next = w.call('StartContainer', { containerId });
    await w.advance(3_000);
    await next;
    expect((await w.status(containerId)).state).toBe('CONTAINER_RUNNING');
  });

  it('delays and fails pulls by image name', async () => {
    const w = world({
      image: (name) => (name === 'gone' ? undefined : { life: name === 'bad' ? { pullError: 'registry says no' } : { pullDelayMs: 3000 } }),
    });
    expect(await codeOf(w.call('PullImage', { image: { image: 'gone' } }))).toBe(5);
    await expect(w.call('PullImage', { image: { image: 'bad' } })).rejects.toThrow(/registry says no/);
    const pull = w.call('PullImage', { image: { image: 'slow' } });
    await w.advance(2_999);
    expect((await w.call('ImageStatus', { image: { image: 'slow' } })).image).toBeNull();
    await w.advance(1);
    expect((await w.call('ImageStatus', { image: { image: (await pull).imageRef } })).image?.repoTags).toEqual(['slow:latest']);
  });

  it('outlives its clients: a second one finds what the first one made', async () => {
    const w = world();
    const first = w.hollow.connect();
    const pod = podConfig('a');
    const { podSandboxId } = await calls(first).call('RunPodSandbox', { config: pod });
    const id = await calls(first).run(pod, containerConfig('main', 'app'), podSandboxId);
    first.close();
    const second = calls(w.hollow.connect());
    expect((await second.status(id)).state).toBe('CONTAINER_RUNNING');
  });

  it('gives every pod that is not on the host network its own address', async () => {
    const w = world();
    const ips = new Set<string>();
    for (let i = 0; i < 600; i++) {
      const { podSandboxId } = await w.call('RunPodSandbox', { config: { ...podConfig(`p${i}`), linux: {} } });
      ips.add((await w.call('PodSandboxStatus', { podSandboxId })).status?.network?.ip ?? '');
    }
    expect(ips.size).toBe(600);
    expect([...ips].every((ip) => /^10\.88\.\d{1,3}\.\d{1,3}$/.test(ip))).toBe(true);
  });

  it('ends from outside with a reason, and cuts streams on demand', async () => {
    const w = world();
    const pod = podConfig('a');
    const { podSandboxId } = await w.call('RunPodSandbox', { config: pod });
    const id = await w.run(pod, containerConfig('main', 'app'), podSandboxId);
    const { stream } = await w.hollow.hints(new AbortController().signal);
    expect(w.hollow.exit(id, { exitCode: 137, reason: 'OOMKilled' })).toBe(true);
    expect(w.hollow.exit(id, { exitCode: 0 })).toBe(false);
    expect(await w.status(id)).toMatchObject({ exitCode: 137, reason: 'OOMKilled' });
    w.hollow.dropStreams();
    const seen: string[] = [];
    await expect(
      (async () => {
        for await (const h of stream) seen.push(h.kind);
      })(),
    ).rejects.toThrow(/closed the stream/);
    expect(seen).toEqual(['stopped']);
  });
});
