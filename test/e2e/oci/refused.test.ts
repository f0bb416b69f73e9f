/** A user who may make no user namespaces: said at once, with what to do. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { SANDBOX } from '../../programs.ts';
import { canRunOci, makeRig, USER_ID } from './rig.ts';

const WORDS =
  /OCI images need a user namespace, which this user cannot have here: .*(?:not permitted|EPERM).*user\.max_user_namespaces.*embedded:\/\/process/;

it.runIf(canRunOci())('starts nothing without user namespaces, and says what to do, as does the probe', async () => {
  const rig = makeRig();
  onTestFinished(() => rig.close());
  // The kernel gives none to a process in another root folder than that of its mount namespace.
  const root = join(rig.dir, 'root');
  mkdirSync(root);
  const [unshare = '', mount = '', sh = '', c = '', script = '', name = ''] = rig.launch;
  const chrooted = script.replace(/exec setpriv/, `mount --rbind / ${root} && exec chroot ${root} setpriv`);
  const launch = [unshare, mount, sh, c, chrooted, name];
  await expect(startRuntime({ uid: USER_ID, launch, env: rig.env, args: ['--kind', 'oci'] })).rejects.toThrow(WORDS);
  const [file = '', ...args] = [...launch, process.execPath, SANDBOX, '--probe'];
  const probe = () =>
    execFileSync(file, args, { encoding: 'utf8', env: { ...process.env, ...rig.env }, stdio: ['ignore', 'pipe', 'ignore'] });
  let said = '';
  try {
    said = probe();
  } catch (error) {
    said = (error as { stdout: string }).stdout;
  }
  expect(said).toMatch(WORDS);
});
