/** A comment or test that cites a section of the specification cites one that docs/spec lists. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const project = join(import.meta.dirname, '..', '..');
const PARTS: Readonly<Record<string, string>> = {
  'pod lifecycle': 'Pod lifecycle',
  'boot-and-node': 'Boot and node',
  'boot and node': 'Boot and node',
  resources: 'Resources and volumes',
  'resources and volumes': 'Resources and volumes',
};
const CITATION = /\b(pod lifecycle|boot-and-node|boot and node|resources and volumes|resources) (\d+(?:\.\d+)?)\b/g;

it('a cited section stands in docs/spec', () => {
  const index = readFileSync(join(project, 'docs/spec/README.md'), 'utf8');
  const known = new Set(
    index.split(/^## /m).flatMap((part) => {
      const title = part.split('\n')[0] ?? '';
      return [...part.matchAll(/^\| (\d+(?:\.\d+)?) \|/gm)].map(([, section]) => `${title} ${section}`);
    }),
  );
  const cited = globSync('{src,test}/**/*.{ts,tsx}', { cwd: project }).flatMap((file) =>
    [...readFileSync(join(project, file), 'utf8').matchAll(CITATION)].map(([all, part = '', section = '']) => ({
      where: `${file}: ${all}`,
      key: `${PARTS[part]} ${section}`,
    })),
  );
  expect(cited.length).toBeGreaterThan(200);
  expect(cited.filter(({ key }) => !known.has(key)).map(({ where }) => where)).toEqual([]);
});
