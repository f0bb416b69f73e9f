/** A commit in a folder of its own, beside this checkout: with this checkout's node_modules, but for the workspaces, which are its own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectRoot } from './report.ts';

export interface Checkout extends Disposable {
  root: string;
  /** The whole id of the commit. */
  id: string;
}

/** Its folder goes at the end. Throws where git does not know the commit. */
export function checkout(commit: string): Checkout {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-commit-'));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    const id = git('rev-parse', '--verify', `${commit}^{commit}`).trim();
    const root = join(dir, 'before');
    git('clone', '--quiet', '--no-checkout', projectRoot, root);
    execFileSync('git', ['checkout', '--quiet', '--detach', id], { cwd: root });
    linkModules(join(projectRoot, 'node_modules'), join(root, 'node_modules'));
    return { root, id, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function linkModules(from: string, to: string): void {
  mkdirSync(join(to, '@actorlet'), { recursive: true });
  for (const name of readdirSync(from)) if (name !== '@actorlet') symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(from, '@actorlet')))
    symlinkSync(readlinkSync(join(from, '@actorlet', name)), join(to, '@actorlet', name));
}
