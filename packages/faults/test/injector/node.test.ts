/** The production tree with fault injection allowed, in virtual time. */

import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import type { Answer } from '@actorlet/kubelet/machines/supervision/address.ts';
import { describe, expect, it } from 'vitest';
import { manifest } from '../../../../test/integration/hollowNode.ts';
import { type VirtualNode, virtualNode } from '../../../../test/integration/virtualNode.ts';
import type { InjectAnswer, InjectorEvent } from '../../src/live.ts';
import { injectorAddr } from '../../src/messages.ts';
import { scenario } from './rig.ts';

const FOR_MS = 60_000;

async function inject(h: VirtualNode, faults: readonly object[]): Promise<void> {
  let answer: Answer<InjectAnswer> | undefined;
  const event = (replyTo: Extract<InjectorEvent, { type: 'faults.inject' }>['replyTo']): InjectorEvent => ({
    type: 'faults.inject',
    scenario: scenario(faults),
    replyTo,
  });
  void h.tree.registry.ask<InjectorEvent, InjectAnswer>(injectorAddr, event, { timeoutMs: 10_000 }).then((a) => {
    answer = a;
  });
  await h.until('an answer of the injector', () => answer !== undefined);
  if (answer?.kind !== 'reply' || !answer.value.ok) throw new Error(JSON.stringify(answer));
}
const ids = (h: VirtualNode): string[] => h.running().map((c) => c.id);
const web = () => virtualNode({ flags: { faultInjection: true }, manifests: { 'web.json': manifest('web') } });

describe('a whole node', () => {
  it('has no injector unless it was asked for', async () => {
    await using h = await virtualNode();
    expect(h.actor(injectorAddr.path)).toBeUndefined();
    await using allowed = await virtualNode({ flags: { faultInjection: true } });
    expect(allowed.actor(injectorAddr.path)?.reason).toBe('fault injection is allowed: nothing is injected');
    expect(allowed.lines.filter((l) => l.msg.startsWith('FAULT INJECTION IS ALLOWED'))).toHaveLength(1);
  });

  it.each([
    ['the runtime away', [{ kind: 'runtime.down', for: '1m' }]],
    ['every call lost without effect', [{ kind: 'cri', action: 'lost-without-effect', for: '1m' }]],
    ['half of the calls lost with their effect', [{ kind: 'cri', action: 'lost-with-effect', probability: 0.5, for: '1m' }]],
    ['a full disk', [{ kind: 'disk.full', for: '1m' }]],
    ['files that cannot be changed', [{ kind: 'disk.error', code: 'EROFS', for: '1m' }]],
    [
      'events lost and hints to look again lost',
      [
        { kind: 'hints', action: 'drop', for: '1m' },
        { kind: 'mailbox', action: 'drop', for: '1m', select: { events: ['pod.dirty', 'pods.dirty'] } },
      ],
    ],
    ['slow mailboxes', [{ kind: 'mailbox', action: 'delay', delay: '2s', for: '1m', select: { actors: 'pods/**' } }]],
  ] as const)('starts a pod after %s, and leaves the one that runs alone', async (_what, faults) => {
    await using h = await web();
    await h.until('web runs', () => h.phase('web') === 'Running');
    const before = ids(h);
    await inject(h, faults);
    h.write('late.json', manifest('late'));
    await h.advance(FOR_MS);
    await h.until('late runs', () => h.phase('late') === 'Running' && h.running('late').length === 1, 600_000);
    expect(h.running('web').map((c) => c.id)).toEqual(before);
    expect(h.violations).toEqual([]);
    const reasons = (h.tree.registry.read(eventsView)?.value ?? []).filter((e) => e.pod === undefined).map((e) => e.reason);
    expect(reasons).toContain('FaultInjected');
    expect(reasons).toContain('FaultHealed');
  });

  it('is whole again at once when the injector dies', async () => {
    await using h = await web();
    await h.until('web runs', () => h.phase('web') === 'Running');
    const before = ids(h);
    await inject(h, [
      { kind: 'runtime.down' },
      { kind: 'disk.full' },
      { kind: 'mailbox', action: 'delay', delay: '10m', select: { actors: 'pods/**' } },
    ]);
    await h.until('the link to be lost', () => h.tree.registry.read(criView)?.value.state !== 'ready');
    h.write('late.json', manifest('late'));
    await h.advance(5_000);
    expect(h.running('late')).toEqual([]);
    expect(h.kill(injectorAddr.path)).toBe(true);
    await h.until('late runs', () => h.phase('late') === 'Running', 120_000);
    expect(h.running('web').map((c) => c.id)).toEqual(before);
    expect(h.actor(injectorAddr.path)?.reason).toBe('fault injection is allowed: nothing is injected');
  });
});
