/** Volumes on a real containerd and a real kernel: shared, in memory, of the host, of the pod's own fields; nothing stays mounted. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseMountinfo } from '../../../src/machines/host/mountinfo.ts';
import type { Daemon } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { containers, exec, idOf } from '../runtime.ts';

let lab: Containerd;
let daemon: Daemon;

onContainerd((made) => ({ lab, daemon } = made), { left: () => mounted() });

/** Mount points below the daemon's root directory, as the kernel has them; of one pod, or of all. */
function mounted(uid = ''): string[] {
  return parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map((m) => m.path)
    .filter((p) => p.startsWith(`${daemon.dir}/`) && p.includes(uid));
}
async function ready(name: string): Promise<string> {
  const pod = await daemon.podWhere(name, `${name} ready`, (p) => p.status.containerStatuses?.every((c) => c.ready) === true, 60_000);
  return pod.metadata.uid;
}
/** Takes the manifest away and waits until nothing of the pod is left on disk. */
async function gone(name: string, uid: string): Promise<void> {
  daemon.remove(`${name}.yaml`);
  await daemon.wait(`the directory of ${name} to go`, () => !existsSync(join(daemon.rootDir, 'pods', uid)), { timeoutMs: 60_000 });
}

// Pods of their own: these wait side by side.
describe.concurrent('emptyDir', () => {
  it('is shared by the containers of a pod, outlives a restart of one, and goes with the pod', async () => {
    const at = { volumeMounts: [{ name: 'shared', mountPath: '/shared' }] };
    const writer = sh(
      'writer',
      'date >> /shared/starts; trap "exit 0" TERM; while [ ! -e /shared/end ]; do sleep 0.1; done; rm /shared/end; exit 1',
      at,
    );
    const reader = steady('reader', { volumeMounts: [{ name: 'shared', mountPath: '/data', readOnly: true }] });
    daemon.put('shared.yaml', manifest('shared', [writer, reader], { spec: { volumes: [{ name: 'shared', emptyDir: {} }] } }));
    const uid = await ready('shared');
    expect(statSync(join(daemon.rootDir, 'pods', uid, 'volumes/kubernetes.io~empty-dir/shared')).mode & 0o7777).toBe(0o777);
    const starts = async () => (await exec(lab, await idOf(lab, 'shared', 'reader'), 'wc -l < /data/starts')).out;
    await daemon.wait('the writer to have written', async () => (await starts()) === '1');
    expect((await exec(lab, await idOf(lab, 'shared', 'reader'), 'touch /data/x')).err).toContain('Read-only file system');
    await exec(lab, await idOf(lab, 'shared', 'writer'), 'echo kept > /shared/kept; touch /shared/end');
    await daemon.wait('the writer to have started again', async () => (await starts()) === '2', { timeoutMs: 60_000 });
    expect((await exec(lab, await idOf(lab, 'shared', 'reader'), 'cat /data/kept')).out).toBe('kept');
    await gone('shared', uid);
  });

  it('gives a container variables from a file that another wrote, and makes it wait while there is none', async () => {
    const at = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
    const from = (key: string, optional = false) => ({ fileKeyRef: { volumeName: 'data', path: 'app.env', key, optional } });
    const env = [
      { name: 'ADDRESS', valueFrom: from('ADDRESS') },
      { name: 'NONE', valueFrom: from('NONE', true) },
      { name: 'URL', value: 'http://$(ADDRESS)/' },
    ];
    const spec = { volumes: [{ name: 'data', emptyDir: {} }] };
    daemon.put('envfile.yaml', manifest('envfile', [steady('writer', at), steady('main', { env })], { spec }));
    type Statuses = { status: { containerStatuses?: { name: string; ready: boolean; state: { waiting?: { reason?: string } } }[] } };
    const waits = (p: Statuses) => {
      const [writer, main] = ['writer', 'main'].map((name) => p.status.containerStatuses?.find((c) => c.name === name));
      return writer?.ready === true && main?.state.waiting?.reason === 'CreateContainerConfigError';
    };
    const waiting = await daemon.podWhere('envfile', 'envfile to wait for its file', waits, 60_000);
    const said = waiting.status.containerStatuses?.find((c) => c.name === 'main')?.state.waiting?.message;
    expect(said).toContain("couldn't parse env file: there is no file");
    // What a link says of the node is nobody's variable.
    const writer = await idOf(lab, 'envfile', 'writer');
    await exec(lab, writer, 'ln -s /etc/passwd /data/app.env');
    await daemon.podWhere(
      'envfile',
      'envfile to say that its file leads out',
      (p) => /leads out of the volume/.test(p.status.containerStatuses?.find((c) => c.name === 'main')?.state.waiting?.message ?? ''),
      60_000,
    );
    await exec(lab, writer, `printf "# ours\\nADDRESS='a.example:80' # and the port\\n" > /data/new && mv /data/new /data/app.env`);
    const uid = await ready('envfile');
    expect((await exec(lab, await idOf(lab, 'envfile'), 'echo "$URL"; env | grep -c NONE')).out).toBe('http://a.example:80/\n0');
    await gone('envfile', uid);
  });

  it('in memory is a tmpfs of the size asked for, and its group may write it', async () => {
    const main = steady('main', {
      volumeMounts: [{ name: 'fast', mountPath: '/fast' }],
      securityContext: { runAsUser: 1234, runAsGroup: 1234 },
    });
    const spec = { volumes: [{ name: 'fast', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }], securityContext: { fsGroup: 4321 } };
    daemon.put('memory.yaml', manifest('memory', [main], { spec }));
    const uid = await ready('memory');
    const id = await idOf(lab, 'memory');
    expect((await exec(lab, id, 'grep " /fast " /proc/mounts')).out).toMatch(/^tmpfs \/fast tmpfs .*size=1024k/);
    expect((await exec(lab, id, 'touch /fast/mine && stat -c %g /fast/mine')).out).toBe('4321');
    expect((await exec(lab, id, 'dd if=/dev/zero of=/fast/big bs=64k count=32')).err).toContain('No space left');
    expect(mounted(uid)).toEqual([join(daemon.rootDir, 'pods', uid, 'volumes/kubernetes.io~empty-dir/fast')]);
    await gone('memory', uid);
    expect(mounted(uid)).toEqual([]);
  });
});

