/** The simulated disk is as strict as Linux about what is mounted: no process can remove or rename a mount point (trap 70). */
import { describe, expect, it } from 'vitest';
import { simDisk } from '../src/disk/disk.ts';
import { simRng } from '../src/rng.ts';
import { simTime } from '../src/time.ts';

function machine() {
  const time = simTime(simRng('disk'));
  const power = { on: true };
  const clock = time.clockFor(power, () => 0);
  const disk = simDisk({ time, clock });
  const mounted = new Set<string>();
  disk.isMountPoint = (path) => mounted.has(path);
  return { disk, mounted, fs: disk.mount(power, clock).fs };
}

describe('a mount point on the simulated disk', () => {
  it('is busy until it is unmounted, whether a directory or a file', async () => {
    const { disk, mounted, fs } = machine();
    disk.makeDir('/a/dir');
    disk.put('/a/file', '');
    for (const path of ['/a/dir', '/a/file']) mounted.add(path);
    await expect(fs.rmdir('/a/dir')).rejects.toMatchObject({ code: 'EBUSY' });
    await expect(fs.unlink('/a/file')).rejects.toMatchObject({ code: 'EBUSY' });
    await expect(fs.rename('/a/dir', '/a/other')).rejects.toMatchObject({ code: 'EBUSY' });
    await expect(fs.rename('/a/file', '/a/other')).rejects.toMatchObject({ code: 'EBUSY' });
    mounted.clear();
    await fs.rmdir('/a/dir');
    await fs.unlink('/a/file');
    expect(await fs.readdir('/a')).toEqual([]);
  });
});
