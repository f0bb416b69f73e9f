/** A control plane of programs that only answer: how they are found, started, watched and ended, whoever dies. */
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalPlane, type LocalPlaneOptions, startLocalPlane } from '../../src/boot/plane/local.ts';
import { PROGRAMS } from '../../src/plane/messages.ts';
import { endPrograms, startProgram } from '../process.ts';
import { type FakeAssets, fakeAssets } from './fakeAssets.ts';

let assets: FakeAssets;
let home: string;
const said: string[] = [];
const on = (dir = assets.dir) => ({
  env: { KUBEBUILDER_ASSETS: dir, HOME: home },
  platform: process.platform,
  arch: process.arch,
  folders: [],
});
const start = (o: Partial<LocalPlaneOptions> = {}): Promise<LocalPlane> => {
  said.length = 0;
  const own = { data: '', port: 0, say: (text: string) => void said.push(text), signal: new AbortController().signal };
  return startLocalPlane({ ...own, on: on(), ...o });
};
/** Whether a process of that id runs; one that nobody waits for does not. */
const runs = (pid: number | undefined): boolean => {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};
const pidsOf = (plane: LocalPlane): (number | undefined)[] => ['warden', ...PROGRAMS].map((name) => plane.programs.program(name).pid);

beforeAll(() => {
  assets = fakeAssets();
  home = mkdtempSync(join(tmpdir(), 'actorlet-home-'));
});
afterAll(() => {
  endPrograms();
  assets[Symbol.dispose]();
  rmSync(home, { recursive: true, force: true });
});

describe('a control plane of this process', () => {
  it('names what it found, runs each program, and leaves nothing', async () => {
    const plane = await start();
    expect(said.join('')).toContain(`etcd 3.5.30 (${assets.dir}/etcd), kube-apiserver 1.36.2`);
    await expect.poll(() => pidsOf(plane).every(runs)).toBe(true);
    expect(statSync(plane.kubeconfig).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(plane.logs, 'etcd.log'), 'utf8')).toBe('');
    const pids = pidsOf(plane);
    await plane.stop();
    expect(pids.filter(runs)).toEqual([]);
    expect(existsSync(plane.dir)).toBe(false);
  });

  it('starts each program again that is killed, and says so', async () => {
    const plane = await start();
    await expect.poll(() => pidsOf(plane).every(runs)).toBe(true);
    for (const name of ['warden', ...PROGRAMS]) {
      const before = pidsOf(plane);
      const killed = plane.programs.program(name).pid ?? 0;
      process.kill(killed, 'SIGKILL');
      await expect.poll(() => plane.programs.program(name).pid ?? killed).not.toBe(killed);
      await expect.poll(() => said.join('')).toContain(`${name} was killed by SIGKILL; it starts again (log: ${plane.logs}/${name}.log)`);
      await expect.poll(() => said.join('')).toContain(`${name} runs again`);
      expect(pidsOf(plane).filter((pid, i) => pid !== before[i])).toHaveLength(1);
    }
    await plane.stop();
  });

  it('says with which words a program ended that starts no more, and goes on when it does', async () => {
    const plane = await start();
    // It has begun: else it would not outlast its first start.
    await expect.poll(() => commandLines().some((line) => line.includes(`${assets.dir}/kube-scheduler.wait`))).toBe(true);
    assets.fails('kube-scheduler', 'E1129 07:14:56.1 77 run.go:72] "command failed" err="no space left on device"\nusage: ...');
    process.kill(plane.programs.program('kube-scheduler').pid ?? 0, 'SIGKILL');
    await expect
      .poll(() => said.join(''))
      .toContain('kube-scheduler ended with exit code 1: "command failed" err="no space left on device"');
    assets.fails('kube-scheduler', null);
    await expect.poll(() => plane.programs.program('kube-scheduler').alive).toBe(true);
    await plane.stop();
  });

  it('does not start where the API server does not, and says why', async () => {
    assets.fails('kube-apiserver', 'Error: unknown flag: --x');
    await expect(start()).rejects.toThrow('kube-apiserver ended with exit code 1: Error: unknown flag: --x');
    assets.fails('kube-apiserver', null);
  });

  it.each([0, 100, 250])('ends everything when it is interrupted after %d ms', async (ms) => {
    const interrupt = new AbortController();
    const starting = start({ signal: interrupt.signal });
    setTimeout(() => interrupt.abort(new Error('interrupted')), ms);
    const plane = await starting.catch((error: Error) => error);
    // It was quicker.
    if (!(plane instanceof Error)) await plane.stop();
    else expect(plane.message).toBe('interrupted');
    await expect.poll(() => commandLines().filter((line) => line.includes(assets.dir))).toEqual([]);
  });
});