describe.concurrent('hostPath', () => {
  it('of every type: made where it may be, checked where it must be', async () => {
    const host = join(daemon.dir, 'host');
    mkdirSync(join(host, 'dir'), { recursive: true });
    writeFileSync(join(host, 'file'), 'from the host');
    const socket = createServer().listen(join(host, 'socket'));
    try {
      const types = { dir: 'Directory', file: 'File', socket: 'Socket', 'new/dir': 'DirectoryOrCreate', made: 'FileOrCreate', free: '' };
      const volumes: { name: string; hostPath: { path: string; type: string } }[] = Object.entries(types).map(([path, type], i) => ({
        name: `v${i}`,
        hostPath: { path: join(host, path), type },
      }));
      volumes.push({ name: 'zero', hostPath: { path: '/dev/zero', type: 'CharDevice' } });
      const volumeMounts = volumes.map((v) => ({ name: v.name, mountPath: `/host/${v.name}` }));
      mkdirSync(join(host, 'free'));
      daemon.put('types.yaml', manifest('types', [steady('main', { volumeMounts })], { spec: { volumes } }));
      const uid = await ready('types');
      expect(statSync(join(host, 'new/dir')).mode & 0o7777).toBe(0o755);
      expect(statSync(join(host, 'made')).mode & 0o7777).toBe(0o644);
      expect(
        (
          await exec(
            lab,
            await idOf(lab, 'types'),
            'cat /host/v1; test -S /host/v2 && test -c /host/zero && echo " fine"; touch /host/v3/x',
          )
        ).out,
      ).toBe('from the host fine');
      expect(existsSync(join(host, 'new/dir/x'))).toBe(true);
      await gone('types', uid);
      expect(readdirSync(host).sort()).toEqual(['dir', 'file', 'free', 'made', 'new', 'socket']);
    } finally {
      await new Promise((done) => socket.close(done));
    }
  });

  it('of the wrong type keeps the pod waiting with the reason, and lets it run once it is right', async () => {
    const path = join(daemon.dir, 'late');
    const main = steady('main', { volumeMounts: [{ name: 'late', mountPath: '/late' }] });
    daemon.put('late.yaml', manifest('late', [main], { spec: { volumes: [{ name: 'late', hostPath: { path, type: 'Directory' } }] } }));
    await daemon.wait('the event', async () => (await daemon.events('late')).some((e) => e.reason === 'FailedMount'));
    expect((await daemon.events('late')).find((e) => e.reason === 'FailedMount')?.message).toBe(
      `MountVolume.SetUp failed for volume "late" : hostPath type check failed: ${path} is not a directory`,
    );
    expect(await containers(lab, 'late')).toEqual([]);
    mkdirSync(path);
    await gone('late', await ready('late'));
    expect(existsSync(path)).toBe(true);
  });
});

