/** The layout of the sources: machines mirror actors, and a statechart is found by its name. In a package it stands beside its actor. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const project = join(import.meta.dirname, '..', '..');
const src = join(project, 'src');
/** actorctl's own view of a stream, which is no actor of the node. */
const ELSEWHERE = ['packages/ctl/src/commands/inspect.ts'];

const charts = globSync('{src,packages/*/src}/**/*.ts', { cwd: project })
  .filter((file) => /\bcreateMachine\(/.test(readFileSync(join(project, file), 'utf8')))
  .map((file) => file.replace(/^src\//, ''))
  .sort();

it('a statechart is <name>Machine.ts, in src/machines or beside its actor in a package', () => {
  expect(charts.length).toBeGreaterThan(30);
  const others = charts.filter((file) => !/^(?:machines|packages\/[^/]+\/src)\/.*Machine\.ts$/.test(file));
  expect(others).toEqual(ELSEWHERE);
});

it('a statechart of a package decides: it uses xstate, other machines, and messages of its own folder, and pure files beside it', () => {
  const found = charts.filter((file) => file.startsWith('packages/') && !ELSEWHERE.includes(file));
  expect(found.length).toBeGreaterThan(2);
  const imported = found.flatMap((file) =>
    [...readFileSync(join(project, file), 'utf8').matchAll(/ from '([^']+)'/g)].map(([, from]) => `${file}: ${from}`),
  );
  expect(
    imported.filter((line) => !/: (?:xstate|@actorlet\/kubelet\/machines\/.+|\.\/(?:messages|keeping|stuck)\.ts)$/.test(line)),
  ).toEqual([]);
});

it('a folder of src/machines with a statechart is a folder of src/actors', () => {
  const folders = new Set(
    charts.filter((file) => file.startsWith('machines/')).map((file) => dirname(file).replace(/^machines/, 'actors')),
  );
  expect([...folders].filter((folder) => !existsSync(join(src, folder)))).toEqual([]);
});

/** `isInstalled`: xstate is changed for the whole process. `current`: the facts of the step that xstate takes now; null between steps. */
const MODULE_STATE = ['src/machines/xstate/candidates.ts', 'src/machines/xstate/facts.ts'];

it('a module of the node keeps no state, but what hangs weakly on an object', () => {
  const files = globSync('{src/{machines,ports,actors},packages/{deaths,faults,fleet,replay,shown,sim,world}/src}/**/*.ts', {
    cwd: project,
  });
  const held = /^(?:export )?(?:let |const \w+(?:: (?!Readonly)[^=]+)? = new (?:Map|Set)(?:<.*>)?\(\))/m;
  const found = files.filter((file) => held.test(readFileSync(join(project, file), 'utf8')));
  expect(found.sort()).toEqual(MODULE_STATE);
});
