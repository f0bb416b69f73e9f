/** Credentials that an administrator put on the node, in files of a Docker client: which file counts, for how long, and after whose. */
import { afterEach, describe, expect, it } from 'vitest';
import { dockerFiles } from '../../../src/machines/runtime/imagePuller/dockerFiles.ts';
import type { OwnedAuth } from '../../../src/machines/runtime/imagePuller/keyring.ts';
import type { CriRequest } from '../../../src/machines/wire/criCalls.ts';
import { type MemFs, memFs } from '../../integration/memFs.ts';
import { fail, fakeCri, healthy } from '../fakeCri.ts';
import { askImage, type World, world } from '../world.ts';

const entry = (user: string) => ({ auth: btoa(`${user}:hunter2`) });
const client = (user: string) => JSON.stringify({ auths: { 'r.io': entry(user) } });

it('they are looked for where the kubelet does, in its order', () => {
  const paths = (o: { working: string; home: string }) => dockerFiles({ rootDir: '/kubelet', ...o }).map(({ path }) => path);
  expect(paths({ working: '/', home: '/root' })).toEqual([
    ...['/kubelet/config.json', '/config.json', '/root/.docker/config.json', '/.docker/config.json'],
    ...['/kubelet/.dockercfg', '/.dockercfg', '/root/.dockercfg'],
  ]);
  expect(paths({ working: '', home: '' })).toEqual([
    ...['/kubelet/config.json', '/.docker/config.json'],
    ...['/kubelet/.dockercfg', '/.dockercfg'],
  ]);
});

describe('the image puller', () => {
  let w: World;
  let fs: MemFs;
  afterEach(() => w.stop());

  /** A registry that lets one user in. */
  async function start(files: Record<string, string>, user = 'node'): Promise<void> {
    fs = memFs({ wallMs: () => 0, monoMs: () => 0, setTimeout: () => 0, clearTimeout: () => {} });
    for (const dir of ['/kubelet', '/.docker']) fs.makeDir(dir);
    for (const [path, text] of Object.entries(files)) fs.put(path, text);
    const cri = healthy(fakeCri());
    cri.answer('ImageStatus', () => ({ image: null, info: {} }));
    cri.answer('PullImage', ({ auth }: CriRequest<'PullImage'>) => (auth?.username === user ? { imageRef: 'x' } : fail(7, 'denied')));
    w = await world({ only: ['cri', 'imagePuller'], cri, images: { rootDir: '/kubelet', registryPullQPS: 0 }, ports: { fs } });
  }
  let pods = 0;
  async function ensure(image: string, auths: readonly OwnedAuth[] = []): Promise<string> {
    const asked = askImage(w, { uid: `u${pods++}`, image, policy: 'IfNotPresent', credentials: { ok: true, auths } });
    await w.ports.settle();
    const result = await asked;
    if (typeof result === 'string') return result;
    return result.ok ? 'pulled' : result.failure.reason;
  }
  const users = () => w.cri.of('PullImage').map(({ request }) => (request as CriRequest<'PullImage'>).auth?.username ?? null);

  it('pulls with them what they match, after the credentials of the pod', async () => {
    await start({ '/kubelet/config.json': client('node') });
    expect(await ensure('r.io/a:1')).toBe('pulled');
    expect(await ensure('r.io/a:1', [{ auth: { username: 'pod' } }])).toBe('pulled');
    expect(await ensure('other.io/a:1')).toBe('ErrImagePull');
    expect(users()).toEqual(['node', 'pod', 'node', null]);
  });

  it('goes by the first file that can be used, and tells of the others without their content', async () => {
    await start({
      '/kubelet/config.json': client('node').slice(1),
      '/.docker/config.json': JSON.stringify({ auths: { 'r.io': { auth: 'no base64 hunter2' } } }),
      '/kubelet/.dockercfg': JSON.stringify({ 'https://r.io/v1/': entry('node') }),
      '/.dockercfg': JSON.stringify({ 'r.io': entry('other') }),
    });
    expect(await ensure('r.io/a:1')).toBe('pulled');
    expect(users()).toEqual(['node']);
    const warned = w.ports.lines.flatMap(({ level, fields }) => (level === 'warn' && fields.file !== undefined ? [fields.file] : []));
    expect(warned).toEqual(['/kubelet/config.json', '/.docker/config.json']);
    expect(JSON.stringify(w.ports.lines)).not.toContain('hunter2');
  });

  it('reads them again after five minutes', async () => {
    await start({});
    expect(await ensure('r.io/a:1')).toBe('ErrImagePull');
    fs.put('/kubelet/config.json', client('node'));
    await w.ports.advance(299_000);
    expect(await ensure('r.io/a:1')).toBe('ErrImagePull');
    await w.ports.advance(1_000);
    expect(await ensure('r.io/a:1')).toBe('pulled');
  });
});
