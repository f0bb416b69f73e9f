/** Pulls of images that several wait for, or nobody any more. */
import { describe, expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

describe('the image of a container arrives when the sandbox that it was asked to start in is gone (found by seed 3700189 with 8 pods)', () => {
  it('it is created in the next one, after the init containers have run there, and pulled once', async () => {
    await using h = await virtualNode();
    h.write('web', pod('web', { inits: [{}], container: { image: 'main:1' }, lives: { 'init-0': 'run=30s,exit=0' } }));
    await h.until('its init container runs', () => h.running('web').length === 1);
    h.faults.latencyMs.PullImage = 20_000;
    await h.until('main is pulled', () => h.containerState('web', 'main') === 'pulling', 60_000);
    const [dead] = h.runtime.dump().sandboxes;
    await h.runtime.call('StopPodSandbox', { podSandboxId: dead?.id ?? '' }, { timeoutMs: null, signal: new AbortController().signal });
    await h.until('the image is there', () => h.containerState('web', 'main') === 'waiting', 60_000);
    expect(h.running('web').map((c) => c.name)).toEqual(['init-0']);
    await h.until('main runs', () => h.running('web').some((c) => c.name === 'main'), 60_000);
    const made = h.calls.filter((c) => c.method === 'CreateContainer').map((c) => c.req as CriRequest<'CreateContainer'>);
    const of = (name: string) => made.filter((r) => r.config.metadata?.name === name).map((r) => r.podSandboxId === dead?.id);
    expect(of('init-0')).toEqual([true, false]);
    expect(of('main')).toEqual([false]);
    expect(h.calls.filter((c) => c.method === 'PullImage' && (c.req as CriRequest<'PullImage'>).image?.image === 'main:1')).toHaveLength(1);
  });
});

describe('two containers of one pod that want the same image share its pull, and its failure counts once', () => {
  it('backs off 10 s after the first failure', async () => {
    await using h = await virtualNode({ hollow: { image: () => undefined } });
    h.write('web', pod('web', { spec: { containers: ['a', 'b', 'c', 'd'].map((name) => ({ name, image: 'gone:1' })) } }));
    const pulls = () => h.calls.filter((c) => c.method === 'PullImage').length;
    await h.until('it was pulled once', () => pulls() === 1);
    await h.advance(16_000);
    expect(pulls()).toBeGreaterThan(1);
    expect(h.tree.registry.read(eventsView)?.value.filter((e) => e.reason === 'Pulling').length).toBeGreaterThan(0);
  });
});
