/** Parts of volumes on a real containerd and a real kernel: shown to containers, kept inside, taken away with the pod (trap 54, 60). */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseMountinfo } from '../../src/machines/volumes/mountinfo.ts';
import { buildDaemon, createDaemon, type Daemon } from './daemon.ts';
import { type Containerd, startContainerd } from './lab/containerd.ts';
import { manifest, steady } from './manifests.ts';
import { containers, exec } from './runtime.ts';

let lab: Containerd;
let daemon: Daemon;

beforeAll(async () => {
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab);
  await daemon.start();
});
afterAll(async () => {
  const left = daemon === undefined ? [] : mounted();
  await daemon?.dispose();
  expect(await lab?.stop()).toEqual([]);
  expect(left).toEqual([]);
});

/** Mount points below the daemon's root directory, as the kernel has them. */
function mounted(): string[] {
  return parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map((m) => m.path)
    .filter((p) => p.startsWith(`${daemon.dir}/`));
}
const bound = (uid: string) => mounted().filter((p) => p.includes(`/${uid}/volume-subpaths/`));
async function idOf(pod: string, container = 'main'): Promise<string> {
  const id = (await containers(lab, pod)).find((c) => c.container === container && c.running)?.id;
  if (id === undefined) throw new Error(`${pod}/${container} is not running`);
  return id;
}
async function ready(name: string): Promise<string> {
  const pod = await daemon.podWhere(name, `${name} ready`, (p) => p.status.containerStatuses?.every((c) => c.ready) === true, 120_000);
  return pod.metadata.uid;
}
async function refused(name: string): Promise<string> {
  const waiting = (p: { status: { containerStatuses?: { state: { waiting?: { reason?: string; message?: string } } }[] } }) =>
    p.status.containerStatuses?.[0]?.state.waiting;
  const is = (p: Parameters<typeof waiting>[0]) => waiting(p)?.reason === 'CreateContainerConfigError';
  const pod = await daemon.podWhere(name, `${name} refused`, is, 120_000);
  return waiting(pod)?.message ?? '';
}
/** Takes the manifest away and waits until nothing of the pod is left on disk. */
async function gone(name: string, uid: string): Promise<void> {
  daemon.remove(`${name}.yaml`);
  await daemon.wait(`the directory of ${name} to go`, () => !existsSync(join(daemon.rootDir, 'pods', uid)), { timeoutMs: 120_000 });
  expect(bound(uid)).toEqual([]);
}