it.concurrent('downwardAPI shows fields of the pod and of its containers as read-only files behind one link', async () => {
  const items = [
    { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
    { path: 'sub/memory', mode: 0o400, resourceFieldRef: { containerName: 'main', resource: 'limits.memory', divisor: '1Mi' } },
  ];
  const main = steady('main', { volumeMounts: [{ name: 'info', mountPath: '/info' }], resources: { limits: { memory: '64Mi' } } });
  const pod = manifest('info', [main], { spec: { volumes: [{ name: 'info', downwardAPI: { items } }] } });
  pod.metadata.labels = { app: 'web', tier: 'front' };
  daemon.put('info.yaml', pod);
  const uid = await ready('info');
  const id = await idOf(lab, 'info');
  expect((await exec(lab, id, 'cat /info/labels; echo; cat /info/sub/memory')).out).toBe('app="web"\ntier="front"\n64');
  expect((await exec(lab, id, 'readlink /info/labels; readlink /info/sub; stat -Lc %a /info/labels /info/sub/memory')).out).toBe(
    '..data/labels\n..data/sub\n644\n400',
  );
  expect((await exec(lab, id, 'echo x > /info/labels')).err).toContain('Read-only file system');
  expect((await exec(lab, id, 'grep -c " /info tmpfs " /proc/mounts')).out).toBe('1');
  await gone('info', uid);
  expect(mounted(uid)).toEqual([]);
});

it.concurrent('projected puts what several sources say into one folder, for the group of the pod', async () => {
  const sources = [
    { downwardAPI: { items: [{ path: 'pod/name', fieldRef: { fieldPath: 'metadata.name' } }] } },
    { downwardAPI: { items: [{ path: 'cpu', mode: 0o400, resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } }] } },
  ];
  const main = steady('main', {
    volumeMounts: [
      { name: 'all', mountPath: '/all' },
      { name: 'all', mountPath: '/cpu', subPath: 'cpu' },
    ],
    resources: { limits: { cpu: '2' } },
    securityContext: { runAsUser: 1234 },
  });
  const spec = { volumes: [{ name: 'all', projected: { defaultMode: 0o444, sources } }], securityContext: { fsGroup: 4321 } };
  daemon.put('projected.yaml', manifest('projected', [main], { spec }));
  const uid = await ready('projected');
  const id = await idOf(lab, 'projected');
  expect((await exec(lab, id, 'cat /all/pod/name; echo; cat /all/cpu; echo; cat /cpu')).out).toBe('projected-e2e\n2\n2');
  expect((await exec(lab, id, 'stat -L -c "%a %g" /all/pod/name /all/cpu')).out).toBe('444 4321\n440 4321');
  expect((await exec(lab, id, 'touch /all/x')).err).not.toBe('');
  await gone('projected', uid);
  expect(mounted(uid)).toEqual([]);
});

describe('a daemon that is killed', () => {
  const spec = {
    volumes: [
      { name: 'a', emptyDir: { medium: 'Memory' } },
      { name: 'b', emptyDir: {} },
    ],
  };
  const volumeMounts = [
    { name: 'a', mountPath: '/a' },
    { name: 'b', mountPath: '/b' },
  ];

  it('finds volumes again, keeps what is in them, and takes them down when their pod went meanwhile', async () => {
    daemon.put('stays.yaml', manifest('stays', [steady('main', { volumeMounts })], { spec }));
    daemon.put('goes.yaml', manifest('goes', [steady('main', { volumeMounts })], { spec }));
    const [stays, goes] = [await ready('stays'), await ready('goes')];
    const id = await idOf(lab, 'stays');
    await exec(lab, id, 'echo kept | tee /a/x > /b/x');
    await daemon.end('SIGKILL');
    daemon.remove('goes.yaml');
    await daemon.start();
    await daemon.wait('the directory of goes to go', () => !existsSync(join(daemon.rootDir, 'pods', goes)), { timeoutMs: 60_000 });
    expect(await idOf(lab, 'stays')).toBe(id);
    expect((await exec(lab, id, 'cat /a/x /b/x')).out).toBe('kept\nkept');
    expect(mounted()).toHaveLength(1);
    await gone('stays', stays);
    expect(mounted()).toEqual([]);
  });

  it('in the middle of mounts of many pods leaves nothing behind', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `many-${i}`);
    for (const name of names) daemon.put(`${name}.yaml`, manifest(name, [steady('main', { volumeMounts })], { spec }));
    await daemon.wait('something to be mounted', () => mounted().length > 0, { everyMs: 5 });
    await daemon.end('SIGKILL');
    for (const name of names.slice(3)) daemon.remove(`${name}.yaml`);
    await daemon.start();
    const uids = await Promise.all(names.slice(0, 3).map(ready));
    for (const [i, uid] of uids.entries()) {
      daemon.remove(`many-${i}.yaml`);
      expect(uid).not.toBe('');
    }
    await daemon.wait('nothing to be mounted', () => mounted().length === 0, { timeoutMs: 60_000 });
    await daemon.wait('no directory to be left', () => readdirSync(join(daemon.rootDir, 'pods')).length === 0, { timeoutMs: 60_000 });
  });
});
