/** Two containers of one pod that want the same image share its pull, and its failure counts once. */

import { expect, it } from 'vitest';
import { eventsView } from '../../../src/machines/foundation/messages.ts';

import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('backs off 10 s after the first failure', async () => {
  await using h = await virtualNode({ hollow: { image: () => undefined } });
  h.write('web', pod('web', { spec: { containers: ['a', 'b', 'c', 'd'].map((name) => ({ name, image: 'gone:1' })) } }));
  const pulls = () => h.calls.filter((c) => c.method === 'PullImage').length;
  await h.until('it was pulled once', () => pulls() === 1);
  await h.advance(16_000);
  expect(pulls()).toBeGreaterThan(1);
  expect(h.tree.registry.read(eventsView)?.value.filter((e) => e.reason === 'Pulling').length).toBeGreaterThan(0);
});
