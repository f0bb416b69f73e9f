/**
 * Feature gates beside those of the kubelet 1.36.2. What it says of each was recorded from the program: stage and default from
 * its help and its warnings, the lock from its refusal to set the gate to the opposite, dependencies from its refusals of
 * `--feature-gates`.
 */
import { expect, it } from 'vitest';
import { createFeatureGates, gateRefusals } from '../../src/machines/config/gates.ts';
import { GATES } from '../../src/machines/config/gateTable.ts';
import answers from './recorded/gateDependencies136.json' with { type: 'json' };
import reference from './recorded/gates136.json' with { type: 'json' };

it('feature gates have the stage, the default and the lock that they have in the kubelet', () => {
  const ours = Object.fromEntries(Object.keys(reference).map((name) => [name, GATES[name]]));
  expect(ours).toEqual(reference);
});

it.each(Object.entries(answers))('--feature-gates=%s is refused in the words of the kubelet', (given, refused) => {
  const settings = Object.fromEntries(given.split(',').map((pair) => [pair.split('=')[0] ?? '', pair.endsWith('=true')]));
  const refusals = gateRefusals(createFeatureGates(settings));
  expect(refusals.map(({ what }) => what).sort()).toEqual(refused);
});

it('gates that the kubelet no longer knows are accepted where they are set to what they became', () => {
  const gone = Object.keys(GATES).filter((name) => !Object.hasOwn(reference, name));
  const settings = Object.fromEntries(gone.map((name) => [name, GATES[name]?.default === true]));
  expect(createFeatureGates(settings)).toMatchObject({ locked: [], unknown: [] });
});
