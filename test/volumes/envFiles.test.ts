/** Files of variables on a real file system: containers wrote them, and may have put anything in their place. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEnvFiles } from '../../src/actors/pods/workers/container/envFiles.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { ENV_FILE_BYTES_MAX, type EnvFile } from '../../src/machines/pods/workers/config/envFile.ts';
import { container } from '../machines/pods/fixtures.ts';

let dir: string;
let volume: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-envfiles-'));
  volume = join(dir, 'data');
  mkdirSync(join(volume, 'sub'), { recursive: true });
  writeFileSync(join(dir, 'secret'), 'A=of the host');
  writeFileSync(join(volume, 'app.env'), 'A=1');
  writeFileSync(join(volume, 'sub', 'big.env'), `A=1\n${'#'.repeat(ENV_FILE_BYTES_MAX)}`);
  symlinkSync('app.env', join(volume, 'link.env'));
  symlinkSync('../secret', join(volume, 'out.env'));
  symlinkSync(join(dir, 'secret'), join(volume, 'absolute.env'));
  symlinkSync('..', join(volume, 'up'));
  symlinkSync('ring.env', join(volume, 'ring.env'));
  symlinkSync('/dev/zero', join(volume, 'device.env'));
  execFileSync('mkfifo', [join(volume, 'fifo.env')]);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function read(path: string, volumeName = 'data'): Promise<EnvFile | undefined> {
  const c = container('main', { env: [{ name: 'X', valueFrom: { fileKeyRef: { volumeName, path, key: 'A' } } }] });
  const mounted = new Map([
    ['data', { hostPath: volume, readOnly: false, managed: true }],
    ['image', { hostPath: '', readOnly: true, managed: false, image: true as const }],
  ]);
  return (await readEnvFiles(createHostFs(), c, async () => mounted)).get(`${volumeName}/${path}`);
}

describe('a file of variables', () => {
  it.each(['app.env', 'link.env', './app.env'])('is read: %s', async (path) => {
    const file = await read(path);
    expect(file?.kind === 'found' && new TextDecoder().decode(file.content)).toBe('A=1');
  });

  it.each(['none.env', 'no/such.env'])('is not there: %s', async (path) => {
    expect(await read(path)).toEqual({ kind: 'absent', path: `${volume}/${path}` });
  });

  it.each([
    ['out.env', 'leads out of the volume'],
    ['absolute.env', 'leads out of the volume'],
    ['up/secret', 'leads out of the volume'],
    ['sub/../app.env', 'leads out of the volume'],
    ['ring.env', 'is a ring of links'],
    ['sub', 'is not a regular file'],
    ['fifo.env', 'is not a regular file'],
    ['device.env', 'leads out of the volume'],
    ['app.env/x', 'leads through something that is no directory'],
    ['sub/big.env', `has more than ${ENV_FILE_BYTES_MAX} bytes`],
  ])('is not read, and holds nobody up: %s', async (path, why) => {
    const file = await read(path);
    expect(file).toMatchObject({ kind: 'unreadable' });
    expect(file?.kind === 'unreadable' && file.why).toContain(why);
  });

  it('is not looked for in a volume that is not mounted, or is an image', async () => {
    expect([await read('app.env', 'other'), await read('app.env', 'image')]).toEqual([{ kind: 'noVolume' }, { kind: 'noVolume' }]);
  });

  it('asks nobody for volumes where no variable comes from a file', async () => {
    const never = () => Promise.reject(new Error('asked'));
    expect(await readEnvFiles(createHostFs(), container('main', { env: [{ name: 'A', value: '1' }] }), never)).toEqual(new Map());
  });
});
