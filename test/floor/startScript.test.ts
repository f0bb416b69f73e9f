/** `scripts/start.sh` alone, with stand-ins for what it installs, builds and becomes: which ports it names and configures. */
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const project = join(import.meta.dirname, '../..');
let dir = '';
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function start(...args: string[]): { out: string; config: string; passed: string[] } {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-start-'));
  for (const folder of ['scripts', 'examples', 'bin']) mkdirSync(join(dir, folder));
  for (const file of ['scripts/start.sh', 'examples/quickstart.yaml']) copyFileSync(join(project, file), join(dir, file));
  const nothing = 'daemon_pid() { :; }\ninstall_packages() { :; }\nuse_node() { :; }\nbuild_programs() { :; }\n';
  writeFileSync(join(dir, 'scripts/env.sh'), `root=${dir}\ncd "$root"\nstate=$root/.actorlet\n${nothing}`);
  writeFileSync(join(dir, 'bin/actorlet'), '#!/bin/sh\nfor a do echo "passed $a"; done\n');
  chmodSync(join(dir, 'bin/actorlet'), 0o755);
  const out = execFileSync('sh', ['scripts/start.sh', ...args], { cwd: dir, encoding: 'utf8' });
  const passed = [...out.matchAll(/^passed (.*)$/gm)]
    .map(([, a = '']) => a)
    .filter((a) => !/^--(root-dir|config)=|^--actorlet-inspect$/.test(a));
  return { out, config: readFileSync(join(dir, '.actorlet/config.yaml'), 'utf8'), passed };
}

it('names the ports that the flags give, and passes every other flag on', () => {
  const run = start('--v=4', '--read-only-port=18355', '--healthz-port', '18348', '--actorlet-inspect=18260', '--a b');
  expect(run.out).toContain('http://127.0.0.1:18260/ in a browser');
  expect(run.out).toContain('http://127.0.0.1:18355/pods');
  expect(run.out).toContain('http://127.0.0.1:18348/healthz');
  expect(run.config).toMatch(/^readOnlyPort: 18355$[\s\S]*^healthzPort: 18348$/m);
  // A deprecated flag would make the daemon print a warning.
  expect(run.passed).toEqual(['--v=4', '--actorlet-inspect=18260', '--a b']);
});

it('names the ports of the example without flags, and leaves a wrong one to the daemon', () => {
  const run = start('--healthz-port=soon');
  expect(run.out).toContain('http://127.0.0.1:10255/pods');
  expect(run.out).toContain('http://127.0.0.1:10248/healthz');
  expect(run.out).toContain('http://127.0.0.1:10260/ in a browser');
  expect(run.passed).toEqual(['--healthz-port=soon']);
});

it('says so where another program has the port of the page', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  try {
    expect(start(`--actorlet-inspect=${port}`).out).toContain(
      `look      NO PAGE: another program listens on port ${port}. For another: npm start -- --actorlet-inspect=${port + 1}`,
    );
  } finally {
    other.close();
  }
});

it('runs what this machine can, says which and why, and leaves the choice to a flag', () => {
  // Nothing is built here, so nothing can be asked.
  const plain = start();
  expect(plain.out).toContain('embedded://process: the built-in images alone');
  expect(plain.config).toMatch(/^containerRuntimeEndpoint: embedded:\/\/process$/m);
  const chosen = start('--container-runtime-endpoint', 'embedded://oci');
  expect(chosen.out).toContain('runs      embedded://oci');
  expect(chosen.passed).toEqual(['--container-runtime-endpoint=embedded://oci']);
});

it('both programs have the command of fleets', () => {
  const helps = ['actorlet', 'actorctl'].map((name) => spawnSync(join(project, 'bin', name), ['fleet', '--help'], { encoding: 'utf8' }));
  for (const { status, stdout } of helps)
    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^actorlet fleet /) });
  expect(helps[0]?.stdout).toBe(helps[1]?.stdout);
});
