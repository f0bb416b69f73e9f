/** Each workspace as a package: packed, installed with the others into an empty folder, and imported and run there by a Node without TypeScript. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../freePort.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../../..');
const home = mkdtempSync(join(tmpdir(), 'actorlet-workspaces-'));
const app = join(home, 'app');
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
/** Programs of the packages, by the names that the READMEs have for them, and the quick start on them. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'bin/actorctl': `exec node "$(dirname "$0")/../node_modules/@actorlet/ctl/dist/main.js" "$@"`,
  'bin/actorlet': `case \${1-} in fleet) of=fleet ;; *) of=kubelet ;; esac
exec node "$(dirname "$0")/../node_modules/@actorlet/$of/dist/boot/main.js" "$@"`,
  'start.sh': `mkdir -p .actorlet/logs
bin/actorlet --config=node.yaml --root-dir="$PWD/.actorlet" --actorlet-inspect=127.0.0.1:0 >daemon.log 2>&1 &
echo $! >daemon.pid
for _ in $(seq 300); do bin/actorctl healthz >/dev/null 2>&1 && exit 0; sleep 0.2; done
cat daemon.log; exit 1`,
  'stop.sh': `kill -TERM $(cat daemon.pid)
while kill -0 $(cat daemon.pid) 2>/dev/null; do sleep 0.1; done
node node_modules/@actorlet/runtimes/dist/process/main.js --root-dir "$PWD/.actorlet" --stop`,
};
/** What a command prints, where that is more than help, and how it ends, where that is not with 0. */
const OUTCOMES: Readonly<Record<string, { says: RegExp; codes?: readonly number[] }>> = {
  'bin/actorlet --check': { says: /host: \d+ processors/, codes: [0, 1, 2] },
  'bin/actorctl': { says: /actorctl <command>/, codes: [0, 2] },
  'bin/actorctl version': { says: /^actorctl v.*\nactorctl: no daemon/s, codes: [3] },
  'bin/actorlet fleet --nodes 3 --api embedded': { says: /nodes 3\/3 Ready/, codes: [124] },
  'bin/actorctl ui': { says: /#token=/ },
  'bin/actorctl get pods': { says: /steady/ },
  'bin/actorctl why node': { says: /ready +yes/ },
};

const PACKAGES = readdirSync(join(project, 'packages')).filter((name) => !name.includes('.'));
const commandsOf = (name: string): string[] =>
  [...readFileSync(join(project, 'packages', name, 'README.md'), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.trim().split('\n'),
  );

beforeAll(async () => {
  const packed = join(home, 'packed');
  for (const folder of [packed, join(app, 'bin'), join(app, 'manifests')]) mkdirSync(folder, { recursive: true });
  const names = ['src', ...PACKAGES];
  expect(names.length).toBe(Object.keys(ENTRIES).length);
  const workspaces = names.map((name) => `--workspace=${name === 'src' ? 'src' : `packages/${name}`}`);
  await run('npm', ['pack', '--loglevel=error', ...workspaces, `--pack-destination=${packed}`], { cwd: project, maxBuffer: 1 << 24 });
  const scripts = { start: 'sh start.sh', stop: 'sh stop.sh' };
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module', scripts }));
  const tarballs = readdirSync(packed).map((name) => join(packed, name));
  await run('npm', ['install', '--no-audit', '--no-fund', ...tarballs], { cwd: app });
  for (const [name, text] of Object.entries(PROGRAMS)) writeFileSync(join(app, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const quickStart = readFileSync(join(project, 'examples/quickstart.yaml'), 'utf8')
    .replace(/^readOnlyPort: .*/m, `readOnlyPort: ${await freePort()}`)
    .replace(/^healthzPort: .*/m, `healthzPort: ${await freePort()}`);
  writeFileSync(join(app, 'node.yaml'), `${quickStart}staticPodPath: ${app}/manifests\npodLogsDir: ${app}/.actorlet/logs\n`);
  writeFileSync(join(app, 'manifests/steady.yaml'), readFileSync(join(project, 'examples/quickstart/steady.yaml')));
}, TIMEOUT_MS);
afterAll(() => rmSync(home, { recursive: true, force: true }));

it(
  'is installed with what it needs, and does there what it does here',
  async () => {
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

describe('commands of a README, run from installed packages', () => {
  const env = { HOME: home, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  it.each(PACKAGES.map((name) => [name, commandsOf(name)] as const).filter(([, commands]) => commands.length > 0))(
    '%s: %j',
    async (_, commands) => {
      for (const command of commands) {
        const { says = /./, codes = [0] } = OUTCOMES[command] ?? {};
        // A fleet runs until Ctrl-C.
        const line = codes.includes(124) ? `timeout -s INT 30 ${command}` : command;
        const ended = await run('sh', ['-c', `${line} 2>&1`], { cwd: app, env, maxBuffer: 1 << 24, timeout: TIMEOUT_MS }).then(
          ({ stdout }) => ({ code: 0, stdout }),
          ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
        );
        expect({ command, ...ended }).toMatchObject({ command, stdout: expect.stringMatching(says) });
        expect(codes, `${command}: ${ended.stdout}`).toContain(ended.code);
      }
    },
    TIMEOUT_MS,
  );
});