/** Of all processes, as far as they can be seen. */
const commandLines = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        // It has ended meanwhile.
        return '';
      }
    });

describe('a starter that is killed', () => {
  async function started(data = '') {
    const starter = startProgram(process.execPath, ['packages/fleet/test/plane/starter.ts', assets.dir, data]);
    await expect.poll(() => starter.text()).toContain('\n');
    return { starter, ...(JSON.parse(starter.text()) as { dir: string; pids: number[] }) };
  }

  it('leaves no program and no temporary folder', async () => {
    const { starter, dir, pids } = await started();
    starter.child.kill('SIGKILL');
    await expect.poll(() => pids.filter(runs)).toEqual([]);
    await expect.poll(() => existsSync(dir)).toBe(false);
  });

  it('leaves to the next start what its warden could not end', async () => {
    const data = join(home, 'orphans');
    const { starter, pids } = await started(data);
    // The warden goes first, and none starts any more.
    starter.child.kill('SIGSTOP');
    process.kill(pids[0] ?? 0, 'SIGKILL');
    starter.child.kill('SIGKILL');
    await starter.ended;
    expect(pids.slice(1).filter(runs)).toHaveLength(PROGRAMS.length);
    const plane = await start({ data });
    expect(pids.filter(runs)).toEqual([]);
    await plane.stop();
  });
});

/** What a process of another network namespace says that opens a folder, and closes it again. */
async function openElsewhere(data: string): Promise<string> {
  const opener = startProgram('unshare', ['--map-root-user', '--net', process.execPath, 'packages/fleet/test/plane/opener.ts', data]);
  await opener.ended;
  return opener.text();
}

describe('a temporary folder', () => {
  const aged = (dir: string): void => utimesSync(dir, new Date(0), new Date(0));

  it('stays while its control plane lives, whichever network namespace another one is started in', async () => {
    const plane = await start();
    aged(plane.dir);
    expect(await openElsewhere('')).toBe('opened\n');
    await (await start()).stop();
    expect(existsSync(plane.kubeconfig)).toBe(true);
    await plane.stop();
  });

  it('goes with the next start where its process was killed together with its warden', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'actorlet-plane-'));
    // A socket whose process ended.
    const killed = startProgram(process.execPath, [
      '-e',
      `require('net').createServer().listen('${dir}/claim.0', () => process.kill(process.pid, 9))`,
    ]);
    await killed.ended;
    expect(readdirSync(dir)).toEqual(['claim.0']);
    aged(dir);
    await (await start()).stop();
    expect(existsSync(dir)).toBe(false);
  });
});

