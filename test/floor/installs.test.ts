/** Which Node installs all packages: `scripts/env.sh` asks before it installs. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const project = join(import.meta.dirname, '../..');
let dir = '';
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** `npm start`'s first step with a Node of this version, and an npm that only notes that it was called. */
function install(version: string, what = ''): { code: number; err: string; installs: number } {
  const bin = join(dir, 'path');
  for (const [name, script] of [
    ['node', `echo ${version}`],
    ['npm', `mkdir -p "${dir}/node_modules"; echo "$*" >>"${dir}/installs"`],
  ] as const) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const env = { PATH: `${bin}:/usr/bin:/bin` };
  const count = () => (existsSync(join(dir, 'installs')) ? readFileSync(join(dir, 'installs'), 'utf8').split('\n').length - 1 : 0);
  try {
    execFileSync('sh', ['-c', `program=start; . scripts/env.sh; install_packages ${what}`], {
      cwd: dir,
      env,
      encoding: 'utf8',
      stdio: 'pipe',
    });
    return { code: 0, err: '', installs: count() };
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: string };
    return { code: status, err: stderr, installs: count() };
  }
}
function checkout(): void {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-installs-'));
  for (const folder of ['scripts', 'path']) mkdirSync(join(dir, folder));
  // `env.sh` finds the checkout above the script that sources it; here that is the shell itself.
  const text = readFileSync(join(project, 'scripts/env.sh'), 'utf8').replace(/^root=.*$/m, `root=${dir}`);
  writeFileSync(join(dir, 'scripts/env.sh'), text);
  for (const file of ['scripts/launch.sh', 'package-lock.json']) copyFileSync(join(project, file), join(dir, file));
}

it.each(['v18.20.4', 'v20.18.3', 'v21.7.0', 'v22.11.0'])('with Node %s nothing is installed, and it is said what is needed', (version) => {
  checkout();
  const tried = install(version);
  expect(tried).toMatchObject({ code: 1, installs: 0 });
  expect(tried.err).toContain(`needs Node 20.19 or newer (but not 21, nor 22 before 22.12); on PATH: ${version}`);
});

it('installs once, whichever Node asks again', () => {
  checkout();
  expect(install('v20.19.0')).toMatchObject({ code: 0, installs: 1 });
  expect(install('v20.19.0')).toMatchObject({ code: 0, installs: 1 });
  expect(install('v24.1.0')).toMatchObject({ code: 0, installs: 1 });
});

it('installs for a start without the tools of the tests, and those once a test is run', () => {
  checkout();
  expect(install('v24.1.0', 'for-start')).toMatchObject({ code: 0, installs: 1 });
  expect(install('v24.1.0', 'for-start')).toMatchObject({ code: 0, installs: 1 });
  expect(install('v24.1.0')).toMatchObject({ code: 0, installs: 2 });
  expect(install('v24.1.0', 'for-start')).toMatchObject({ code: 0, installs: 2 });
  const [start, tests] = readFileSync(join(dir, 'installs'), 'utf8').split('\n');
  expect(start).toMatch(/^ci --no-workspaces /);
  // `ci` would empty node_modules below a daemon that runs from it.
  expect(tests).toMatch(/^install --no-save --include=dev /);
});

it('leaves alone what was installed by hand', () => {
  checkout();
  mkdirSync(join(dir, 'node_modules/.bin'), { recursive: true });
  for (const file of ['.package-lock.json', '.bin/vitest']) writeFileSync(join(dir, 'node_modules', file), '', { mode: 0o755 });
  utimesSync(join(dir, 'package-lock.json'), 1, 1);
  expect(install('v24.1.0', 'for-start')).toMatchObject({ code: 0, installs: 0 });
});
