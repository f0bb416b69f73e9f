/** The daemon or the pod manager, killed while a pod's life is in each state: the pod ends as it would have. */
import { describe, expect, it } from 'vitest';
import { FAILING, LIFE_CASES } from '../kill/killLives.ts';
import { type VirtualNode, virtualNode } from '../virtualNode.ts';

const KILLS: Readonly<Record<string, (h: VirtualNode) => Promise<void>>> = {
  'kill -9': async (h) => {
    await h.restart();
  },
  'a crash of the pod manager': async (h) => {
    h.kill('node/pods/podManager');
    await h.settle();
  },
};

describe.each(Object.entries(KILLS))('%s', (_, kill) => {
  it.each([...LIFE_CASES, FAILING].map((c) => [c.covers, c] as const))('while %s', async (_covers, c) => {
    await using h = await virtualNode(c.options ?? {});
    await c.arrange?.(h);
    await h.until('it is there', () => c.at?.(h) === true, 60_000);
    await kill(h);
    await h.until('the subject rests', () => c.rests?.(h) === true, 120_000);
    await h.advance(60_000);
    expect(c.rests?.(h)).toBe(true);
    expect(h.violations).toEqual([]);
  });
});