describe('a named folder', () => {
  it('is gone on with: authority, kubeconfig and port stay', async () => {
    const data = join(home, 'stays');
    const first = await start({ data });
    const authority = readFileSync(first.ca.certFile, 'utf8');
    await first.stop();
    expect(statSync(data).mode & 0o777).toBe(0o700);
    const second = await start({ data });
    expect([second.url, readFileSync(second.ca.certFile, 'utf8')]).toEqual([first.url, authority]);
    await second.stop();
  });

  it('is refused while another control plane runs in it', async () => {
    const data = join(home, 'twice');
    const first = await start({ data });
    await expect(start({ data: `${data}/../twice` })).rejects.toThrow('another control plane of this machine runs in it');
    await first.stop();
    await (await start({ data })).stop();
  });

  it('is refused from another network namespace, too', async () => {
    const data = join(home, 'far');
    const first = await start({ data });
    expect(await openElsewhere(data)).toContain('another control plane of this machine runs in it');
    await first.stop();
    expect(await openElsewhere(data)).toBe('opened\n');
    expect(readdirSync(data).filter((name) => name.startsWith('claim.'))).toEqual([]);
  });

  it('is refused with programs of another release', async () => {
    const data = join(home, 'version');
    await (await start({ data })).stop();
    using newer = fakeAssets({ kubernetes: '1.37.0' });
    await expect(start({ data, on: on(newer.dir) })).rejects.toThrow(
      `--data ${data} was written by kube-apiserver 1.36.2, and the one found here is 1.37.0 (${newer.dir}/kube-apiserver)`,
    );
    using patch = fakeAssets({ kubernetes: '1.36.3' });
    await (await start({ data, on: on(patch.dir) })).stop();
    using etcd = fakeAssets({ etcd: '3.6.1' });
    await expect(start({ data, on: on(etcd.dir) })).rejects.toThrow('was written by etcd 3.5.30, and the one found here is 3.6.1');
  });

  it.each<[string, (dir: string) => void, string]>([
    ['other files', (dir) => writeFileSync(join(dir, 'thesis.tex'), ''), 'it holds other files'],
    ['a record that is none', (dir) => writeFileSync(join(dir, 'plane.json'), '{'), 'plane.json in it is damaged'],
    ['a record of another format', (dir) => writeFileSync(join(dir, 'plane.json'), '{"format":2}'), 'of another version of this program'],
    [
      'a record of ports that are none',
      (dir) => writeFileSync(join(dir, 'plane.json'), '{"format":1,"kubernetes":"1.36.2","etcd":"3.5.30","ports":{"etcd":1,"api":99999}}'),
      'lacks kubernetes, etcd or ports',
    ],
  ])('is refused where it has %s', async (what, make, why) => {
    const data = join(home, what);
    mkdirSync(data);
    make(data);
    await expect(start({ data })).rejects.toThrow(why);
  });

  it('is refused where it is a file', async () => {
    const data = join(home, 'file');
    writeFileSync(data, '');
    await expect(start({ data })).rejects.toThrow(`--data ${data} cannot be used as the folder of a control plane: EEXIST`);
  });

  it('gets another port where its own is taken meanwhile', async () => {
    const data = join(home, 'port');
    const first = await start({ data });
    await first.stop();
    const port = Number(new URL(first.url).port);
    const taker = createServer().listen(port, '127.0.0.1');
    await once(taker, 'listening');
    const second = await start({ data });
    expect(said.join('')).toContain(`port ${port} of the last time is taken`);
    await second.stop();
    await expect(start({ port })).rejects.toThrow(`port ${port} of 127.0.0.1 is taken by another program: choose another --api-port`);
    taker.close();
  });
});

