/**
 * Tables that say, for each trap of a part of the specification, which tests hold it. `holdTable` checks them: every trap
 * has its line, every test that is named is in its file word by word, and few are excepted.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** A file below `test/` and the name of a test in it, or of the row of a table of cases in it. */
export type Held = readonly [file: string, name: string];

/** What becomes of one trap. `says` is the trap in our own words. */
export type Trap =
  /** Held by these tests. */
  | { says: string; tests: readonly Held[] }
  /** Excepted: the part of the platform that a test of it would need. Counts against `exceptedShareMax`. */
  | { says: string; missing: string }
  /** About a part of a node agent that this one does not have yet: listed apart, neither held nor excepted. */
  | { says: string; later: string };

/** The traps of one part by their number there, from 1. */
export type Traps = Readonly<Record<number, Trap>>;

/** Of the traps about parts that this node has, how many may be excepted; a share of 1. */
const exceptedShareMax = 0.05;

/** Whether a name stands in a source as a whole string: the title of a test, or the name of a case. */
function quotes(source: string, name: string): boolean {
  return ["'", '"', '`'].some((mark) => source.includes(`${mark}${name}${mark}`));
}

const escaped = (text: string): string => text.replaceAll('|', '\\|');

/** The page of one part in docs/spec. */
function page(part: string, traps: Traps): string {
  const rows = Object.entries(traps).map(([number, trap]) => {
    const held = 'tests' in trap ? [...new Set(trap.tests.map(([file]) => `\`${file}\``))].join(', ') : '';
    const why = 'missing' in trap ? `no test: ${trap.missing}` : 'later' in trap ? `not here yet: ${trap.later}` : '';
    return `| ${number} | ${escaped(trap.says)} | ${escaped(held || why)} |`;
  });
  return [
    `# Traps of ${part}`,
    '',
    'Written by `npm run golden -- test/spec` from `test/spec`. Files of tests are below `test/`. [What the numbers mean](README.md).',
    '',
    '| trap | behaviour | tests that hold it |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** @param of Name of the part, its page in docs/spec, and how many traps it has. */
export function holdTable(of: { part: string; file: string; count: number }, traps: Traps): void {
  const { part, file, count } = of;
  const lines = Object.entries(traps);
  describe(`the traps of ${part}`, () => {
    it('stand in docs/spec', async () => {
      await expect(page(part, traps)).toMatchFileSnapshot(`../../docs/spec/${file}`);
    });
    it('have a line each', () => {
      expect(Object.keys(traps)).toEqual(Array.from({ length: count }, (_, i) => String(i + 1)));
    });
    it('are held by tests that are there by that name', () => {
      const gone = lines.flatMap(([number, trap]) => {
        if (!('tests' in trap)) return [];
        if (trap.tests.length === 0) return [`${number}: no test`];
        return trap.tests.flatMap(([file, name]) => {
          const path = fileURLToPath(new URL(file.startsWith('packages/') ? `../../${file}` : `../${file}`, import.meta.url));
          if (!existsSync(path)) return [`${number}: no file test/${file}`];
          return quotes(readFileSync(path, 'utf8'), name) ? [] : [`${number}: no "${name}" in test/${file}`];
        });
      });
      expect(gone).toEqual([]);
    });
    it('are excepted in one case of twenty at most, of those about what this node has', () => {
      const ours = lines.filter(([, trap]) => !('later' in trap));
      const excepted = ours.filter(([, trap]) => 'missing' in trap);
      expect(excepted.length).toBeLessThanOrEqual(ours.length * exceptedShareMax);
    });
  });
}
