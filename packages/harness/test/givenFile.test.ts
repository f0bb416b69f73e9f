/** Files that a person names on a command line. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parsed } from '@actorlet/fleet/src/boot/args.ts';
import { inputsOf } from '@actorlet/fleet/src/boot/inputs.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scenarioText } from '../src/faults.ts';

const GIVEN = join(import.meta.dirname, '../../process/src/givenFile.ts');
const inputs = async (file: string) => {
  const args = await parsed([file, '--api=embedded']);
  return args === null ? null : inputsOf(args);
};

describe('a file that a person names', () => {
  it('may be a pipe, also of a program that takes its time', () => {
    const program = `import { readGivenSync } from ${JSON.stringify(GIVEN)}; console.log(readGivenSync(process.argv[1]));`;
    const words = `${process.execPath} --input-type=module -e '${program}' <(sleep 0.3; echo one; sleep 0.3; echo two)`;
    expect(spawnSync('bash', ['-c', words], { encoding: 'utf8' })).toMatchObject({ stdout: 'one\ntwo\n\n', status: 0 });
  });

  it('that is a FIFO of nobody, a socket, a device or too long is refused', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'actorlet-given-'));
    onTestFinished(() => rmSync(dir, { recursive: true }));
    const fifo = join(dir, 'fifo');
    const socket = join(dir, 'socket');
    execFileSync('mkfifo', [fifo]);
    await using server = createServer();
    await new Promise<void>((done) => server.listen(socket, done));
    expect(() => readGivenSync(fifo, { writerMs: 100 })).toThrow(`${fifo} is a FIFO to which nobody wrote within 0.1 s`);
    expect(() => readGivenSync(socket)).toThrow('a socket');
    for (const device of ['/dev/zero', '/dev/tty', '/dev/full'])
      expect(() => readGivenSync(device)).toThrow(/is a device|ENXIO|a socket or a device/);
    expect(() => readGivenSync(GIVEN, { bytesMax: 10 })).toThrow('is larger than 10 bytes');
    expect(() => readGivenSync(dir)).toThrow('EISDIR');
    await expect(inputs('/dev/zero')).rejects.toThrow('the fleet file /dev/zero cannot be read: /dev/zero is a device');
    expect(() => scenarioText('/dev/zero')).toThrow('the scenario cannot be read: /dev/zero is a device');
  });
});
