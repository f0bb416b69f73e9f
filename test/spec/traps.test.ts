/**
 * The tables in `traps` say, for each trap of a part of the specification, which tests hold it. Every trap has its line, every test that
 * is named is in its file word by word, and few are excepted.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

/** What becomes of one trap. `says` is the trap in our own words. */
type Trap =
  /** Held by these tests: files below `test/`, and the name of a test in each, or of the row of a table of cases in it. */
  | { says: string; tests: readonly Readonly<Record<string, string>>[] }
  /** Excepted: the part of the platform that a test of it would need. Counts against `exceptedShareMax`. */
  | { says: string; missing: string }
  /** About a part of a node agent that this one does not have yet: listed apart, neither held nor excepted. */
  | { says: string; later: string };

/** The traps of one part by their number there, from 1. */
type Traps = Readonly<Record<number, Trap>>;

/** How many each part has. */
const PARTS = {
  'boot-and-node': { part: 'boot and node', count: 64 },
  cri: { part: 'the container runtime interface', count: 15 },
  'pod-lifecycle': { part: 'the pod lifecycle', count: 60 },
  'resources-and-volumes': { part: 'node resources and volumes', count: 75 },
};
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
    const held = 'tests' in trap ? [...new Set(trap.tests.flatMap((t) => Object.keys(t).map((file) => `\`${file}\``)))].join(', ') : '';
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

describe.each(Object.entries(PARTS))('the traps of %s', (name, { part, count }) => {
  const traps = parse(readFileSync(new URL(`traps/${name}.yaml`, import.meta.url), 'utf8')) as Traps;
  const lines = Object.entries(traps);
  it('stand in docs/spec', async () => {
    await expect(page(part, traps)).toMatchFileSnapshot(`../../docs/spec/${name}.md`);
  });
  it('have a line each', () => {
    expect(Object.keys(traps)).toEqual(Array.from({ length: count }, (_, i) => String(i + 1)));
  });
  it('are held by tests that are there by that name', () => {
    const gone = lines.flatMap(([number, trap]) => {
      if (!('tests' in trap)) return 'missing' in trap || 'later' in trap ? [] : [`${number}: neither tests nor a reason`];
      if (trap.tests.length === 0) return [`${number}: no test`];
      return trap.tests.flatMap(Object.entries).flatMap(([file, test]) => {
        const path = fileURLToPath(new URL(file.startsWith('packages/') ? `../../${file}` : `../${file}`, import.meta.url));
        if (!existsSync(path)) return [`${number}: no file test/${file}`];
        return quotes(readFileSync(path, 'utf8'), test) ? [] : [`${number}: no "${test}" in test/${file}`];
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
