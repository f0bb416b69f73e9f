/** Block devices for drivers: a loop device of a file, and a node of it where the driver publishes. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const DISK_BYTES = 1 << 20;

export function loopDevices(dir: string): { make(name: string, target: string): void; remove(target: string): boolean; dispose(): void } {
  const made = new Map<string, string>();
  const detach = (target: string, device: string): void => {
    rmSync(target, { force: true });
    execFileSync('losetup', ['--detach', device]);
    made.delete(target);
  };
  return {
    make(name, target) {
      mkdirSync(dir, { recursive: true });
      const file = join(dir, name);
      writeFileSync(file, '');
      truncateSync(file, DISK_BYTES);
      const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim();
      made.set(target, device);
      execFileSync('cp', ['-a', device, target]);
    },
    remove(target) {
      const device = made.get(target);
      if (device !== undefined) detach(target, device);
      return device !== undefined;
    },
    dispose() {
      for (const [target, device] of made) detach(target, device);
    },
  };
}