describe('a part of a volume', () => {
  it('is a directory or a file of it, is bound again at each start, and is found by the next daemon', async () => {
    const host = join(daemon.dir, 'host');
    mkdirSync(join(host, 'conf'), { recursive: true });
    writeFileSync(join(host, 'conf/app.ini'), 'one');
    const main = steady('main', {
      env: [{ name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      volumeMounts: [
        { name: 'cache', mountPath: '/whole' },
        { name: 'cache', mountPath: '/part', subPath: 'a/b' },
        { name: 'cache', mountPath: '/mine', subPathExpr: 'of/$(WHO)', readOnly: true },
        { name: 'memory', mountPath: '/memory', subPath: 'm' },
        { name: 'host', mountPath: '/etc/app.ini', subPath: 'conf/app.ini' },
        { name: 'info', mountPath: '/labels', subPath: 'labels' },
      ],
    });
    const volumes = [
      { name: 'cache', emptyDir: {} },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
      { name: 'host', hostPath: { path: host } },
      { name: 'info', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
    ];
    const of = (version: string) => {
      const whole = manifest('parts', [main], { uid: '7d1c0f3e-0000-4000-8000-0000000000a1', spec: { volumes } });
      return { ...whole, metadata: { ...whole.metadata, labels: { version } } };
    };
    daemon.put('parts.yaml', of('one'));
    const uid = await ready('parts');
    const sh = async (command: string) => exec(lab, await idOf('parts'), command);
    expect((await sh('touch /part/x && ls /whole/a/b')).out).toBe('x');
    expect(statSync(join(daemon.rootDir, 'pods', uid, 'volumes/kubernetes.io~empty-dir/cache/a/b')).mode & 0o7777).toBe(0o777);
    expect((await sh('ls -d /whole/of/parts*')).out).toMatch(/^\/whole\/of\/parts/);
    expect((await sh('touch /mine/x')).err).toContain('Read-only file system');
    expect((await sh('grep " /memory " /proc/mounts')).out).toMatch(/^tmpfs/);
    expect((await sh('cat /etc/app.ini /labels')).out).toBe('oneversion="one"');
    expect(bound(uid)).toHaveLength(5);

    // What is shown stays what it was: a file that was replaced, and labels that changed, show at the next start (trap 54).
    unlinkSync(join(host, 'conf/app.ini'));
    writeFileSync(join(host, 'conf/app.ini'), 'two');
    daemon.put('parts.yaml', of('two'));
    const file = join(daemon.rootDir, 'pods', uid, 'volumes/kubernetes.io~downward-api/info/labels');
    await daemon.wait('the volume to follow', () => readFileSync(file, 'utf8') === 'version="two"', { timeoutMs: 60_000 });
    expect((await sh('cat /etc/app.ini /labels')).out).toBe('oneversion="one"');
    expect(await daemon.end('SIGKILL')).toBe(null);
    await daemon.start();
    await ready('parts');
    const [before] = await containers(lab, 'parts');
    await exec(lab, await idOf('parts'), 'kill -TERM 1');
    await daemon.wait(
      'another container to run',
      async () => (await containers(lab, 'parts')).some((c) => c.running && c.id !== before?.id),
      { timeoutMs: 120_000 },
    );
    await daemon.wait('it to be ready to run commands', async () => (await sh('cat /etc/app.ini /labels')).out === 'twoversion="two"', {
      timeoutMs: 60_000,
    });
    expect(bound(uid)).toHaveLength(5);
    await gone('parts', uid);
    expect(readdirSync(join(host, 'conf'))).toEqual(['app.ini']);
  });

  it.each([
    ['a link to /etc', '/etc', 'out'],
    ['a file behind a link to /', '/', 'out/etc/passwd'],
    ['a link with ..', '../outside', 'out'],
  ])('is refused where it is %s, without a word of where it leads to, and given when that is over', async (what, target, subPath) => {
    const name = `escape-${what.replaceAll(/[^a-z]+/g, '')}`;
    const host = join(daemon.dir, name);
    mkdirSync(join(host, 'volume'), { recursive: true });
    mkdirSync(join(host, 'outside'));
    symlinkSync(target, join(host, 'volume/out'));
    const main = steady('main', { volumeMounts: [{ name: 'data', mountPath: '/data', subPath }] });
    const volumes = [{ name: 'data', hostPath: { path: join(host, 'volume') } }];
    daemon.put(`${name}.yaml`, manifest(name, [main], { spec: { volumes } }));
    expect(await refused(name)).toBe('failed to prepare subPath for volumeMount "data" of container "main"');
    expect(await containers(lab, name)).toEqual([]);
    unlinkSync(join(host, 'volume/out'));
    const uid = await ready(name);
    expect(bound(uid)).toHaveLength(1);
    await gone(name, uid);
  });

  it('never leads out while another container swaps what it names for links', async () => {
    // The writer is there first, so that the reader is made again and again in the middle of it.
    const swap = 'cd /v; mkdir -p d; trap "exit 0" TERM; while :; do mv d e; ln -s /etc d; rm d; mv e d; done';
    const writer = { ...steady('writer', { volumeMounts: [{ name: 'v', mountPath: '/v' }] }), command: ['/bin/sh', '-c', swap] };
    const check = 'if [ -e /part/passwd ]; then echo out > /whole/out; fi; echo run >> /whole/runs; exit 1';
    const reader = {
      ...steady('reader', {
        volumeMounts: [
          { name: 'v', mountPath: '/part', subPath: 'd' },
          { name: 'v', mountPath: '/whole' },
        ],
      }),
      command: ['/bin/sh', '-c', check],
    };
    daemon.put('swap.yaml', manifest('swap', [writer, reader], { spec: { volumes: [{ name: 'v', emptyDir: {} }] } }));
    const pod = await daemon.podWhere('swap', 'the pod to be there', () => true, 60_000);
    const { uid } = pod.metadata;
    const dir = join(daemon.rootDir, 'pods', uid, 'volumes/kubernetes.io~empty-dir/v');
    const runs = () => (existsSync(join(dir, 'runs')) ? readFileSync(join(dir, 'runs'), 'utf8').split('\n').length - 1 : 0);
    await daemon.wait('the reader to have run twice', () => runs() >= 2, { timeoutMs: 240_000 });
    expect(existsSync(join(dir, 'out'))).toBe(false);
    await gone('swap', uid);
  });
});
