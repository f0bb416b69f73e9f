/** One reading of the mount table for all who ask at the same time, and none that began before the question. */
import { expect, it } from 'vitest';
import { createMountTable } from '../../src/boot/dependencies/mounts/mountTable.ts';
import { parseMountinfo } from '../../src/machines/host/mountinfo.ts';

const line = (path: string) => `36 35 98:0 / ${path} rw - tmpfs tmpfs rw\n`;

/** A table of which every reading waits until the test ends it. */
function slowTable() {
  const readings: PromiseWithResolvers<string>[] = [];
  const table = createMountTable(() => {
    const reading = Promise.withResolvers<string>();
    readings.push(reading);
    return reading.promise;
  });
  const paths = async () => parseMountinfo(await table()).map((m) => m.path);
  /** Until whoever can begin to read has begun. */
  const settle = async () => {
    for (let turns = 0; turns < 2; turns++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { readings, paths, settle };
}

it('gives whoever asks during a reading the next one, which all of them share', async () => {
  const { readings, paths, settle } = slowTable();
  const first = paths();
  await settle();
  const later = [paths(), paths(), paths()];
  await settle();
  expect(readings).toHaveLength(1);
  readings[0]?.resolve(line('/old'));
  expect(await first).toEqual(['/old']);
  await settle();
  expect(readings).toHaveLength(2);
  readings[1]?.resolve(line('/old') + line('/new'));
  expect(await Promise.all(later)).toEqual([
    ['/old', '/new'],
    ['/old', '/new'],
    ['/old', '/new'],
  ]);
});

it('shares one reading among those who ask before it begins', async () => {
  const { readings, paths, settle } = slowTable();
  const both = [paths(), paths()];
  await settle();
  expect(readings).toHaveLength(1);
  readings[0]?.resolve(line('/a'));
  expect(await Promise.all(both)).toEqual([['/a'], ['/a']]);
});

it('shares one reading among the answers and deadlines that come in one turn of the event loop', async () => {
  let readings = 0;
  const table = createMountTable(async () => {
    readings += 1;
    return line('/a');
  });
  // Each has its say before the next one begins.
  const asked = Array.from({ length: 100 }, () => new Promise<string>((resolve) => setTimeout(() => resolve(table()), 1)));
  expect(new Set(await Promise.all(asked))).toEqual(new Set([line('/a')]));
  expect(readings).toBeLessThan(10);
});

it('tells a failed reading to those who waited for it, and reads again for the others', async () => {
  const { readings, paths, settle } = slowTable();
  const failed = paths();
  await settle();
  const next = paths();
  readings[0]?.reject(new Error('no table'));
  await expect(failed).rejects.toThrow('no table');
  await settle();
  readings[1]?.resolve(line('/a'));
  expect(await next).toEqual(['/a']);
  const afterwards = paths();
  await settle();
  readings[2]?.resolve('');
  expect(await afterwards).toEqual([]);
});
