/** What the boot does to and with its process, against the real kernel (boot-and-node 10). */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { Heartbeat } from '../../../src/actors/supervision/watchdog.ts';
import { loadLibc } from '../../../src/boot/process/libc.ts';
import { acquireLock } from '../../../src/boot/process/lock.ts';
import { createNotify, watchdogIntervalMs } from '../../../src/boot/process/notify.ts';
import { setOomScore } from '../../../src/boot/process/oomScore.ts';
import { startWatchdog } from '../../../src/boot/process/watchdog/watchdog.ts';
import { COMPILED_ONCE } from '../../compiled.ts';
import { BLOCK, tempDir, until } from '../helpers.ts';
import { it } from '../inFolder.ts';

const BOOT = join(import.meta.dirname, '../../../src/boot/boot.ts');
const RUN = join(import.meta.dirname, '../../../src/boot/steps/run.ts');
const LOCK = join(import.meta.dirname, '../../../src/boot/process/lock.ts');
const LIBC = join(import.meta.dirname, '../../../src/boot/process/libc.ts');
const WATCHDOG = join(import.meta.dirname, '../../../src/boot/process/watchdog/watchdog.ts');
const HEARTBEAT = join(import.meta.dirname, '../../../src/actors/supervision/watchdog.ts');

/** A node process that runs one module text; killed when the scope ends. */
function child(
  program: string,
  ...flags: string[]
): AsyncDisposable & { process: ChildProcess; output(): string; code: Promise<number | null> } {
  const p = spawn(process.execPath, [...flags, '--input-type=module-typescript', '-e', program], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...COMPILED_ONCE },
  });
  let text = '';
  p.stdout.on('data', (d: Buffer) => (text += d.toString()));
  p.stderr.on('data', (d: Buffer) => (text += d.toString()));
  const code = new Promise<number | null>((resolve) => p.once('exit', resolve));
  return {
    process: p,
    output: () => text,
    code,
    async [Symbol.asyncDispose]() {
      p.kill('SIGKILL');
      await code;
    },
  };
}

describe('the lock file', () => {
  it('is waited for while another process holds it, without blocking this one (trap 14)', async ({ dir }) => {
    const path = join(dir.path, 'node.lock');
    await using holder = child(`
      const { acquireLock } = await import(${JSON.stringify(LOCK)});
      const { loadLibc } = await import(${JSON.stringify(LIBC)});
      await acquireLock(${JSON.stringify(path)}, { libc: loadLibc(), signal: new AbortController().signal, onWait() {} });
      console.log('held');
      setInterval(() => {}, 1000);
    `);
    await until('the other process holds the lock', () => holder.output().includes('held'));
    let waits = 0;
    let held = false;
    let ticks = 0;
    const timer = setInterval(() => ticks++, 5);
    const lock = acquireLock(path, { libc: loadLibc(), signal: new AbortController().signal, onWait: () => waits++ }).then((l) => {
      held = true;
      return l;
    });
    await until('timers run while waiting', () => ticks > 40);
    expect([waits, held]).toEqual([1, false]);
    holder.process.kill('SIGKILL');
    using _lock = await lock;
    clearInterval(timer);
    expect(held).toBe(true);
  });

  it('can be given up while waiting, and is freed when disposed', async ({ dir }) => {
    const path = join(dir.path, 'l');
    const libc = loadLibc();
    const first = await acquireLock(path, { libc, signal: new AbortController().signal, onWait: () => {} });
    const ending = new AbortController();
    const second = acquireLock(path, { libc, signal: ending.signal, onWait: () => ending.abort(new Error('SIGTERM')) });
    await expect(second).rejects.toThrow('SIGTERM');
    first[Symbol.dispose]();
    using _again = await acquireLock(path, { libc, signal: new AbortController().signal, onWait: () => expect.fail('the lock was free') });
  });

  it('calls back once when anybody opens the file (trap 15)', async ({ dir }) => {
    const path = join(dir.path, 'l');
    const reasons: string[] = [];
    using lock = await acquireLock(path, { libc: loadLibc(), signal: new AbortController().signal, onWait: () => {} });
    using _watch = lock.watchContention((reason) => reasons.push(reason));
    closeSync(openSync(path, 'r'));
    await until('contention is seen', () => reasons.length > 0);
    expect(reasons).toEqual([`somebody opened or deleted ${path}`]);
  });
});

