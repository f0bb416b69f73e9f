/** What of a call's arguments a replay compares: all of them, though the recording keeps but one text or a digest. */

import { createEntropy } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { describe, expect, it } from 'vitest';
import { briefOf, isSpelled, SPELLED, shortDigest } from '../../src/border.ts';
import type { Json, Outcome } from '../../src/entries.ts';
import { sameArguments } from '../../src/exact/digests.ts';

const { md5Hex } = createEntropy();
const asked = (args: Json, digest: string): Outcome => ['ask', 'fs.stat', digest, 'nothing', briefOf(args)];
const said = (args: Json): Outcome => asked(args, isSpelled(args) ? SPELLED : shortDigest(md5Hex, args));
const is = (then: Json, now: Json): boolean => sameArguments(said(then), said(now));

describe('arguments of a call', () => {
  it.each<[string, Json]>([
    ['one text', ['/a']],
    ['a long text', ['/'.repeat(500)]],
    ['a text and options', ['/a', { own: true }]],
    ['none', []],
  ])('are the same: %s', (_, args) => {
    expect(is(args, args)).toBe(true);
  });

  it.each<[string, Json, Json]>([
    ['another text', ['/a'], ['/b']],
    ['options more, which no brief shows', ['/a'], ['/a', { own: true }]],
    ['options less', ['/a', { own: true }], ['/a']],
    ['a text of nothing', [], ['']],
    ['two texts in place of one with a space', ['/a /b'], ['/a', '/b']],
    ['another end of a long text', [`${'/'.repeat(500)}a`], [`${'/'.repeat(500)}b`]],
  ])('differ: %s', (_, then, now) => {
    expect([is(then, now), is(now, then)]).toEqual([false, false]);
  });

  it('are told by their brief where a recording was cut down under other names', () => {
    expect(sameArguments(asked(['/a', 1], ''), asked(['/a', 2], 'x'))).toBe(true);
  });
});