describe('programs', () => {
  it('that are not there are told of in one sentence, with the commands that fetch them', async () => {
    using none = fakeAssets({ names: ['kube-scheduler'] });
    const why = await start({ on: on(none.dir) }).catch((error: Error) => error.message);
    expect(why).toMatch(/^--api local needs etcd and kube-apiserver, and they are neither in KUBEBUILDER_ASSETS \(/);
    expect(why).toContain('go run sigs.k8s.io/controller-runtime/tools/setup-envtest@latest use 1.36.x');
    expect(why).toContain('/kube-controller-manager https://dl.k8s.io/');
    await expect(start({ on: on('/nowhere') })).rejects.toThrow('KUBEBUILDER_ASSETS names /nowhere, which is no folder');
    // A file where a folder is expected, and a folder that is not there, are passed over.
    const odd = { ...on(none.dir), folders: [join(none.dir, 'kube-scheduler'), '/nowhere', assets.dir] };
    await (await start({ on: odd })).stop();
  });

  it('are found by a relative path', async () => {
    const plane = await start({ on: on(relative(process.cwd(), assets.dir)) });
    await plane.stop();
  });

  it('of envtest alone are enough, and what is missing is said', async () => {
    using two = fakeAssets({ names: ['etcd', 'kube-apiserver'] });
    const plane = await start({ on: on(two.dir) });
    expect(said.join('')).toContain('without kube-controller-manager no Deployment, Job or garbage collection works');
    expect(said.join('')).toContain('without kube-scheduler pods stay Pending unless they name their node');
    await plane.accountsReady();
    await plane.stop();
  });

  it('are found in the folder of envtest, the newest first', async () => {
    using older = fakeAssets({ kubernetes: '1.9.3' });
    using newer = fakeAssets({ kubernetes: '1.36.0' });
    const k8s = join(home, '.local/share/kubebuilder-envtest/k8s');
    mkdirSync(k8s, { recursive: true });
    const arch = process.arch === 'x64' ? 'amd64' : process.arch;
    symlinkSync(older.dir, join(k8s, `1.9.3-linux-${arch}`));
    symlinkSync(newer.dir, join(k8s, `1.36.0-linux-${arch}`));
    symlinkSync('/nowhere', join(k8s, '1.40.0-linux-other'));
    const env = { HOME: home, PATH: '/nowhere' };
    const plane = await start({ on: { env, platform: process.platform, arch: process.arch } });
    expect(said.join('')).toContain('kube-apiserver 1.36.0');
    await plane.stop();
  });

  it.each<[string, Buffer | string, number, RegExp]>([
    [
      'of another architecture',
      elf(process.arch === 'arm64' ? 62 : 183),
      0o755,
      /etcd is a program for (?:arm64|amd64), and this machine is/,
    ],
    ['of an unknown architecture', elf(9_999), 0o755, /etcd is a program for another architecture \(ELF machine 9999\)/],
    ['of Windows', 'MZ and so on and on and on', 0o755, /etcd is a program for Windows/],
    ['that are no programs', 'an error page of a download site', 0o755, /etcd is no program/],
    ['that are empty', '', 0o755, /etcd is no program/],
    ['that are something else', `#!${process.execPath}\nconsole.log('hello')`, 0o755, /etcd is no etcd: its --version says "hello\\n"/],
    ['that are another one', '#!/bin/sh\necho Kubernetes v1.36.2', 0o755, /etcd is no etcd: its --version says "Kubernetes v1.36.2\\n"/],
    ['that fail', '#!/bin/sh\n# nothing\nexit 3', 0o755, /etcd --version failed, .* as etcd: it ended with exit code 3/],
  ])('%s are refused by name', async (_, content, mode, why) => {
    using wrong = fakeAssets();
    writeFileSync(join(wrong.dir, 'etcd'), content, { mode });
    await expect(start({ on: on(wrong.dir) })).rejects.toThrow(why);
  });

  it('that hang are ended with all that they started', async () => {
    using wrong = fakeAssets();
    const sleeper = join(wrong.dir, 'sleeper');
    writeFileSync(join(wrong.dir, 'kube-scheduler'), `#!/bin/sh\nsleep 3333 & echo $! >'${sleeper}'; wait`, { mode: 0o755 });
    writeFileSync(join(wrong.dir, 'etcd'), `#!/bin/sh\nuntil [ -s '${sleeper}' ]; do sleep 0.05; done; exit 3`, { mode: 0o755 });
    await expect(start({ on: on(wrong.dir) })).rejects.toThrow('etcd --version failed');
    await expect.poll(() => runs(Number(readFileSync(sleeper, 'utf8')))).toBe(false);
  });
});

function elf(machine: number): Buffer {
  const head = Buffer.alloc(64);
  head.write('\x7fELF\x02\x01\x01', 'latin1');
  head.writeUInt16LE(machine, 18);
  return head;
}
