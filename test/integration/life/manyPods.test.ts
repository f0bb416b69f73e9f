/** A node whose API server has far more pods for it than it has places. */
import { describe, expect, it } from 'vitest';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import { cluster, create, inApi } from '../cluster/clusterPods.ts';
import type { VirtualNode } from '../virtualNode.ts';

const PLACES = 5;
const PODS = 400;
const names = Array.from({ length: PODS }, (_, i) => `p${i}`);
const phases = (h: VirtualNode, phase: string) => names.filter((name) => inApi(h, name)?.status.phase === phase).length;
const failed = (h: VirtualNode) =>
  [...(h.tree.registry.read(statusesView)?.value.values() ?? [])].filter(({ status }) => status.phase === 'Failed').length;

describe('hundreds of pods for five places', () => {
  it.each([
    ['that come one after the other', false],
    ['that the first list shows', true],
  ])(
    '%s: each refused one is Failed, here and in the API',
    async (_, listed) => {
      const createAll = (node: VirtualNode): void => {
        for (const name of names) create(node, name);
      };
      await using h = await cluster({ config: { maxPods: PLACES }, ...(listed ? { before: createAll } : {}) });
      if (!listed) createAll(h);
      // A look at each pod in the API is work: not after each step of the clock.
      for (let i = 0; i < 60 && phases(h, 'Failed') + phases(h, 'Running') < PODS; i++) await h.advance(1_000);
      expect(failed(h)).toBe(PODS - PLACES);
      expect([phases(h, 'Failed'), phases(h, 'Running')]).toEqual([PODS - PLACES, PLACES]);
      expect(h.tree.registry.deadLetters().byReason).not.toHaveProperty('overflow');
    },
    300_000,
  );
});
