/** Documents: links, anchors and named sources resolve, every page is reached, sentences are short. */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { claimsOf } from '../../scripts/inventories/prose.ts';
import { blocks } from '../e2e/vm/kubeadm/document.ts';

const project = join(import.meta.dirname, '..', '..');
/** One overview, one screen: what does not fit goes to a page in docs/. */
const ARCHITECTURE_BYTES_MAX = 20 * 1024;
const README_BYTES_MAX = 5 * 1024;
const WORDS_MAX = 25;

const under = (...patterns: string[]): string[] => globSync(patterns, { cwd: project }).sort();
const read = (file: string): string => readFileSync(join(project, file), 'utf8');
const withoutCode = (text: string): string => text.replace(/^ *```[\s\S]*?^ *```/gm, '').replace(/`[^`\n]*`/g, 'code');
const documents = under('*.md', '{docs,examples,packaging,bench,src,packages}/**/*.md', 'test/**/*.md');

/** As GitHub makes them. */
function anchors(file: string): Set<string> {
  const seen = new Map<string, number>();
  const found = new Set<string>();
  for (const [, title = ''] of read(file).matchAll(/^#{1,6} +(.+)$/gm)) {
    const slug = title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    found.add(times === 0 ? slug : `${slug}-${times}`);
  }
  return found;
}
function links(file: string): { link: string; target: string; anchor: string }[] {
  return [...withoutCode(read(file)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map((m) => m[1] ?? '')
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = '', anchor = ''] = link.split('#');
      return { link, target: path === '' ? file : relative(project, join(project, dirname(file), path)), anchor };
    });
}

it('every relative link of a document, and its anchor, resolves', () => {
  const broken = documents.flatMap((file) =>
    links(file)
      .filter(
        ({ target, anchor }) =>
          !existsSync(join(project, target)) || (anchor !== '' && target.endsWith('.md') && !anchors(target).has(anchor)),
      )
      .map(({ link }) => `${file}: ${link}`),
  );
  expect(documents.length).toBeGreaterThan(20);
  expect(broken).toEqual([]);
});

it('every page of docs/ is linked from another document', () => {
  const linked = new Set(documents.flatMap((file) => links(file).flatMap(({ target }) => (target === file ? [] : [target]))));
  expect(documents.filter((file) => file.startsWith('docs/') && !linked.has(file))).toEqual([]);
});

it('every block of docs/cluster/kubeadm.md is run by a test', () => {
  const run = new Set<string>();
  for (const file of under('test/**/kubeadm/*.nightly.ts')) {
    let title = '';
    for (const [, named, given, index = '0'] of read(file).matchAll(
      /title = '(.+)';|\b(?:scriptOf|block)\((title|'[^']+')(?:, (\d))?\)/g,
    )) {
      if (named !== undefined) title = named;
      else run.add(`${given === 'title' ? title : given?.slice(1, -1)} ${index}`);
    }
  }
  const all = [...blocks].flatMap(([title, of]) => of.map((_, index) => `${title} ${index}`));
  expect(all.length).toBeGreaterThan(20);
  expect(all.filter((block) => !run.has(block))).toEqual([]);
});

it('documents that code, tests and scripts name are there', () => {
  const missing = under('{src,packages,test,scripts,packaging,examples,bench}/**/*.{ts,tsx,mjs,sh,yaml,service}').flatMap((file) =>
    [...read(file).matchAll(/\b(?:docs\/[\w./-]+?|ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md\b/g)]
      .filter(([name]) => !existsSync(join(project, name)))
      .map(([name]) => `${file}: ${name}`),
  );
  expect(missing).toEqual([]);
});

it('the table of managers names places that are there', () => {
  const table = read('ARCHITECTURE.md').split('\n## Find a manager\n')[1]?.split('\n## ')[0] ?? '';
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes(']('));
  expect(rows.length).toBeGreaterThan(35);
  for (const row of rows) {
    const [, , , places = ''] = row.split('|');
    for (const [, place = '', note = ''] of places.matchAll(/`([^`]+)`(?: \((decides|acts)\))?/g)) {
      const roots = note === 'decides' ? ['src/machines'] : note === 'acts' ? ['src/actors'] : ['src/machines', 'src/actors'];
      for (const root of roots) {
        const isFolder = statSync(join(project, root, place), { throwIfNoEntry: false })?.isDirectory() === true;
        expect(isFolder || under(`${root}/${place}{,Machine}.ts`).length > 0, `${root}/${place}`).toBe(true);
      }
    }
  }
});

it('a behaviour is found in two looks: the place stands in the table of managers, and its file there has the name', () => {
  const places = new Set([...(read('ARCHITECTURE.md').split('\n## Find a manager\n')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, p]) => p));
  const rows = [...read('docs/architecture/where.md').matchAll(/^\| [^|]+ \| `([^`]+)` \| `(src\/\w+\/([^`]+))`: `(\w+)` \|$/gm)];
  expect(rows.length).toBe(43);
  for (const [row, place = '', file = '', below = '', name = ''] of rows) {
    expect(places.has(place) && below.startsWith(place), row).toBe(true);
    expect(read(file), row).toMatch(new RegExp(`\\b${name}\\b`));
  }
});

