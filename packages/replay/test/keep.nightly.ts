/** A bug is found with a recording of a node without it, cut down to a test, and the test fails with the bug alone. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Checkout } from './checkout.ts';
import { toldTo } from './toldTo.ts';

const BUG = 'a crashed container does not wait';
const FOUND = 'packages/replay/test/found/backOff';
let dir: string;
let checkout: Checkout;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-keep-'));
  await recordSeed(toldTo(), { seed: 8, minutes: 0.4, pods: 5 }, dir);
  checkout = new Checkout();
});
afterAll(() => {
  checkout[Symbol.dispose]();
  rmSync(dir, { recursive: true, force: true });
});

const textOf = (file: string): string => zstdDecompressSync(readFileSync(file)).toString();

it('is found, kept as a small test without names, fails with the bug and passes without', { timeout: 240_000 }, () => {
  checkout.plant(BUG, true);
  const [, second = ''] = readdirSync(dir).sort();
  const whole = join(dir, second);
  const found = checkout.ctl('replay', whole);
  expect(found).toMatchObject({ code: 1, out: expect.stringMatching(/DIVERGENCE.*then: a timer of \d+ ms/s) });
  const kept = checkout.ctl('replay', whole, '--to-test', `${FOUND}.test.ts`);
  expect(kept).toMatchObject({ code: 0, out: expect.stringMatching(/ 1 of \d+ pods/) });
  const small = join(checkout.dir, `${FOUND}.inputs.zst`);
  expect(statSync(small).size).toBeLessThan(100 * 1024);
  expect(textOf(small)).not.toMatch(/\bp\d-n1\b|registry\.sim\//);
  expect(checkout.passes(`${FOUND}.test.ts`)).toBe(false);
  checkout.plant(BUG, false);
  expect(checkout.passes(`${FOUND}.test.ts`)).toBe(true);
});

it('without a divergence the end of one pod is kept, without the others and without names', { timeout: 240_000 }, () => {
  checkout.plant(BUG, false);
  const [first = ''] = readdirSync(dir).sort();
  const whole = join(dir, first);
  const small = join(checkout.dir, 'small');
  const none = checkout.ctl('replay', whole, '--minimize', '--pod', 'default/none', '--out', small);
  expect(none).toMatchObject({ code: 1, out: expect.stringMatching(/no pod default\/none is in it; there are default\/p/) });
  const kept = checkout.ctl('replay', whole, '--minimize', '--pod', 'default/p0-n1', '--out', small, '--runs', '20', '--json');
  const { bytes, pods, inputs, end } = JSON.parse(kept.out) as Record<'pods' | 'inputs', { before: number; after: number }> & {
    bytes: number;
    end: string;
  };
  expect(pods.after).toBeLessThan(pods.before);
  expect(inputs.after).toBeLessThan(inputs.before);
  expect(bytes).toBeLessThan(100 * 1024);
  expect(end).toMatch(/Running|Succeeded|Failed/);
  expect(textOf(small)).not.toMatch(/\bp\d-n1\b|registry\.sim\//);
  expect(checkout.ctl('replay', small)).toMatchObject({ code: 0, out: expect.stringContaining('No divergence') });
});

it('where it comes only in the order of the recording, the time after it is cut off, and names are replaced', { timeout: 240_000 }, () => {
  checkout.plant(BUG, true);
  const [, second = ''] = readdirSync(dir).sort();
  const cut = join(checkout.dir, 'cut');
  const kept = checkout.ctl('replay', join(dir, second), '--minimize', '--out', cut, '--runs', '0');
  expect(kept).toMatchObject({ code: 0, out: expect.stringContaining('only the time after the divergence was cut off') });
  expect(kept.out).not.toContain('names, addresses and images are in it');
  expect(textOf(cut)).not.toMatch(/\bp\d-n1\b|registry\.sim\//);
  expect(checkout.ctl('replay', cut)).toMatchObject({ code: 1, out: expect.stringMatching(/then: a timer of \d+ ms/) });
  checkout.plant(BUG, false);
  expect(checkout.ctl('replay', cut)).toMatchObject({ code: 0, out: expect.stringContaining('No divergence') });
});
