/** The lint rules bite: each ban is shown a file that breaks it. A rule nobody saw fail may not be a rule. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const project = join(import.meta.dirname, '..', '..');
let root = '';

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'actorlet-lint-'));
  await put('src/machines/address.ts', 'export const a = 1;\n');
  await put('src/actors/supervision/types.ts', "import { a } from '../../machines/address.ts';\nexport const k = a;\n");
  await put('src/actors/runtime/client.ts', 'export const c = 1;\n');
  await put('src/actors/runtime/link.ts', 'export const l = 1;\n');
  await put('src/boot/daemon.ts', "import { l } from '../actors/runtime/link.ts';\nexport const m = l;\n");
  await put('src/boot/main.ts', "export { m } from './daemon.ts';\n");
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

/** Runs a tool of the project; resolves with exit code and both outputs, whatever the code. */
function run(file: string, args: string[], cwd: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(file, args, { cwd, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, output: stdout + stderr });
    });
  });
}
const checkImports = () => run(process.execPath, [join(project, 'scripts/check-imports.mjs'), root], root);

describe('size of folders', () => {
  const checkFolders = () => run(process.execPath, [join(project, 'scripts/lint/check-folders.mjs'), root], root);
  const fill = async (files: number) => {
    for (let i = 0; i < files; i++) await put(`src/machines/many/f${i}.ts`, '');
  };

  it('is a dozen files', async () => {
    await fill(12);
    expect(await checkFolders()).toEqual({ code: 0, output: 'check-folders: 0 complaints\n' });
  });

  it('and 400 lines of a source', async () => {
    await put('src/machines/long.ts', '\n'.repeat(400));
    expect((await checkFolders()).code).toBe(0);
    await put('src/machines/long.ts', '\n'.repeat(401));
    expect((await checkFolders()).output).toContain('src/machines/long.ts: 401 lines, at most 400');
  });

  it('is not more', async () => {
    await fill(13);
    const { code, output } = await checkFolders();
    expect(code).toBe(1);
    expect(output).toContain('src/machines/many: 13 files, at most 12');
  });
});

describe('what nothing needs', () => {
  it('is an export, a type or a file without an importer', async () => {
    await put('package.json', '{ "name": "unused", "type": "module", "workspaces": ["src"] }');
    await put('tsconfig.json', '{ "compilerOptions": { "module": "NodeNext", "allowImportingTsExtensions": true, "noEmit": true } }');
    await put('src/used.ts', 'export const used = 1;\nexport const idle = 2;\nexport interface Idle {}\nexport const tested = 3;\n');
    await put('src/package.json', '{ "name": "@actorlet/kubelet", "type": "module" }');
    await put('src/boot/main.ts', "import { used } from '../used.ts';\nconsole.log(used);\n");
    await put('test/used.test.ts', "import { tested } from '../src/used.ts';\nconsole.log(tested);\n");
    await cp(join(project, 'knip.json'), join(root, 'knip.json'));
    const { code, output } = await run(process.execPath, [join(project, 'node_modules/knip/bin/knip.js'), '--no-progress'], root);
    expect(code).toBe(1);
    expect(output).toContain('src/actors/runtime/client.ts');
    expect(output).toMatch(/idle +src\/used/);
    expect(output).toMatch(/Idle +interface +src\/used/);
    expect(output).not.toMatch(/\b(?:used|tested) +src/);
  });
});

