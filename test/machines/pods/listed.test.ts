/** What a listing of the runtime says that an inspection of the pod does not. */
import { expect, it } from 'vitest';
import { hasNoNews } from '../../../src/machines/pod/runtime/listed.ts';
import type { ListedPod, RuntimeContainer, RuntimePodsView } from '../../../src/machines/pod/runtime/seen.ts';
import { box, observed, rc } from './fixtures.ts';

const AT_MS = 100;
const SANDBOX = box();

function listing(containers: [string, RuntimeContainer['state']][], o: { ready?: boolean; atMonoMs?: number } = {}): RuntimePodsView {
  const pod: ListedPod = {
    uid: 'uid-1',
    name: 'p',
    namespace: 'ns',
    sandboxes: [{ id: SANDBOX.id, ready: o.ready ?? true, createdAtNs: 0n, attempt: 0, labels: {}, annotations: {} }],
    containers: containers.map(([id, state]) => ({
      id,
      name: 'web',
      sandboxId: SANDBOX.id,
      state,
      createdAtNs: 0n,
      labels: {},
      annotations: {},
    })),
  };
  return { atMonoMs: o.atMonoMs ?? AT_MS, pods: new Map([[pod.uid, pod]]), via: 'cri' };
}
const seen = (state: RuntimeContainer['state'], atMonoMs = AT_MS) => ({
  ...observed([rc('web', state)], [SANDBOX]),
  observedAtMonoMs: atMonoMs,
});
const id = rc('web', 'running').id;

it.each([
  ['the same', listing([[id, 'running']]), seen('running'), true],
  ['an earlier state', listing([[id, 'created']]), seen('running'), true],
  ['a later state', listing([[id, 'exited']]), seen('running'), false],
  ['an unknown state', listing([[id, 'unknown']]), seen('running'), false],
  [
    'a container that was not there',
    listing([
      [id, 'running'],
      ['web-9', 'created'],
    ]),
    seen('running'),
    false,
  ],
  ['a sandbox that went', listing([[id, 'running']], { ready: false }), seen('running'), false],
  ['no container, and is older than the inspection', listing([]), seen('running', AT_MS + 1), true],
  ['no container, and is newer than the inspection', listing([]), seen('running', AT_MS - 1), false],
])('a listing that shows %s', (_, listed, status, nothing) => {
  expect(hasNoNews(listed, status)).toBe(nothing);
});

it('counts what a partial inspection did not read as read by the last whole one', () => {
  const status = {
    ...seen('running', AT_MS + 50),
    partial: { wholeAtMonoMs: AT_MS - 50, readAtMonoMs: new Map([[SANDBOX.id, AT_MS + 50]]) },
  };
  expect(hasNoNews(listing([]), status)).toBe(false);
  expect(hasNoNews(listing([]), { ...status, partial: { ...status.partial, readAtMonoMs: new Map([[id, AT_MS + 50]]) } })).toBe(true);
});

it('leaves what the worker just made to its own inspection, but not its end', () => {
  const status = seen('running');
  const own = (of: string) => of === 'web-9';
  expect(
    hasNoNews(
      listing([
        [id, 'running'],
        ['web-9', 'running'],
      ]),
      status,
      own,
    ),
  ).toBe(true);
  expect(
    hasNoNews(
      listing([
        [id, 'running'],
        ['web-9', 'exited'],
      ]),
      status,
      own,
    ),
  ).toBe(false);
});
