/** Signals and the debugger of real programs: no signal opens a port or ends one; the debugger is for the admin socket's user. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import '../../../test/programs.ts';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { hostFigures } from '@actorlet/inspect/src/boot/host.ts';
import { SILENT_SIGNALS, TOLD_SIGNALS } from '@actorlet/process/src/signals.ts';
import { collectingLogger } from '../../../test/supervision/fakePorts.ts';
import { startNode, type TestNode } from '../src/index.ts';

const project = join(import.meta.dirname, '..', '..', '..');
const IGNORED_BY_NODE = ['SIGPIPE', 'SIGWINCH', 'SIGURG', 'SIGCHLD', 'SIGCONT'] as const;
const REAL_TIME = Array.from({ length: 31 }, (_, i) => 34 + i);
const LISTENING = '0A';

async function until(what: string, probe: () => boolean): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!probe()) {
    if (performance.now() > endMs) throw new Error(`waited 30 s for ${what}`);
    await sleep(20);
  }
}

/** Process ids whose command line has all of these words, by nothing else. */
function processes(...words: string[]): number[] {
  const found: number[] = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (words.every((word) => command.includes(word))) found.push(Number(pid));
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** Inodes of the TCP sockets on which a process listens. */
function listeners(pid: number): string[] {
  const held = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      held.add(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // Closed meanwhile.
    }
  }
  const sockets = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, 'utf8').trim().split('\n').slice(1));
  const all = sockets.map((line) => line.trim().split(/\s+/));
  return all.filter((f) => f[3] === LISTENING && held.has(`socket:[${f[9]}]`)).map((f) => f[9] ?? '');
}