describe('import direction', () => {
  it('is content with a tree that keeps to it', async () => {
    expect(await checkImports()).toEqual({ code: 0, output: 'check-imports: 6 files, 0 complaints\n' });
  });

  const wrong: [string, string, string, string][] = [
    ['a machine that does I/O', 'src/machines/pods/x.ts', "import { readFileSync } from 'node:fs';", "package 'node:fs'"],
    [
      'a machine that imports an actor',
      'src/machines/x.ts',
      "import { k } from '../actors/supervision/types.ts';",
      'actors/supervision/types.ts',
    ],
    [
      'a type import of a higher layer',
      'src/machines/x.ts',
      "import type { k } from '../actors/supervision/types.ts';",
      'actors/supervision/types.ts',
    ],
    [
      'a supervision that knows an actor',
      'src/actors/supervision/x.ts',
      "export { c } from '../runtime/client.ts';",
      'actors/runtime/client.ts',
    ],
    [
      "an actor that imports a sibling's internals",
      'src/actors/pods/x.ts',
      "import { l } from '../runtime/link.ts';",
      'actors/runtime/link.ts',
    ],
    [
      'an actor that imports another one of its layer',
      'src/actors/runtime/puller/x.ts',
      "import { l } from '../pleg/ledger.ts';",
      'actors/runtime/pleg/ledger.ts',
    ],
    [
      'what a layer shares importing an actor',
      'src/actors/runtime/x.ts',
      "import { l } from './pleg/ledger.ts';",
      'actors/runtime/pleg/ledger.ts',
    ],
    [
      'the flight recorder importing an actor',
      'src/actors/recorder/x.ts',
      "import { c } from '../runtime/client.ts';",
      'actors/runtime/client.ts',
    ],
    ['an actor that imports an I/O package', 'src/actors/pods/x.ts', "import pino from 'pino';", "package 'pino'"],
    ['an actor that imports boot', 'src/actors/tree.ts', "import { m } from '../boot/main.ts';", 'boot/main.ts'],
    [
      'a dynamic import of boot',
      'packages/runtimes/src/process/x.ts',
      "export const x = () => import('@actorlet/kubelet/boot/main.ts');",
      'boot/main.ts',
    ],
    ['the simulation importing boot', 'packages/sim/src/x.ts', "import '@actorlet/kubelet/boot/main.ts';", 'boot/main.ts'],
    ['the inspector importing boot', 'packages/inspect/src/x.ts', "import { m } from '@actorlet/kubelet/boot/main.ts';", 'boot/main.ts'],
    [
      'the hollow runtime doing I/O',
      'packages/runtimes/src/hollow/x.ts',
      "import { spawn } from 'node:child_process';",
      "package 'node:child_process'",
    ],
    [
      'actorctl importing an actor',
      'packages/ctl/src/x.ts',
      "import { c } from '@actorlet/kubelet/actors/runtime/client.ts';",
      'actors/runtime/client.ts',
    ],
    [
      'an inside of xstate',
      'src/actors/runtime/x.ts',
      'export const x = (s: { _nodes: unknown }) => s._nodes;',
      '_nodes is an inside of xstate',
    ],
    ['a machine copied by hand', 'src/machines/x.ts', 'export const x = (m: object): unknown => Object.create(m);', 'an inside of xstate'],
    ['a folder without a rule', 'src/utils/x.ts', 'export const x = 1;', 'no import rule for this folder'],
    ['an import that leaves src', 'src/boot/x.ts', "import '../../package.json';", "'../../package.json'"],
    ['another package by its path', 'packages/sim/src/x.ts', "import '../../../src/machines/address.ts';", 'name its package'],
    ['its own package by its name', 'src/machines/x.ts', "import '@actorlet/kubelet/machines/address.ts';", 'of its own package by name'],
    ['a package that nobody has', 'packages/other/src/x.ts', 'export const x = 1;', 'no import rule for this folder'],
  ];
  it.each(wrong)('refuses %s', async (_name, path, text, complaint) => {
    await put('package.json', '{}\n');
    await put('src/actors/runtime/pleg/pleg.ts', 'export function plegSpec() {}\n');
    await put('src/actors/runtime/pleg/ledger.ts', 'export const l = 1;\n');
    await put(path, `${text}\n`);
    const result = await checkImports();
    expect(result.output).toContain(`${path}:1: `);
    expect(result.output).toContain(complaint);
    expect(result.code).toBe(1);
  });

  it('lets an actor use what its layer shares', async () => {
    await put('src/actors/runtime/pleg/pleg.ts', "import { l } from '../link.ts';\nexport function plegSpec() { return l; }\n");
    expect((await checkImports()).code).toBe(0);
  });

  it("lets an actor use its siblings' client and the tree use all actors", async () => {
    await put('src/actors/pods/x.ts', "import { c } from '../runtime/client.ts';\nexport const x = c;\n");
    await put('src/actors/tree.ts', "import { l } from './runtime/link.ts';\nimport { x } from './pods/x.ts';\nexport const t = [l, x];\n");
    expect((await checkImports()).code).toBe(0);
  });

  it('lets a manager reach another one through its messages.ts alone', async () => {
    await put('src/machines/pods/status/messages.ts', 'export const m = 1;\n');
    await put('src/machines/pods/status/inside.ts', 'export const i = 1;\n');
    await put('src/machines/pods/workers/x.ts', "import { m } from '../status/messages.ts';\nexport const x = m;\n");
    await put('src/actors/pods/workers/x.ts', "import { x } from '../../../machines/pods/workers/x.ts';\nexport const w = x;\n");
    expect((await checkImports()).code).toBe(0);
    await put('src/actors/pods/workers/x.ts', "import { i } from '../../../machines/pods/status/inside.ts';\nexport const w = i;\n");
    expect((await checkImports()).output).toContain('it is the inside of pods/status, whose door is messages.ts');
  });

  it('keeps a floor from what stands above it', async () => {
    await put('src/machines/pod/x.ts', 'export const x = 1;\n');
    await put('src/machines/kube/y.ts', "import { x } from '../pod/x.ts';\nexport const y = x;\n");
    expect((await checkImports()).output).toContain('which stands above it');
  });

  it('finds a cycle, of types too', async () => {
    await put('src/machines/x.ts', "import type { y } from './y.ts';\nexport const x = 1 as typeof y;\n");
    await put('src/machines/y.ts', "import { x } from './x.ts';\nexport const y = x;\n");
    expect((await checkImports()).output).toContain('import cycle machines/x.ts -> machines/y.ts -> machines/x.ts');
    await put('src/machines/x.ts', "import { y } from './y.ts';\nexport const x = () => y;\n");
    expect((await checkImports()).output).toContain('import cycle machines/x.ts -> machines/y.ts -> machines/x.ts');
  });

  it('does not take a comment or a template for an import', async () => {
    await put(
      'src/machines/x.ts',
      "// import '../boot/main.ts';\n/* import '../boot/main.ts'; */\nexport const x = `import '../boot/main.ts'`;\n",
    );
    expect((await checkImports()).code).toBe(0);
  });
});

