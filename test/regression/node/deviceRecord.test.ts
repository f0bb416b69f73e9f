/** At the first start the record of devices is written while the folder of plugins is emptied. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { DeviceRecords } from '../../../src/actors/allocation/devices/records.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import type { HostFs } from '../../../src/ports/ports.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';

const RENAME_MS = 50;

it('keeps the record that is being written when the folder of plugins is emptied', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'device-record-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const disk = createHostFs();
  const fs: HostFs = {
    ...disk,
    async rename(from, to) {
      await new Promise((wake) => setTimeout(wake, RENAME_MS));
      await disk.rename(from, to);
    },
  };
  const ports = fakePorts({ fs });
  const records = new DeviceRecords({ ports, log: ports.log, signal: new AbortController().signal, incarnation: 1 }, folder);
  await fs.writeFile(join(folder, 'gpu.sock'), '');
  await Promise.all([records.save({ allocations: [], resources: new Map() }), records.clear()]);
  expect(readdirSync(folder).sort()).toEqual(['kubelet_internal_checkpoint']);
});
