/** `kill -9` of the daemon in each state of a claim's chart: after the next start every claim is used or unprepared, and on disk as it is. */
import { describe, expect, it } from 'vitest';
import { decodeClaims } from '../../../src/machines/allocation/claims/checkpoint.ts';
import { STATE } from '../claims/resourceClaims.ts';
import { CLAIM_CASES } from './cluster/killClaims.ts';
import { arranged, heal } from './killing.ts';

/** The sweep that finds pods which went meanwhile, and the back-off of those that wait. */
const RESTS_MS = 300_000;

describe('kill -9 while', () => {
  it.each(CLAIM_CASES.map((c) => [c.covers, c] as const))('%s', async (_, c) => {
    const { h } = await arranged(c);
    await using _node = h;
    await h.crash();
    const text = h.fs.textOf(STATE);
    expect(() => (text === undefined ? undefined : decodeClaims(text))).not.toThrow();
    heal(h);
    c.release?.(h);
    await h.boot();
    await h.until('it has come to rest', () => c.rests?.(h) === true, RESTS_MS);
  });
});