/** A mask of signals in /proc/PID/status. */
const mask = (pid: number, of: 'ShdPnd' | 'SigBlk'): bigint =>
  BigInt(`0x${new RegExp(`^${of}:\\s*(\\w+)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]}`);
/** Signals that a process has not taken yet and will take. Node blocks SIGUSR1 where it is to open nothing. */
const pending = (pid: number): boolean => (mask(pid, 'ShdPnd') & ~mask(pid, 'SigBlk')) !== 0n;

async function outlives(pid: number, o: { except?: readonly string[]; also?: readonly number[] } = {}): Promise<void> {
  const before = listeners(pid);
  const named = [...TOLD_SIGNALS, ...SILENT_SIGNALS, ...IGNORED_BY_NODE].filter((name) => o.except?.includes(name) !== true);
  for (const signal of [...named, ...(o.also ?? [])]) {
    process.kill(pid, signal);
    await until(`${signal} to be taken by ${pid}`, () => !pending(pid));
  }
  // Node opens its debugger from a thread of its own.
  await sleep(300);
  expect(listeners(pid)).toEqual(before);
  expect(readFileSync(`/proc/${pid}/status`, 'utf8')).not.toMatch(/^State:\s+Z/m);
}

it('outlives every signal but those that end a program, and opens no debugger', { timeout: 120_000 }, async () => {
  await using node = await startNode({ startTimeoutMs: 90_000 });
  // The runtime blocks SIGUSR1; what it starts must not.
  const pod = await node.apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'mask' },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'actorlet.dev/host:latest', command: ['sh', '-c', 'grep SigBlk /proc/self/status; sleep 3600'] }],
    },
  });
  expect((await pod.logged(/SigBlk:\s*(\w+)/))[1]).toMatch(/^0+$/);
  const [runtime = 0] = processes('sandboxd.mjs\0--root-dir', node.dir);
  const [reaper = 0] = processes('lib/reaper.mjs', node.dir);
  await outlives(node.pid ?? 0, { also: REAL_TIME });
  await outlives(runtime);
  // The end of the session that it was started from is the end of its node.
  await outlives(reaper, { except: ['SIGHUP'] });
  {
    using _figures = hostFigures(() => {}, collectingLogger([]));
    await until('the process that reads figures', () => processes('hostMain.ts', String(process.pid)).length === 1);
    const [figures = 0] = processes('hostMain.ts', String(process.pid));
    await until('its first look', () => /SigCgt:\s*0*[1-9a-f]/m.test(readFileSync(`/proc/${figures}/status`, 'utf8')));
    process.kill(figures, 'SIGUSR1');
    await sleep(300);
    expect(listeners(figures)).toEqual([]);
  }
  expect(readFileSync(join(node.dir, 'daemon.log'), 'utf8')).toContain('SIGHUP is without effect');
  expect((await node.events()).length).toBeGreaterThan(0);
});

it('has few words for signals that come all the time, and hears SIGTERM among them', {
  timeout: 120_000,
}, async () => {
  await using node = await startNode({ startTimeoutMs: 90_000, runtime: 'hollow' });
  const pid = node.pid ?? 0;
  const log = () => readFileSync(join(node.dir, 'daemon.log'), 'utf8');
  for (let i = 0; i < 20_000; i++) for (const signal of ['SIGPROF', 'SIGUSR2'] as const) process.kill(pid, signal);
  await until('it is said', () => log().includes('SIGUSR2 comes more than 20 times a second: it is ignored for 60 s'));
  let ended = false;
  const flood = setInterval(() => {
    try {
      for (let i = 0; i < 500 && !ended; i++) for (const signal of ['SIGPROF', 'SIGALRM', 'SIGUSR2'] as const) process.kill(pid, signal);
    } catch {
      ended = true;
    }
  }, 1);
  try {
    process.kill(pid, 'SIGTERM');
    await until('it ends', () => log().includes('SIGTERM: stopping'));
  } finally {
    clearInterval(flood);
  }
  expect(log().match(/SIG(?:PROF|USR2|ALRM)/g)?.length).toBeLessThan(5);
});

it('leaves SIGPROF to a profiler that has it', () => {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-prof-'));
  try {
    const program = `const { outliveSignals } = await import(${JSON.stringify(join(project, 'packages/process/src/signals.ts'))});
      outliveSignals();
      for (const end = performance.now() + 400; performance.now() < end; );`;
    const flags = ['--cpu-prof', `--cpu-prof-dir=${dir}`, '--input-type=module', '-e', program];
    expect(spawnSync(process.execPath, flags, { encoding: 'utf8' })).toMatchObject({ status: 0 });
    const [file = ''] = readdirSync(dir);
    const { samples } = JSON.parse(readFileSync(join(dir, file), 'utf8')) as { samples: unknown[] };
    expect(samples.length).toBeGreaterThan(50);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

it('starts its programs so that SIGUSR1 opens nothing, and a replay behind options with places of the sources', () => {
  const root = mkdtempSync(join(tmpdir(), 'actorlet-signals-'));
  try {
    for (const folder of ['bin', 'scripts', 'dist']) mkdirSync(join(root, folder));
    copyFileSync(join(project, 'scripts/launch.sh'), join(root, 'scripts/launch.sh'));
    for (const program of ['actorlet', 'actorctl']) {
      copyFileSync(join(project, 'bin', program), join(root, 'bin', program));
      writeFileSync(
        join(root, `dist/${program}.mjs`),
        `import { url } from 'node:inspector'; import { setTimeout as sleep } from 'node:timers/promises';
         process.kill(process.pid, 'SIGUSR1'); await sleep(300); console.log('debugger', url(), process.execArgv.includes('--enable-source-maps'));`,
      );
      const env = { ...process.env, ACTORLET_NODE: process.execPath };
      const run = spawnSync(join(root, 'bin', program), ['-o', 'json', 'replay'], { env, encoding: 'utf8' });
      expect(run.stdout + run.stderr).toBe('debugger undefined true\n');
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});

interface Opened extends AsyncDisposable {
  url: string;
}
/** `actorctl debugger`, until it is disposed of. */
async function openDebugger(node: TestNode): Promise<Opened> {
  const interrupted = new AbortController();
  const told = Promise.withResolvers<string>();
  const code = runCtl({
    ...{ argv: ['debugger', '-o', 'json', '--socket', node.adminSocket], env: {}, exists: () => true, columns: 0 },
    ...{ stdin: process.stdin, outBytes: () => undefined, errBytes: () => undefined, nowMs: () => Date.now() },
    ...{ out: told.resolve, err: (text) => told.reject(new Error(text)), signal: interrupted.signal },
  });
  const { webSocketDebuggerUrl } = JSON.parse(await told.promise) as { webSocketDebuggerUrl: string };
  return {
    url: webSocketDebuggerUrl,
    async [Symbol.asyncDispose]() {
      interrupted.abort();
      expect(await code).toBe(0);
    },
  };
}

class Tool implements Disposable {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, (result: unknown) => void>();
  readonly events: string[] = [];
  #last = 0;
  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as { id?: number; method?: string; result?: unknown };
      if (message.id === undefined) this.events.push(message.method ?? '');
      else this.#answers.get(message.id)?.(message.result);
    });
  }
  static async connect(url: string): Promise<Tool> {
    const socket = new WebSocket(url);
    const tool = new Tool(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', () => reject(new Error('not let in')));
    });
    return tool;
  }
  post(method: string, params: object = {}): Promise<unknown> {
    this.#last += 1;
    const answer = Promise.withResolvers<unknown>();
    this.#answers.set(this.#last, answer.resolve);
    this.#socket.send(JSON.stringify({ id: this.#last, method, params }));
    return answer.promise;
  }
  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

it('is debugged through the admin socket alone, and outlives a breakpoint', { timeout: 120_000 }, async () => {
  const stallMs = 3_000;
  await using node = await startNode({ startTimeoutMs: 90_000, runtime: 'hollow', env: { ACTORLET_STALL_LIMIT_MS: String(stallMs) } });
  const pid = node.pid ?? 0;
  const before = listeners(pid);
  let url = '';
  {
    await using opened = await openDebugger(node);
    url = opened.url;
    expect(listeners(pid)).toEqual(before);
    using tool = await Tool.connect(url);
    const { result } = (await tool.post('Runtime.evaluate', { expression: 'process.pid' })) as { result: { value: number } };
    expect(result.value).toBe(pid);
    await tool.post('Debugger.enable');
    const paused = tool.post('Runtime.evaluate', { expression: 'debugger; 42' });
    await until('the breakpoint', () => tool.events.includes('Debugger.paused'));
    await sleep(2 * stallMs);
    await tool.post('Debugger.resume');
    await paused;
    expect((await node.pods()).length).toBe(0);

    // Another user of the machine: the port is there, the way through it is not, and what is no HTTP harms nobody.
    const port = new URL(url).port;
    for (const path of ['/json', '/json/list', '/json/version']) expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404);
    await expect(Tool.connect(`ws://127.0.0.1:${port}/00000000-0000-4000-8000-000000000000`)).rejects.toThrow('not let in');
    const garbage = spawn(process.execPath, [
      '-e',
      `const s = require('net').connect(${port}, '127.0.0.1', () => { for (let i = 0; i < 50; i++) s.write('x'.repeat(1e5)); });
       s.on('error', () => {}); s.on('close', () => process.exit());`,
    ]);
    await once(garbage, 'exit');
    expect(((await tool.post('Runtime.evaluate', { expression: '6 * 7' })) as { result: { value: number } }).result.value).toBe(42);
    const socket = join(node.dir, 'root/actorlet/debugger/socket');
    const program = `require('net').connect(${JSON.stringify(socket)}).on('error', (e) => console.log(e.code)).on('connect', () => process.exit());`;
    // Only root can become another user.
    if (process.getuid?.() === 0)
      expect(spawnSync(process.execPath, ['-e', program], { uid: 65_534, gid: 65_534, cwd: '/', encoding: 'utf8' }).stdout).toBe(
        'EACCES\n',
      );
  }
  await expect(Tool.connect(url)).rejects.toThrow('not let in');
  expect(readdirSync(join(node.dir, 'root/actorlet'))).not.toContain('debugger');
  expect(node.pid).toBe(pid);
  const log = readFileSync(join(node.dir, 'daemon.log'), 'utf8');
  expect(log).toContain('the debugger was opened over the admin socket');
  expect(log).toContain('the debugger is closed');
  expect(log).not.toContain(new URL(url).pathname.slice(1));
});

it('has the name that is asked for, by which pidof finds it', () => {
  const said = (ACTORLET_PROCESS_NAME?: string) =>
    spawnSync(join(project, 'bin/actorlet'), ['--version'], {
      encoding: 'utf8',
      env: { ...process.env, ACTORLET_PROCESS_NAME, NODE_OPTIONS: '--import=data:text/javascript,console.log(process.argv0)' },
    }).stdout.split('\n')[0];
  expect(said('kubelet')).toBe('kubelet');
  expect(said()).toMatch(/node$/);
});
