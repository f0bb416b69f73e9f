/** Each workspace as a package: packed, installed with the others into an empty folder, and imported there by a Node without TypeScript. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const home = mkdtempSync(join(tmpdir(), 'actorlet-workspaces-'));
const TIMEOUT_MS = 600_000;
/** What each is entered by, and a name that it has. */
const ENTRIES: Readonly<Record<string, string>> = {
  'admin/dist/client.js': 'adminClient',
  'check/dist/check.js': 'runCheck',
  'ctl/dist/cli.js': 'runCtl',
  'deaths/dist/extension.js': 'deathBundles',
  'faults/dist/extension.js': 'faultInjection',
  'fleet/dist/index.js': 'startFleet',
  'harness/dist/index.js': 'startNode',
  'inspect/dist/boot/server.js': 'serveInspector',
  'kubelet/dist/actors/node.js': 'createNode',
  'observe/dist/observe.js': 'observe',
  'process/dist/startProcess.js': 'startProcess',
  'replay/dist/record.js': 'InputRecording',
  'runtimes/dist/hollow/index.js': 'createHollowRuntime',
  'shown/dist/moment/pages.js': 'podsAnswer',
  'sim/dist/index.js': 'runSim',
  'world/dist/rng.js': 'simRng',
};

afterAll(() => rmSync(home, { recursive: true, force: true }));

it(
  'is installed with what it needs, and does there what it does here',
  async () => {
    const [packed, app] = [join(home, 'packed'), join(home, 'app')];
    for (const folder of [packed, app]) mkdirSync(folder);
    const names = ['src', ...readdirSync(join(project, 'packages')).filter((name) => !name.includes('.'))];
    expect(names.length).toBe(Object.keys(ENTRIES).length);
    const workspaces = names.map((name) => `--workspace=${name === 'src' ? 'src' : `packages/${name}`}`);
    await run('npm', ['pack', ...workspaces, `--pack-destination=${packed}`], { cwd: project, timeout: TIMEOUT_MS });
    writeFileSync(join(app, 'package.json'), '{ "name": "app", "private": true, "type": "module" }\n');
    const tarballs = readdirSync(packed).map((name) => join(packed, name));
    await run('npm', ['install', '--no-audit', '--no-fund', ...tarballs], { cwd: app, timeout: TIMEOUT_MS });

    const seed = '{ seed: 3, minutes: 0.1, pods: 2, restMinutesMax: 3 }';
    const lines = [
      `const entries = ${JSON.stringify(ENTRIES)};`,
      "for (const [path, name] of Object.entries(entries)) if (!(name in (await import('@actorlet/' + path)))) console.log(path + ' has no ' + name);",
      `console.log((await (await import('@actorlet/sim/dist/index.js')).runSim(${seed})).hash);`,
    ];
    writeFileSync(join(app, 'app.mjs'), lines.join('\n'));
    const there = await run(process.execPath, ['app.mjs'], { cwd: app, timeout: TIMEOUT_MS });
    const { runSim } = await import('@actorlet/sim/src/index.ts');
    expect(there.stdout.trim()).toBe((await runSim({ seed: 3, minutes: 0.1, pods: 2, restMinutesMax: 3 })).hash);
  },
  TIMEOUT_MS,
);
