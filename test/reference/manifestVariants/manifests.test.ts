/**
 * Variants of real manifests, read here and by the kubelet of 1.36: the same ones become pods, and the pods are the same. Its answers
 * are recorded: its package `kubelet/config` was given each text as a file of the folder of static pods.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rotating } from '../../rotation.ts';
import { answerOf, BASES, decodeHere, digestOf, REFUSED, variants } from './manifests.ts';

/**
 * Where this program and the kubelet of 1.36 make different things of a variant, each with a reason. All of them run here and not there.
 * None may run there and not here: a takeover would stop it.
 */
const RUNS_HERE_ONLY = JSON.parse(readFileSync(join(import.meta.dirname, 'runsHereOnly.json'), 'utf8')) as Record<string, string[]>;
const recorded = JSON.parse(readFileSync(join(import.meta.dirname, '../recorded/manifests136.json'), 'utf8')) as {
  variants: string;
  fields: string;
  answers: string[];
};
const fields = new Set(recorded.fields.split(' '));
const there = recorded.answers.flatMap((row) => row.split(' '));
const all = variants();
/** Each commit reads one part in so many. */
const PARTS = 4;
const part = rotating(
  'variants of manifests',
  all.map((variant, i) => ({ ...variant, there: there[i] })),
  PARTS,
);

describe('manifests as the kubelet of 1.36 reads them', () => {
  const found = part.map(({ id, text, there }) => {
    const { pod, errors } = decodeHere(text);
    return { id, errors, here: pod === undefined ? REFUSED : answerOf(pod, fields), there };
  });

  it('are those that were recorded', () => expect([digestOf(all), there.length]).toEqual([recorded.variants, all.length]));

  it('none runs there and not here', () => {
    expect(found.filter((f) => f.there !== REFUSED && f.here === REFUSED)).toEqual([]);
  });

  it('what runs in both is the same pod', () => {
    expect(found.filter((f) => f.there !== REFUSED && f.here !== REFUSED && f.here !== f.there)).toEqual([]);
  });

  it('what runs here only has a reason', () => {
    const only = found.filter((f) => f.there === REFUSED && f.here !== REFUSED).map((f) => f.id);
    const ids = new Set(part.map(({ id }) => id));
    const reasons = Object.values(RUNS_HERE_ONLY).flat();
    expect(only.sort()).toEqual(reasons.filter((id) => ids.has(id)).sort());
  });

  it('are many of each kind', () => {
    for (const name of BASES.keys()) {
      const of = found.filter((f) => f.id === name || f.id.startsWith(`${name} `));
      expect(of.filter((f) => f.there !== REFUSED).length, name).toBeGreaterThan(120 / PARTS);
      expect(of.filter((f) => f.there === REFUSED).length, name).toBeGreaterThan(120 / PARTS);
    }
  });
});
