/**
 * The clock of the runtime was set back by an hour, as NTP does after a boot. What was made then looked older than what had ended
 * before: containers were started again and again beside one that ran, and a new sandbox was never used.
 */
import { expect, it } from 'vitest';
import { pod, type VirtualNode, virtualNode } from '../../integration/virtualNode.ts';

async function withClockSetBack(act: (h: VirtualNode) => void): Promise<void> {
  let aheadMs = 0;
  const options = {
    get runtimeAheadMs() {
      return aheadMs;
    },
  };
  await using h = await virtualNode(options);
  h.write('web', pod('web'));
  await h.until('it runs', () => h.running('web').length === 1);
  await h.advance(5_000);
  aheadMs = -3_600_000;
  act(h);
  await h.advance(120_000);
  expect(h.running('web')).toHaveLength(1);
  expect(h.violations).toEqual([]);
}

it('a container that ended then is started once more', () =>
  withClockSetBack((h) => {
    for (const { id } of h.running('web')) h.runtime.exit(id, { exitCode: 1 });
  }));

it('a sandbox that was stopped then is made anew once, and used', () =>
  withClockSetBack((h) => {
    const signal = new AbortController().signal;
    for (const { id } of h.runtime.dump().sandboxes)
      void h.runtime.call('StopPodSandbox', { podSandboxId: id }, { signal, timeoutMs: 10_000 });
  }));
