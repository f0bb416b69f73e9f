/** A message that waited for the workers while the pod manager was restarted speaks of what the new one does not know yet. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('an orphaned pod is not stopped by what an earlier pod manager had asked for, before every source has delivered', async () => {
  await using h = await virtualNode({ manifests: { old: pod('old') }, config: { staticPodURL: 'http://example.test/pods' } });
  await h.until('it runs', () => h.phase('old') === 'Running');
  await h.crash();
  h.remove('old');
  const { getBody } = h.net;
  h.net.getBody = () => new Promise(() => {});
  await h.boot();
  // The workers die just before the pod manager asks for one; then it dies itself, and one source is silent from now on.
  let asked = false;
  h.tree.observe((e) => {
    if (asked || e.kind !== 'message' || e.type !== 'pods.orphan') return;
    asked = true;
    h.net.getBody = () => new Promise(() => {});
    h.kill('node/pods/workers');
  });
  h.net.getBody = getBody;
  h.kill('node/pods/sources/http');
  await h.until('the orphaned pod was found', () => asked);
  expect(h.actor('node/pods/workers')?.mailbox?.depth).toBeGreaterThan(0);
  h.kill('node/pods/podManager');
  await h.advance(60_000);
  expect(h.running()).toHaveLength(1);
  h.net.getBody = getBody;
  h.kill('node/pods/sources/http');
  await h.until('it is stopped once all have delivered', () => h.running().length === 0, 120_000);
});
