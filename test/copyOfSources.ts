/** A copy of the sources, for a changed line: its packages name each other, not the checkout's. */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const OWN = '@actorlet';
/** Of `packages/`, what is not its sources. */
const LEFT_OUT = ['test', 'node_modules'];

/** Into the folder `dir`, which is there, with the installed packages. */
export function copySources(dir: string): void {
  cpSync(join(ROOT, 'package.json'), join(dir, 'package.json'));
  for (const name of ['src', 'packages'])
    cpSync(join(ROOT, name), join(dir, name), { recursive: true, filter: (path) => !LEFT_OUT.includes(basename(path)) });
  symlinkSync(join(ROOT, 'proto'), join(dir, 'proto'));
  const modules = join(ROOT, 'node_modules');
  mkdirSync(join(dir, 'node_modules', OWN), { recursive: true });
  for (const name of readdirSync(modules)) if (name !== OWN) symlinkSync(join(modules, name), join(dir, 'node_modules', name));
  symlinkSync(join(dir, 'src'), join(dir, 'node_modules', OWN, 'kubelet'));
  for (const name of readdirSync(join(dir, 'packages'))) symlinkSync(join(dir, 'packages', name), join(dir, 'node_modules', OWN, name));
}