async function putBiome(): Promise<string> {
  await cp(join(project, 'biome.json'), join(root, 'biome.json'));
  await cp(join(project, 'scripts/lint'), join(root, 'scripts/lint'), { recursive: true });
  await symlink(join(project, 'node_modules'), join(root, 'node_modules'));
  return join(project, 'node_modules/.bin/biome');
}

it('a poll with a deadline of its own is refused', async () => {
  const biome = await putBiome();
  const polls = ['expect.poll(look)', 'expect.poll(look, { interval: 5 })', 'expect.poll(look, { timeout: 5, interval: 5 })'];
  await put('test/poll.ts', `export const polls = [\n${polls.map((poll) => `  ${poll},\n`).join('')}];\n`);
  const { output } = await run(biome, ['lint', '--reporter=github', 'test'], root);
  expect([...output.matchAll(/poll.ts,line=(\d+)/g)].map((m) => m[1])).toEqual(['4']);
  expect(output).toContain('expect.poll has one deadline for all');
});

describe('ambient time, chance and process', () => {
  it('are refused in actors and machines, allowed in boot', async () => {
    const biome = await putBiome();
    const uses = [
      'Date.now()',
      'new Date()',
      'Math.random()',
      'setTimeout(() => 0, 1)',
      'setInterval(() => 0, 1)',
      'process.pid',
      'globalThis.fetch',
    ];
    const text = `export const uses = () => [\n${uses.map((use) => `  ${use},\n`).join('')}];\nexport const allowed = (at: number) => new Date(at);\n`;
    for (const folder of ['src/machines', 'src/actors/pods', 'packages/runtimes/src/hollow', 'src/boot', 'packages/runtimes/src/process']) {
      await put(`${folder}/ambient.ts`, text);
    }
    const { output } = await run(biome, ['lint', '--max-diagnostics=none', '--reporter=github', 'src', 'packages'], root);
    const lines = (folder: string) =>
      [...new Set([...output.matchAll(new RegExp(`/${folder}/ambient.ts,line=(\\d+)`, 'g'))].map((m) => Number(m[1])))].sort(
        (a, b) => a - b,
      );
    const all = uses.map((_, i) => i + 2);
    expect(
      { machines: lines('src/machines'), actors: lines('src/actors/pods'), hollow: lines('packages/runtimes/src/hollow') },
      output,
    ).toEqual({
      machines: all,
      actors: all,
      hollow: all,
    });
    expect({ boot: lines('src/boot'), process: lines('packages/runtimes/src/process') }).toEqual({ boot: [], process: [] });
    for (const folder of ['src/machines', 'src/boot']) {
      await put(`${folder}/ambient.ts`, 'export const young = () => new DisposableStack();\n');
      const young = await run(biome, ['lint', '--reporter=github', folder], root);
      expect([young.code, young.output], folder).toEqual([1, expect.stringContaining('Do not use the global variable DisposableStack')]);
    }
  });
});
