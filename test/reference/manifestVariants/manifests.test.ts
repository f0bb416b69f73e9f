/**
 * Variants of real manifests, read here and by the kubelet of 1.36: the same ones become pods, and the pods are the same. Its answers
 * are recorded: its package `kubelet/config` was given each text as a file of the folder of static pods.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RUNS_HERE_ONLY } from './manifestDifferences.ts';
import { answerOf, BASES, decodeHere, digestOf, REFUSED, variants } from './manifests.ts';

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, '../recorded/manifests136.json'), 'utf8')) as {
  variants: string;
  fields: string;
  answers: string[];
};
const fields = new Set(recorded.fields.split(' '));
const there = recorded.answers.flatMap((row) => row.split(' '));
const all = variants();

describe('manifests as the kubelet of 1.36 reads them', () => {
  const found = all.map(({ id, text }, i) => {
    const { pod, errors } = decodeHere(text);
    return { id, errors, here: pod === undefined ? REFUSED : answerOf(pod, fields), there: there[i] };
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
    expect(only.sort()).toEqual(Object.values(RUNS_HERE_ONLY).flat().sort());
  });

  it('are many of each kind', () => {
    for (const name of BASES.keys()) {
      const of = found.filter((f) => f.id === name || f.id.startsWith(`${name} `));
      expect(of.filter((f) => f.there !== REFUSED).length, name).toBeGreaterThan(150);
      expect(of.filter((f) => f.there === REFUSED).length, name).toBeGreaterThan(150);
    }
  });
});
