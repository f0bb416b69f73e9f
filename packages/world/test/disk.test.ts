/** The simulated disk is as strict as Linux about what is mounted: no process can remove or rename a mount point (trap 70). */
import { describe, expect, it } from 'vitest';
import { simDisk } from '../src/disk/disk.ts';
import { simRng } from '../src/rng.ts';
import { SimTime } from '../src/time.ts';

function machine() {
  const time = new SimTime(simRng('disk'));
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

describe('a directory of the simulated disk', () => {
  it('knows its names, few and many', async () => {
    const { disk, fs } = machine();
    const names = Array.from({ length: 40 }, (_, i) => `file-${String(i).padStart(2, '0')}`);
    for (const name of names) {
      disk.put(`/a/${name}`, name);
      disk.put(`/a/${name}`, 'again');
    }
    expect(await fs.readdir('/a')).toEqual(names);
    for (const name of names.slice(3)) await fs.unlink(`/a/${name}`);
    expect(await fs.readdir('/a')).toEqual(names.slice(0, 3));
    await fs.rename('/a/file-00', '/a/other');
    await fs.unlink('/a/file-01');
    expect(disk.namesIn('/a')).toEqual(['file-02', 'other']);
  });
});
