/** Files that were synced went with the power, because the folders that they stand in were as new as they and were not. */
import { simDisk } from '@actorlet/world/src/disk/disk.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { SimTime } from '@actorlet/world/src/time.ts';
import { expect, it } from 'vitest';
import { LastingFolder } from '../../../src/ports/lastingFolder.ts';
import type { HostFs } from '../../../src/ports/ports.ts';

const ROOT = '/var/lib/node';
const DIR = `${ROOT}/some/state`;

/** In how many of 20 power failures the file outlives them. */
async function kept(make: (fs: HostFs) => Promise<void>): Promise<number> {
  let found = 0;
  for (let i = 0; i < 20; i++) {
    const time = new SimTime(simRng('folder'));
    const power = { on: true };
    const clock = time.clockFor(power, () => 0);
    const disk = simDisk({ time, clock });
    disk.makeDir(ROOT);
    const { fs } = disk.mount(power, clock);
    await make(fs);
    await fs.writeFile(`${DIR}/file`, 'x', { fsync: true });
    await fs.fsyncDir(DIR);
    disk.powerLoss(simRng(`loss-${i}`));
    if (
      await fs.stat(`${DIR}/file`).then(
        () => true,
        () => false,
      )
    )
      found += 1;
  }
  return found;
}

it('a lasting folder is there after a power failure, with what was synced in it', async () => {
  expect(await kept((fs) => new LastingFolder(fs, DIR, { mode: 0o700, root: ROOT }).make())).toBe(20);
  expect(await kept(async (fs) => void (await fs.mkdirp(DIR, 0o700)))).toBeLessThan(20);
});