describe('chores of the daemon', () => {
  it('that find no free descriptor are told once and tried again, and end nothing', async () => {
    await using daemon = child(
      `const { giveBackPages } = await import(${JSON.stringify(RUN)});
       const { loadLibc } = await import(${JSON.stringify(LIBC)});
       const libc = loadLibc();
       const log = { warn: ({ err }, text) => console.log(text, err) };
       const state = { log, ports: { clock: { monoMs: () => performance.now() } } };
       giveBackPages().run({ state, cleanup: { defer() {} } });
       libc.setNoFileLimit(3);
       setTimeout(() => console.log('lives'), 4_500);`,
      '--expose-gc',
    );
    await until('it has gone on', () => daemon.output().includes('lives'));
    expect(daemon.output().match(/a chore of the daemon failed.*EMFILE/g)).toHaveLength(1);
  });
});

describe('sd_notify', () => {
  it.each([
    ['a path', (dir: string) => join(dir, 'notify.sock')],
    ['an abstract name', (dir: string) => `@${dir}/notify`],
  ])('sends a datagram to %s', (_what, name) => {
    using dir = tempDir();
    const libc = loadLibc();
    const socket = name(dir.path);
    const receiver = libc.datagramSocket();
    try {
      libc.bindUnix(receiver, socket.replace(/^@/, '\0'));
      expect(createNotify({ NOTIFY_SOCKET: socket }, () => libc)('READY=1')).toBe(true);
      const buffer = new Uint8Array(64);
      expect(new TextDecoder().decode(buffer.subarray(0, libc.readNonblocking(receiver, buffer)))).toBe('READY=1');
      expect(libc.readNonblocking(receiver, buffer)).toBe(0);
    } finally {
      libc.close(receiver);
    }
  });

  it('does nothing without a socket and fails loudly when nobody listens', () => {
    expect(createNotify({}, () => expect.fail('no system call is needed'))('READY=1')).toBe(false);
    expect(() => createNotify({ NOTIFY_SOCKET: '/nowhere/notify' }, loadLibc)('READY=1')).toThrow(/ENOENT/);
  });

  it.each([
    [{}, undefined],
    [{ WATCHDOG_USEC: '0' }, undefined],
    [{ WATCHDOG_USEC: '30000000' }, 15_000],
    [{ WATCHDOG_USEC: '2000000', WATCHDOG_PID: '7' }, 1_000],
    [{ WATCHDOG_USEC: '2000000', WATCHDOG_PID: '8' }, undefined],
  ])('reads the watchdog from %j', (env, ms) => {
    expect(watchdogIntervalMs(env, 7)).toBe(ms);
  });

  it.each([{ WATCHDOG_USEC: 'soon' }, { WATCHDOG_USEC: '1000000', WATCHDOG_PID: 'me' }])('refuses %j', (env) => {
    expect(() => watchdogIntervalMs(env, 7)).toThrow(/is not a/);
  });
});

describe('the watchdog thread', () => {
  it('prints the path of the actor that holds the main thread and exits 70', async () => {
    await using stuck = child(`
      const { startWatchdog } = await import(${JSON.stringify(WATCHDOG)});
      const { Heartbeat } = await import(${JSON.stringify(HEARTBEAT)});
      const heartbeat = new Heartbeat();
      startWatchdog({ shared: heartbeat.shared, limitMs: 300 });
      setTimeout(() => { heartbeat.begin('node/pods/workers/web', performance.now()); for (;;); }, 200);
    `);
    expect(await stuck.code).toBe(70);
    expect(stuck.output()).toContain('running node/pods/workers/web; exiting with code 70, containers are left running');
  });

  it('is there before the lock file is taken and anything of a pod is read: a start that is stuck ends too', async ({ dir }) => {
    await using stuck = child(`
      const { boot, BOOT_STEPS, processIo } = await import(${JSON.stringify(BOOT)});
      const early = BOOT_STEPS.slice(0, BOOT_STEPS.findIndex((s) => s.name === 'take the lock file'));
      const argv = ['--root-dir=${dir.path}', '--enable-server=false', '--healthz-port=0', '--fail-swap-on=false'];
      const block = { name: 'block', run() { ${BLOCK} } };
      const env = { ...process.env, ACTORLET_STALL_LIMIT_MS: '600' };
      await boot(argv, env, { io: processIo(), wiring: {}, steps: [...early, block] });
    `);
    expect(await stuck.code).toBe(70);
    expect(stuck.output()).toContain('exiting with code 70, containers are left running');
  });

  it('leaves a process alone whose heartbeat is pulsed', async () => {
    await using busy = child(`
      const { startWatchdog } = await import(${JSON.stringify(WATCHDOG)});
      const { Heartbeat } = await import(${JSON.stringify(HEARTBEAT)});
      const heartbeat = new Heartbeat();
      using watch = startWatchdog({ shared: heartbeat.shared, limitMs: 400 });
      const pulse = setInterval(() => heartbeat.pulse(performance.now()), 20);
      setTimeout(() => { clearInterval(pulse); process.exit(3); }, 1200);
    `);
    expect(await busy.code).toBe(3);
  });
});

