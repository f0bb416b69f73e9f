/** Images of the kind `oci`: pull secrets, archives, and images that are broken or hostile. As a user who is not root. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { calls, containerConfig, eventually, podConfig } from '../../../packages/runtimes/test/conformance.ts';
import { startRuntime, type TestRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { busyboxFiles } from '../lab/images.ts';
import { type RegistryOptions, startRegistry } from '../lab/registry.ts';
import { type TarEntry, tar } from '../lab/tar.ts';
import { canRunOci, imageParts, makeRig, type Rig, USER_ID } from './rig.ts';

/** So small that a test reaches them, and the times so long that a busy machine does not. */
const LIMITS = { bytesMax: 24 * 1024 * 1024, inodesMax: 5000, layersMax: 3, answerMs: 10_000, stallMs: 10_000 };
const file = (path: string): TarEntry => ({ kind: 'file', path, data: Buffer.alloc(0) });

describe.runIf(canRunOci())('images of the kind oci', () => {
  let rig: Rig;
  let runtime: TestRuntime;
  let c: ReturnType<typeof calls>;
  beforeAll(async () => {
    rig = makeRig();
    const args = ['--kind', 'oci', '--image-limits', JSON.stringify(LIMITS)];
    runtime = await startRuntime({ uid: USER_ID, launch: rig.launch, env: rig.env, args });
    c = calls(runtime.cri);
  });
  afterAll(async () => {
    await runtime.close();
    rig.close();
  });

  const registry = async (o: Partial<RegistryOptions> = {}) => {
    const started = await startRegistry({ username: '', password: '', ...o });
    onTestFinished(() => started.stop());
    return started;
  };
  const pull = (image: string) => c.call('PullImage', { image: { image } });
  const staging = () => readdirSync(join(layout(runtime.rootDir).ociImages, 'staging'));
  const nothingLeft = () => eventually('nothing of the pull is left', () => (staging().length === 0 ? true : undefined));

  it('pulls with the pod’s secret, which is in a private file only while the pull lasts', async () => {
    const seen: string[] = [];
    const r = await registry({
      username: 'me',
      password: 'secret',
      tamper(data) {
        for (const dir of staging()) {
          const file = join(layout(runtime.rootDir).ociImages, 'staging', dir, 'auth.json');
          if (existsSync(file)) seen.push(readFileSync(file, 'utf8'));
        }
        return data;
      },
    });
    await expect(pull(r.image)).rejects.toThrow(/unauthorized|authentication required/i);
    const auth = { username: 'me', password: 'secret' };
    const { imageRef } = await c.call('PullImage', { image: { image: r.image }, auth });
    expect(seen.join()).toContain(Buffer.from('me:secret').toString('base64'));
    await nothingLeft();
    const { image } = await c.call('ImageStatus', { image: { image: r.image } });
    expect(image).toMatchObject({ id: imageRef, repoTags: [r.image], uid: { value: '0' } });
    expect(image?.repoDigests[0]).toMatch(/^127\.0\.0\.1:\d+\/team\/app@sha256:[0-9a-f]{64}$/);
    const before = r.users.length;
    await c.call('PullImage', { image: { image: r.image }, auth });
    // Unchanged: the manifest is asked for, and nothing else.
    expect(r.users.length - before).toBeLessThanOrEqual(3);
    const { imageFilesystems } = await c.call('ImageFsInfo', {});
    expect(Number(imageFilesystems[0]?.usedBytes?.value)).toBeGreaterThan(1_000_000);
    await c.call('RemoveImage', { image: { image: imageRef } });
    expect((await c.call('ImageStatus', { image: { image: r.image } })).image).toBeNull();
    expect(existsSync(join(layout(runtime.rootDir).ociImages, imageRef.slice(7)))).toBe(false);
  });

  it('loads an archive by every name that it has, and one without a name by a given one', async () => {
    const socket = join(runtime.rootDir, 'actorlet.sock');
    const loaded = await loadImages(socket, { file: rig.archive, name: '' });
    expect(loaded[0]?.tags).toContain('docker.io/library/busybox:latest');
    for (const name of ['busybox', 'docker.io/library/busybox:latest', 'actorlet.test/busybox:1'])
      expect((await c.call('ImageStatus', { image: { image: name } })).image?.id).toBe(loaded[0]?.id);
    expect((await loadImages(socket, { file: rig.archive, name: 'localhost/mine:2' }))[0]?.tags).toContain('localhost/mine:2');
    const junk = join(rig.dir, 'junk.tar');
    writeFileSync(junk, tar([{ kind: 'file', path: 'x', data: Buffer.from('x') }]));
    await expect(loadImages(socket, { file: junk, name: '' })).rejects.toThrow(/no archive of images/);
    await expect(loadImages(socket, { file: '/no/such.tar', name: '' })).rejects.toThrow(/no such file/);
    await nothingLeft();
  });

  it.each<[string, Partial<RegistryOptions>, RegExp]>([
    [
      'for another processor',
      { parts: imageParts(busyboxFiles(), { architecture: 's390x' }) },
      /is for linux\/s390x, this machine is linux/,
    ],
    ['that is cut', { tamper: (data) => (data.length > 100_000 ? data.subarray(0, 50_000) : data) }, /EOF|digest|length|size/i],
    ['whose layer is another', { tamper: (data) => (data.length > 100_000 ? Buffer.from(data).fill(1, 600, 700) : data) }, /digest/i],
    ['of which a registry sends no more', { tamper: (data) => (data.length > 100_000 ? null : data) }, /sent nothing for 10 s/],
    ['that a registry does not answer for', { tamper: () => null }, /did not answer within 10 s/],
    [
      'that unpacks to more than allowed',
      { parts: imageParts([{ kind: 'file', path: 'big', data: Buffer.alloc(40 * 1024 * 1024, 7) }]) },
      /larger than 24 MiB|too large/,
    ],
    ['of many files', { parts: imageParts(Array.from({ length: 6000 }, (_, i) => file(`f${i}`))) }, /more than 5000 files/],
    ['of many layers', { parts: imageParts([file('a')], { more: [[file('b')], [file('c')], [file('d')]] }) }, /4 layers, 3 is the most/],
    ['of a list for other platforms', { other: { os: 'windows', architecture: 'amd64' } }, /no image found .* for architecture/i],
    [
      'whose configuration has fields of other types',
      { parts: imageParts([file('a')], { config: { Env: [1], Cmd: 'true', User: {} } }) },
      /cannot unmarshal/,
    ],
    ['whose configuration is no object', { parts: imageParts([file('a')], { config: 'nothing' }) }, /cannot unmarshal/],
    ['whose manifest is none', { tamper: (_data, path) => (path.includes('/manifests/') ? Buffer.from('[]') : _data) }, /EOF|manifest/i],
    [
      'whose configuration is another',
      { tamper: (data, path) => (data.length < 1000 && path.includes('/blobs/') ? Buffer.from(data).fill(32, 2, 3) : data) },
      /digest|checksum|verif/i,
    ],
  ])('refuses an image %s, and leaves nothing', async (_what, o, words) => {
    const r = await registry(o);
    await expect(pull(r.image)).rejects.toThrow(words);
    await nothingLeft();
    expect((await c.call('ImageStatus', { image: { image: r.image } })).image).toBeNull();
  });

  it('pulls by digest what has that digest alone', async () => {
    const r = await registry();
    const zeros = `${r.host}/team/app@sha256:${'0'.repeat(64)}`;
    await expect(pull(zeros)).rejects.toThrow(/manifest|not found|404/i);
    const other = await registry({ tamper: (data, path) => (path.endsWith('0'.repeat(64)) ? Buffer.from('{}') : data) });
    await expect(pull(`${other.host}/team/app@sha256:${'0'.repeat(64)}`)).rejects.toThrow();
    await nothingLeft();
  });

  it('takes nothing from an archive that is cut, or is no file', async () => {
    const socket = join(runtime.rootDir, 'actorlet.sock');
    const cut = join(rig.dir, 'cut.tar');
    writeFileSync(cut, readFileSync(rig.archive).subarray(0, 500_000));
    await expect(loadImages(socket, { file: cut, name: 'localhost/cut:1' })).rejects.toThrow(/cut\.tar: it ends too early/);
    await expect(loadImages(socket, { file: '/dev/zero', name: 'localhost/zero:1' })).rejects.toThrow(/no such file/);
    await nothingLeft();
    expect((await c.call('ImageStatus', { image: { image: 'localhost/cut:1' } })).image).toBeNull();
  });

  it.each<[string, object, RegExp | null]>([
    ['a stop signal that is none', { Cmd: ['true'], StopSignal: 'SIGNONE' }, /unknown stop signal SIGNONE/],
    ['a working folder outside', { Cmd: ['true'], WorkingDir: '../../..' }, null],
    ['a zero byte, and variables that are none', { Cmd: ['true'], Env: ['A=\u0000B', 'NONE', '=', ''] }, null],
    ['a user beyond the ids', { Cmd: ['true'], User: '99999999' }, /beyond the ids/],
  ])('runs or refuses an image whose configuration has %s', async (_what, config, words) => {
    const r = await registry({ parts: imageParts(busyboxFiles(), { config }) });
    const { imageRef } = await pull(r.image);
    const pod = podConfig('odd', { logDirectory: join(runtime.rootDir, 'logs') });
    const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
    const ran = c.run(pod, containerConfig('main', imageRef), podSandboxId);
    if (words === null) expect(await c.exited(await ran)).toMatchObject({ exitCode: 0 });
    else await expect(ran).rejects.toThrow(words);
    await c.call('RemovePodSandbox', { podSandboxId });
  });

  it('keeps links, devices and whiteouts of a layer within the image', async () => {
    const outside = join(rig.dir, 'home', 'outside');
    mkdirSync(outside, { mode: 0o777 });
    const up = '../'.repeat(20);
    const hostile: TarEntry[] = [
      { kind: 'symlink', path: 'abs', target: outside },
      { kind: 'file', path: 'abs/through-absolute', data: Buffer.from('x') },
      { kind: 'symlink', path: 'rel', target: `${up}${outside.slice(1)}` },
      { kind: 'file', path: 'rel/through-relative', data: Buffer.from('x') },
      { kind: 'file', path: `${up}${outside.slice(1)}/by-dots`.slice(-99), data: Buffer.from('x') },
      { kind: 'file', path: 'abs/.wh.kept', data: Buffer.alloc(0) },
      { kind: 'char', path: 'disk', major: 1, minor: 5, mode: 0o666 },
      { kind: 'symlink', path: 'etc/shadow', target: '/etc/shadow' },
    ];
    writeFileSync(join(outside, 'kept'), 'kept');
    const r = await registry({ parts: imageParts([...busyboxFiles(), ...hostile]) });
    const { imageRef } = await pull(r.image);
    expect(readdirSync(outside)).toEqual(['kept']);
    const pod = podConfig('hostile', { logDirectory: join(runtime.rootDir, 'logs') });
    const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
    const config = containerConfig('main', imageRef, { command: ['sh', '-c', 'head -c 4 /disk | wc -c'] });
    const end = await c.exited(await c.run(pod, config, podSandboxId));
    // A device of an image is none: without root it is an empty file, and the overlay is mounted without devices.
    expect(readFileSync(end.logPath, 'utf8')).not.toMatch(/F 4$/m);
    await c.call('RemovePodSandbox', { podSandboxId });
  });

  it('refuses a container of an image without a command, of a user it does not have, and of a link in the place of its users', async () => {
    const bare = await registry({ parts: imageParts(busyboxFiles(), { config: {} }) });
    const passwd: TarEntry[] = [
      { kind: 'symlink', path: 'etc/passwd', target: '/etc/passwd' },
      ...busyboxFiles().filter((e) => e.path !== 'etc/passwd'),
    ];
    const linked = await registry({ parts: imageParts(passwd, { config: { Cmd: ['sh'], User: 'daemon' } }) });
    const pod = podConfig('refused');
    const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
    const create = async (image: string) => {
      const { imageRef } = await pull(image);
      return c.call('CreateContainer', { podSandboxId, config: containerConfig('main', imageRef), sandboxConfig: pod });
    };
    await expect(create(bare.image)).rejects.toThrow(/has no command of its own/);
    await expect(create(linked.image)).rejects.toThrow(/user "daemon" is not in the image's \/etc\/passwd/);
    expect((await c.call('ImageStatus', { image: { image: linked.image } })).image).toMatchObject({ uid: null, username: 'daemon' });
    await c.call('RemovePodSandbox', { podSandboxId });
  });
});