it('an actor of the tree has a file of its name, or a row in the table of those that differ', () => {
  const tree = read('docs/architecture/supervision-tree.md').split('```')[1] ?? '';
  const actors = tree.split('\n').flatMap((line) => {
    const [, indent = '', name = ''] = /^([│ ]*[├└]─) (\w+)/.exec(line) ?? [];
    return name === '' ? [] : [{ depth: indent.length, name }];
  });
  expect(actors.length).toBeGreaterThan(40);
  const differ = read('docs/architecture/source-layout.md');
  let layer = '';
  const missing: string[] = [];
  for (const { depth, name } of actors) {
    if (depth === 2) layer = name;
    else if (under(`src/actors/${layer}/**/${name}.ts`).length === 0 && !differ.includes(`\`node/${layer}/${name}\``) && name !== 'sources')
      missing.push(`${layer}/${name}`);
  }
  expect(missing).toEqual([]);
});

it('every actor that a story kills stands in the drawing of the tree', () => {
  const tree = read('docs/architecture/supervision-tree.md').split('```')[1] ?? '';
  const drawn = new Set([...tree.matchAll(/[├└]─ (\w+)/g)].map(([, name]) => name));
  const stories = under('test/integration/kill/**/kill*.ts').map(read).join('\n');
  const killed = new Set([...stories.matchAll(/['`]node\/[a-z]+\/(\w+)/g)].map(([, name]) => name));
  expect(killed.size).toBeGreaterThan(30);
  expect([...killed].filter((name) => !drawn.has(name))).toEqual([]);
});

it('a review draws sentences and rows that people wrote, each with its line', () => {
  const page = [
    '# Title',
    'One sentence',
    'on two lines. Another',
    'one.',
    '- **Label.** An item.',
    '```',
    'code.',
    '```',
    '| a | b |',
    '|---|---|',
    '| row | x |',
    '<!-- made: list -->',
    '| not | y |',
    '<!-- end -->',
    'Last.',
  ];
  expect(claimsOf(page.join('\n'))).toEqual([
    { line: 2, text: 'One sentence on two lines.' },
    { line: 3, text: 'Another one.' },
    { line: 5, text: '**Label.** An item.' },
    { line: 11, text: '| row | x |' },
    { line: 15, text: 'Last.' },
  ]);
});

it('lists that are made from the sources are as they are: npm run inventories', () => {
  const checked = spawnSync(process.execPath, [join(project, 'scripts/inventories/main.ts'), '--check'], { encoding: 'utf8' });
  expect(checked).toMatchObject({ status: 0, stdout: '' });
  expect(read('ARCHITECTURE.md')).not.toContain('up the floors');
});

it('README is one screen and ARCHITECTURE.md one overview', () => {
  expect(statSync(join(project, 'README.md')).size).toBeLessThan(README_BYTES_MAX);
  expect(statSync(join(project, 'ARCHITECTURE.md')).size).toBeLessThan(ARCHITECTURE_BYTES_MAX);
});

it('sources that documents name are there', () => {
  const sources = under('{src,packages,test,bench,scripts,examples}/**/*.{ts,tsx,mjs,sh}');
  const byName = Map.groupBy(sources, (file) => basename(file));
  const missing = documents
    .filter((file) => file !== 'CHANGELOG.md')
    .flatMap((file) =>
      [...read(file).matchAll(/`([\w./-]+\.tsx?)`/g)]
        .map(([, name = '']) => name)
        .filter((name) => byName.get(basename(name))?.some((source) => `/${source}`.endsWith(`/${name}`)) !== true)
        .map((name) => `${file}: ${name}`),
    );
  expect(missing).toEqual([]);
});

/** Sentences of paragraphs and lists: tables, titles and code are left out. */
function sentences(text: string): string[] {
  return withoutCode(text)
    .split('\n')
    .map((line) => line.trim().replace(/^(?:[-*]|\d+\.) /, '\n'))
    .map((line) => (line === '' || /^[|#<!]/.test(line) ? '\n' : line))
    .join(' ')
    .split(/\n|(?<=[.!?])[)*"]*\s/)
    .map((sentence) => sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').trim());
}

it(`no sentence of a document has more than ${WORDS_MAX} words`, () => {
  const pages = documents.filter((file) => file !== 'CHANGELOG.md');
  const long = pages.flatMap((file) =>
    sentences(read(file))
      .map((sentence) => ({ sentence, words: sentence.split(/\s+/).length }))
      .filter(({ words }) => words > WORDS_MAX)
      .map(({ sentence, words }) => `${file}: ${words} words: ${sentence}`),
  );
  expect(long).toEqual([]);
});
