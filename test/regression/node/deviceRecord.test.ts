/** The record of devices: written while the folder of plugins is emptied, and never larger than it is read. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { DeviceRecords, RECORD_BYTES_MAX } from '../../../src/actors/allocation/devices/records.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import type { HostFs } from '../../../src/ports/ports.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';

const RENAME_MS = 50;
const ID_CHARS = 100 * 1024;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'device-record-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it('writes no record that it would not read: who holds which devices is known after a restart', async () => {
  const ports = fakePorts({ fs: createHostFs() });
  const records = new DeviceRecords({ ports, log: ports.log, signal: new AbortController().signal, incarnation: 1 }, newFolder());
  const response = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
  const allocations = [{ uid: 'u', container: 'c', resource: 'example.com/x', devices: { '-1': ['a'] }, response }];
  const listed = (ids: string[]) =>
    new Map([['example.com/x', { healthy: new Set(ids), unhealthy: new Set<string>(), numa: new Map(), returning: false }]]);
  const ids = (of: string) => Array.from({ length: Math.ceil(RECORD_BYTES_MAX / ID_CHARS / 2) }, (_, i) => `${i}`.padEnd(ID_CHARS, of));
  await records.save({ allocations, resources: listed(ids('x')) });
  expect((await records.read())?.allocations).toEqual(allocations);
  // Bytes count: each of these characters has two.
  await expect(records.save({ allocations, resources: listed(ids('ä')) })).rejects.toThrow('at most');
  expect((await records.read())?.allocations).toEqual(allocations);
});

it('keeps the record that is being written when the folder of plugins is emptied', async () => {
  const folder = newFolder();
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
