/** Configurations are read as the kubelet of 1.36 reads them: its recorded answers to variants of real ones, beside this node's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RUNS_ALL } from '../../rotation.ts';
import { HEADER, HERE } from '../variants/variantParts.ts';
import { PLAIN, variants } from '../variants/variants.ts';
import { actorletAnswer } from './configurationAnswers.ts';
import { REASONS } from './configurationDifferences.ts';
import { compared, KEPT, type Kept } from './configurationsKept.ts';

const LIMIT_MS = 300_000;
const kept = JSON.parse(readFileSync(join(import.meta.dirname, KEPT), 'utf8')) as Kept;
/** What stands in a configuration, and what hands make of it. */
const PIECES = [
  '\n',
  ': ',
  '- ',
  '{',
  '}',
  '[',
  ']',
  '"',
  "'",
  '&a ',
  '*a',
  '!!int ',
  '---\n',
  '...\n',
  '#',
  '|',
  '>',
  'y',
  'null',
  '0x',
  '\t',
  '%',
  '<<: ',
  '\0',
];

it('there are more than a thousand, each with an answer', () => {
  const names = [...variants().keys()];
  expect(names.length).toBeGreaterThan(1_000);
  expect(Object.keys(kept.answers).sort()).toEqual(names.sort());
});

it(
  'every difference has a reason, and nothing that runs there is refused without one',
  async () => {
    const used = new Set<string>();
    const unexplained = (await compared(kept)).filter(({ name, kind }) => {
      if (kind === 'refused here' && kept.later[name] !== undefined) return false;
      const reasons = REASONS.filter((r) => r.kind === kind && r.names.test(name));
      for (const { reason } of reasons) used.add(reason);
      return reasons.length === 0;
    });
    expect(unexplained).toEqual([]);
    expect(REASONS.filter(({ reason }) => !used.has(reason))).toEqual([]);
  },
  LIMIT_MS,
);

it(
  'damaged ones (at night a thousand) are read or refused in words, each at once',
  async () => {
    const texts = [...variants()].flatMap(([name, { files }]) => {
      const text = name.startsWith(`${PLAIN}/`) ? undefined : files['etc/kubelet.yaml'];
      return typeof text === 'string' ? [text] : [];
    });
    const damaged = fc
      .tuple(fc.constantFrom(HEADER, ...texts), fc.array(fc.tuple(fc.nat(), fc.nat(40), fc.constantFrom(...PIECES, '')), { maxLength: 6 }))
      .map(([text, cuts]) =>
        cuts.reduce((t, [at, length, piece]) => t.slice(0, at % t.length) + piece + t.slice((at % t.length) + length), `${text} `),
      );
    const variant = (text: string) => ({ args: [`--config=${HERE}/k`, `--config-dir=${HERE}/d`], files: { k: HEADER, 'd/1.conf': text } });
    let read = 0;
    await fc.assert(
      fc.asyncProperty(damaged, async (text) => {
        const before = performance.now();
        const main = await actorletAnswer({ args: [`--config=${HERE}/k`], files: { k: text } });
        const dropIn = await actorletAnswer(variant(text));
        for (const answer of [main, dropIn])
          if ('refused' in answer) expect(answer.refused).toMatch(/\S+: \S/);
          else read += 1;
        expect(performance.now() - before).toBeLessThan(5_000);
      }),
      { numRuns: RUNS_ALL ? 1_000 : 80, seed: 1_036 },
    );
    expect(read).toBeGreaterThan(RUNS_ALL ? 200 : 15);
  },
  LIMIT_MS,
);