describe('the health port', () => {
  /** This process is watched as well: without a beat it would be ended. */
  function beating(shared: SharedArrayBuffer): Disposable {
    const seq = new Int32Array(shared, 0, 1);
    const timer = setInterval(() => Atomics.add(seq, 0, 1), 50);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }
  const ask = async (port: number, path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
    return `${answer.status} ${await answer.text()}`;
  };

  it('answers while the main thread is busy, and fails with its name once it is stuck', async () => {
    await using node = child(`
      const { writeSync } = await import('node:fs');
      const { startWatchdog } = await import(${JSON.stringify(WATCHDOG)});
      const { Heartbeat } = await import(${JSON.stringify(HEARTBEAT)});
      const heartbeat = new Heartbeat();
      const watchdog = startWatchdog({ shared: heartbeat.shared, limitMs: 9000 });
      setInterval(() => heartbeat.pulse(performance.now()), 100);
      const { address } = await watchdog.serveHealth({ host: '127.0.0.1', port: 0 });
      heartbeat.begin('node/pods/workers/web', performance.now());
      writeSync(1, 'busy at ' + address + ' ');
      ${BLOCK}
    `);
    await until('its main thread is busy', () => / at \S+ /.test(node.output()));
    const port = Number(/:(\d+) /.exec(node.output())?.[1]);
    expect(await ask(port, '/healthz')).toBe('200 ok');
    expect(await ask(port, '/pods')).toMatch(/^404/);
    let said = '';
    await until('it counts as stuck', async () => {
      said = await ask(port, '/healthz');
      return said.startsWith('500');
    });
    expect(said).toBe('500 [-]ping failed: reason withheld\nhealthz check failed\n');
    expect(await ask(port, '/healthz/ping')).toMatch(
      /^500 internal server error: the main thread has been stuck for [3-9] s, running node\/pods\/workers\/web/,
    );
    expect(await node.code).toBe(70);
  });

  it('is refused with the reason where its address is taken, and is free again when closed', async () => {
    const { shared } = new Heartbeat();
    using _beat = beating(shared);
    using watchdog = startWatchdog({ shared });
    const first = await watchdog.serveHealth({ host: '127.0.0.1', port: 0 });
    const port = Number(first.address.split(':')[1]);
    await expect(watchdog.serveHealth({ host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
      message: `cannot listen on 127.0.0.1:${port}: the address is already in use`,
    });
    await first.close();
    const second = await watchdog.serveHealth({ host: '127.0.0.1', port });
    expect(await ask(port, '/healthz')).toBe('200 ok');
    await second.close();
  });

  it('is opened again by the next thread when one fails', async () => {
    const failures: string[] = [];
    // Too small to be read until it grows.
    const shared = new SharedArrayBuffer(4, { maxByteLength: new Heartbeat().shared.byteLength });
    using _beat = beating(shared);
    using watchdog = startWatchdog({ shared, limitMs: 30_000, onFailure: (error) => void failures.push(error.message) });
    const any = await watchdog.serveHealth({ host: '127.0.0.1', port: 0 });
    const port = Number(any.address.split(':')[1]);
    await any.close();
    await watchdog.serveHealth({ host: '127.0.0.1', port });
    await until('the thread fails', () => failures.length > 0);
    shared.grow(shared.maxByteLength);
    await until('the next one answers', () =>
      ask(port, '/healthz').then(
        (said) => said === '200 ok',
        () => false,
      ),
    );
    expect(failures).toHaveLength(1);
  });
});

describe('the OOM score', () => {
  it('is written as a decimal, and a missing file is not created', async ({ dir }) => {
    const file = dir.write('oom', '0000');
    await setOomScore(-999, file);
    expect(readFileSync(file, 'utf8')).toBe('-999');
    await expect(setOomScore(1, join(dir.path, 'none'))).rejects.toThrow(/ENOENT/);
    expect(existsSync(join(dir.path, 'none'))).toBe(false);
  });

  it('that this user may not set is tried once: the start waits for it', async () => {
    const triesOf = async (code: string): Promise<number> => {
      let tries = 0;
      const write = async (): Promise<void> => {
        tries++;
        throw Object.assign(new Error(code), { code });
      };
      await expect(setOomScore(-999, 'file', write)).rejects.toThrow(code);
      return tries;
    };
    expect([await triesOf('EACCES'), await triesOf('EPERM'), await triesOf('EIO')]).toEqual([1, 1, 2]);
  });
});

describe('the real process', () => {
  /** A node that does nothing and whose stop never ends. */
  const program = (root: string, extra: string) => `
    const { boot, processIo } = await import(${JSON.stringify(BOOT)});
    const wiring = {
      createPorts: () => ({ clock: { monoMs: () => performance.now() } }),
      createNode: () => ({
        start: async () => console.log('started'),
        stop: () => new Promise(() => {}),
        recorder: () => ['recorder line'],
        tree: { registry: {}, failed: new Promise(() => {}) },
      }),
    };
    const score = (await import('node:fs')).readFileSync('/proc/self/oom_score_adj', 'utf8').trim();
    const argv = ['--root-dir=${root}', '--enable-server=false', '--healthz-port=0', '--fail-swap-on=false', '--oom-score-adj=' + score];
    ${extra}
    process.exit(await boot(argv, process.env, { io: processIo(), wiring }));
  `;

  it('ends with 1 on a second signal, before an orderly stop is over', async ({ dir }) => {
    await using node = child(program(dir.path, ''));
    await until('the node runs', () => node.output().includes('started'));
    node.process.kill('SIGTERM');
    await until('the first signal was seen', () => node.output().includes('containers are left running'));
    node.process.kill('SIGTERM');
    expect(await node.code).toBe(1);
  });

  it('refuses a root directory in which another one runs, and takes it when that one was killed', async ({ dir }) => {
    await using first = child(program(dir.path, ''));
    await until('the first runs', () => first.output().includes('started'));
    await using second = child(program(dir.path, ''));
    expect(await second.code).toBe(1);
    expect(second.output()).toContain(`--root-dir: ${dir.path} is in use by actorlet process ${first.process.pid}; end that one first`);
    first.process.kill('SIGKILL');
    await first.code;
    await using third = child(program(dir.path, ''));
    await until('the third runs', () => third.output().includes('started'));
  });

  it('ends with 70 and names who holds the main thread when the start itself blocks', async ({ dir }) => {
    const blocks = `
      process.env.ACTORLET_STALL_LIMIT_MS = '1000';
      const { createNode } = wiring;
      wiring.createNode = (_config, ports, { heartbeat }) => ({
        ...createNode(),
        start: async () => {
          heartbeat.begin('node/pods/config', 0);
          ports.handling.of('pod uid-1', () => { ${BLOCK} });
        },
      });`;
    for (const deaths of [1, 2]) {
      await using node = child(program(dir.path, blocks));
      expect(await node.code, `death ${deaths}`).toBe(70);
      expect(node.output()).toContain('running node/pods/config (pod uid-1); exiting with code 70');
      if (deaths === 2) expect(node.output()).toContain('the daemon died while it handled pod uid-1 (its main thread was stuck)');
    }
    await using third = child(program(dir.path, ''));
    await until('it starts', () => third.output().includes('started'));
    expect(third.output()).toContain('the daemon died over pod uid-1 again (its main thread was stuck): it is set aside');
  });

  it('ends with 70 and the flight recorder when a promise is rejected unseen', async ({ dir }) => {
    await using node = child(program(dir.path, `setTimeout(() => Promise.reject(new Error('nobody waits')), 1000);`));
    expect(await node.code).toBe(70);
    expect(node.output()).toContain('unhandledRejection: nobody waits');
    expect(node.output()).toContain('recorder line');
  });
});
