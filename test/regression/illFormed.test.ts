/** What the fuzzer found: answers of a form that the server's schema does not have must not throw. */
import { expect, it } from 'vitest';
import { csiNodeUpdate } from '../../src/machines/api/csiNodeMachine.ts';
import { usedCpuNs } from '../../src/machines/edge/stats/procStats.ts';
import { claimedVolume } from '../../src/machines/services/volumes/claims.ts';
import { VOLUME } from '../fuzz/documents.ts';

const use = { claim: { uid: 'u', volume: 'pv' }, name: 'v', node: { name: 'n1', labels: { a: 'b' } }, readOnly: false, block: false };
function volumeWith(matchExpressions: unknown): unknown {
  const volume = structuredClone(VOLUME) as { spec: { claimRef: object; nodeAffinity: object } };
  volume.spec.nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  return volume;
}

it.each([[[null]], [['text']], [[{ key: 'a', operator: 'In', values: 5 }]], [{ a: 1 }], ['text']])(
  'a volume whose node affinity holds %j is on no node',
  (matchExpressions) => {
    expect(claimedVolume(volumeWith([{ key: 'a', operator: 'In', values: ['b'] }]), use)).toMatchObject({ ok: true });
    expect(claimedVolume(volumeWith(matchExpressions), use)).toEqual({ ok: false, message: expect.stringMatching(/node/i) });
  },
);

it('leaves a driver of a CSINode alone whose name is no text', () => {
  const existing = { metadata: { name: 'n1' }, spec: { drivers: [{ name: { toString: null } }] } };
  // What is written is its annotation of plugins.
  expect(csiNodeUpdate(existing, { node: { name: 'n1', uid: 'u' }, drivers: [], gone: new Set(['old']) })?.spec).toEqual(existing.spec);
});

it('takes no figure from a line of /proc/stat that is not made of numbers', () => {
  expect(usedCpuNs('cpu  1 }} 3 4 5 6 7 8\n')).toBeUndefined();
});
