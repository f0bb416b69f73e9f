/** Parts of volumes on a real containerd and a real kernel: shown to containers, kept inside, taken away with the pod (trap 54, 60). */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { parseMountinfo } from '../../../src/machines/host/mountinfo.ts';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { IMAGE, manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec, idOf } from '../runtime.ts';

/** Each waits for single things within bounds of their own. */
vi.setConfig({ testTimeout: 400_000 });

let lab: Containerd;
let daemon: Daemon;

onContainerd((made) => ({ lab, daemon } = made), { left: () => mounted() });

/** Mount points below the daemon's root directory, as the kernel has them. */
function mounted(): string[] {
  return parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map((m) => m.path)
    .filter((p) => p.startsWith(`${daemon.dir}/`));
}
const bound = (uid: string) => mounted().filter((p) => p.includes(`/${uid}/volume-subpaths/`));
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
    const sh = async (command: string) => exec(lab, await idOf(lab, 'parts'), command);
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
    await exec(lab, await idOf(lab, 'parts'), 'kill -TERM 1');
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

  it.concurrent.each([
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

  it.concurrent('never leads out while another container swaps what it names for links', async () => {
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

/** What the one container of a pod came to: it runs, or waits for a reason that is not just its beginning. */
async function outcome(name: string): Promise<{ ready: boolean; reason: string; message: string; uid: string }> {
  const found = await daemon.podWhere(
    name,
    `${name} to run or to be refused`,
    (p) => {
      const [c] = p.status.containerStatuses ?? [];
      return c?.ready === true || /Err|BackOff/.test(c?.state.waiting?.reason ?? '');
    },
    120_000,
  );
  const [c] = found.status.containerStatuses ?? [];
  const { reason = '', message = '' } = c?.state.waiting ?? {};
  return { ready: c?.ready === true, reason, message, uid: found.metadata.uid };
}

describe.concurrent('what not every runtime has', () => {
  it('recursive read-only mounts: made where it can, left out where that is allowed, else refused in so many words', async () => {
    const pod = (recursiveReadOnly: string) => {
      const main = steady('main', { volumeMounts: [{ name: 'v', mountPath: '/v', readOnly: true, recursiveReadOnly }] });
      return manifest(`rro-${recursiveReadOnly.toLowerCase()}`, [main], { spec: { volumes: [{ name: 'v', emptyDir: {} }] } });
    };
    daemon.put('rro-ifpossible.yaml', pod('IfPossible'));
    daemon.put('rro-enabled.yaml', pod('Enabled'));
    const possible = await outcome('rro-ifpossible');
    expect(possible).toMatchObject({ ready: true });
    expect((await exec(lab, await idOf(lab, 'rro-ifpossible'), 'touch /v/x')).err).toContain('Read-only file system');
    const enabled = await outcome('rro-enabled');
    if (!enabled.ready) {
      expect(enabled).toMatchObject({
        reason: 'CreateContainerConfigError',
        message:
          'failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, but it is not supported by the runtime',
      });
    }
    await gone('rro-ifpossible', possible.uid);
    await gone('rro-enabled', enabled.uid);
  });

  it('images as volumes: shown, or refused by the runtime in its own words; never anything else in their place', async () => {
    const main = steady('main', { volumeMounts: [{ name: 'image', mountPath: '/image' }] });
    const volumes = [{ name: 'image', image: { reference: IMAGE, pullPolicy: 'IfNotPresent' } }];
    daemon.put('image.yaml', manifest('image', [main], { spec: { volumes } }));
    const { ready: runs, reason, message, uid } = await outcome('image');
    if (runs) expect((await exec(lab, await idOf(lab, 'image'), 'ls /image/bin/busybox')).out).toBe('/image/bin/busybox');
    else {
      expect(['CreateContainerError', 'RunContainerError', 'CrashLoopBackOff']).toContain(reason);
      expect(message).not.toBe('');
    }
    await gone('image', uid);
  });

  it('an image that is not there and may not be pulled keeps the container waiting, as its own would', async () => {
    const main = steady('main', { volumeMounts: [{ name: 'image', mountPath: '/image' }] });
    const volumes = [{ name: 'image', image: { reference: 'actorlet.test/nowhere:1', pullPolicy: 'Never' } }];
    daemon.put('never.yaml', manifest('never', [main], { spec: { volumes } }));
    const waits = await outcome('never');
    expect(waits).toMatchObject({ ready: false, reason: 'ErrImageNeverPull' });
    expect(waits.message).toContain('actorlet.test/nowhere:1');
    await gone('never', waits.uid);
  });
});
