/** A process runtime as a whole: one per root directory, streaming exec, events on the wire, the catalogue, stopping everything. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stopAll } from '../src/process/admin.ts';
import { readStat, signal } from '../src/process/container/procfs.ts';
import { ensureProcessRuntime } from '../src/process/ensure.ts';
import { layout } from '../src/process/store/store.ts';
import { calls, containerConfig, eventually, podConfig } from './conformance.ts';
import { ENTRY, logLines, marked, startRuntime, type TestRuntime } from './processRuntime.ts';
import { openStreams, resultOf, runStreams } from './remoteClient.ts';

const HOST = 'actorlet.dev/host:latest';

/** Whatever the test did, nothing of it runs on. */
function tempRoot(): string {
  const rootDir = mkdtempSync(join(tmpdir(), 'sbx-'));
  onTestFinished(async () => {
    await stopAll(rootDir, { execPath: process.execPath, entry: ENTRY, say: () => undefined });
    rmSync(rootDir, { recursive: true, force: true });
  });
  return rootDir;
}

describe('process runtime', () => {
  let runtime: TestRuntime;
  let c: ReturnType<typeof calls>;
  let sandboxId = '';
  const pod = podConfig('whole');

  beforeAll(async () => {
    runtime = await startRuntime();
    c = calls(runtime.cri);
    await c.call('PullImage', { image: { image: HOST } });
    pod.logDirectory = join(runtime.rootDir, 'logs');
    sandboxId = (await c.call('RunPodSandbox', { config: pod })).podSandboxId;
  });
  afterAll(async () => {
    await runtime.close();
  });

  it('keeps its sockets and its state to its own user', () => {
    const l = layout(runtime.rootDir);
    expect(statSync(l.base).mode & 0o777).toBe(0o700);
    for (const socket of [l.socket, l.streaming]) expect(statSync(socket).mode & 0o777).toBe(0o600);
  });

  it('streams a command’s input, output and exit code over an upgraded connection, once per URL', async () => {
    const id = await c.run(pod, containerConfig('streams', HOST, { command: ['sleep', '1000'] }), sandboxId);
    const ask = { containerId: id, cmd: ['sh', '-c', 'cat; echo done >&2; exit 4'], tty: false, stdin: true, stdout: true, stderr: true };
    const { url } = await c.call('Exec', ask);
    expect(await runStreams(url, 'some input\n')).toEqual({ stdout: 'some input\n', stderr: 'done\n', exitCode: 4, error: '' });
    await expect(runStreams(url, '')).rejects.toThrow(/404: the offer has expired/);
    await expect(c.call('Exec', { ...ask, tty: true })).rejects.toThrow(/terminal/);
  });

  it('attaches to the output of a container, until its end', async () => {
    const script = 'until [ -e go ]; do echo waits; sleep 0.05; done; echo out; echo err >&2';
    const config = containerConfig('attached', HOST, { command: ['sh', '-c', script], workingDir: runtime.rootDir });
    const id = await c.run(pod, config, sandboxId);
    const { url } = await c.call('Attach', { containerId: id, tty: false, stdin: false, stdout: true, stderr: true });
    const s = await openStreams(url, { names: ['error', 'stdout', 'stderr'] });
    await eventually('it is attached', () => s.text('stdout').includes('waits') || undefined);
    writeFileSync(join(runtime.rootDir, 'go'), '');
    await s.closed;
    expect(resultOf(s)).toEqual({ stdout: expect.stringMatching(/^(waits\n)+out\n$/), stderr: 'err\n', exitCode: 0, error: '' });
    expect(logLines((await c.exited(id)).logPath).map((l) => l.text)).toEqual(expect.arrayContaining(['out', 'err']));
    await expect(c.call('Attach', { containerId: id, tty: false, stdin: false, stdout: true, stderr: true })).rejects.toThrow(
      /not running/,
    );
  });

  it('forwards ports of a pod, many connections over one, and says where nobody listens', async () => {
    const server = createServer((socket) => socket.pipe(socket));
    onTestFinished(() => void server.close());
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    );
    const { url } = await c.call('PortForward', { podSandboxId: sandboxId, port: [] });
    const s = await openStreams(url, { names: [], protocol: 'portforward.k8s.io' });
    const connectTo = (name: string, to: number) => {
      for (const type of ['error', 'data']) s.open(`${type} ${name}`, { streamtype: type, port: String(to), requestid: name });
    };
    for (const name of ['a', 'b']) connectTo(name, port);
    connectTo('none', 1);
    for (const name of ['a', 'b']) s.write(`data ${name}`, `hello ${name}`);
    await eventually('both echo', () => ['a', 'b'].every((name) => s.text(`data ${name}`) === `hello ${name}`) || undefined);
    await eventually('the third is refused', () => s.text('error none').includes('port 1 of the pod: connect ECONNREFUSED') || undefined);
    s.close();
    await expect(openStreams(url, { names: [], protocol: 'portforward.k8s.io' })).rejects.toThrow(/404/);
  });

  // Where a privileged pod mounted the host's /dev, that has such a file.
  it.each(['missing', 'there'])('tells a program where its termination message goes: a path that is %s on the host', async (path) => {
    const [file, at] = [join(runtime.rootDir, `${path}.log`), join(runtime.rootDir, `at-${path}`)];
    writeFileSync(file, '');
    if (path === 'there') writeFileSync(at, '');
    const config = containerConfig(`message-${path}`, HOST, {
      command: ['sh', '-c', 'echo goodbye > "$ACTORLET_TERMINATION_LOG"'],
      mounts: [{ containerPath: at, hostPath: file }],
      annotations: { 'io.kubernetes.container.terminationMessagePath': at },
    });
    await c.exited(await c.run(pod, config, sandboxId));
    expect(readFileSync(file, 'utf8')).toBe('goodbye\n');
  });

  it('reopens a log by name after rotation', async () => {
    const id = await c.run(
      pod,
      containerConfig('rotates', HOST, { command: ['sh', '-c', 'while :; do echo tick; sleep 0.02; done'] }),
      sandboxId,
    );
    const path = join(runtime.rootDir, 'logs/rotates/0.log');
    const lines = () => {
      try {
        return logLines(path).length || undefined;
      } catch {
        return undefined;
      }
    };
    await eventually('the first file has lines', lines);
    rmSync(path);
    await c.call('ReopenContainerLog', { containerId: id });
    await eventually('the new file has lines', lines);
    await c.call('StopContainer', { containerId: id, timeout: 50 });
    await expect(c.call('ReopenContainerLog', { containerId: id })).rejects.toThrow(/not running/);
  });

  it('knows the images of its catalogue and says so for any other', async () => {
    await expect(c.call('PullImage', { image: { image: 'nginx:1.27' } })).rejects.toThrow(/nginx:1\.27.*not found.*actorlet\.dev\/host/);
    for (const name of ['echo', 'crash']) await c.call('PullImage', { image: { image: `actorlet.dev/${name}` } });
    const echo = await c.exited(await c.run(pod, containerConfig('echo', 'actorlet.dev/echo', { args: ['a', 'b'] }), sandboxId));
    expect(echo.exitCode).toBe(0);
    expect(logLines(echo.logPath).map((l) => l.text)).toEqual(['a b']);
    const envs = [{ key: 'RUN_SECONDS', value: '0' }];
    const crash = await c.exited(await c.run(pod, containerConfig('crash', 'actorlet.dev/crash', { envs }), sandboxId));
    expect(crash).toMatchObject({ exitCode: 1, reason: 'Error' });
  });

  it('serves HTTP with the web image until TERM, and keeps still with the pause image', async () => {
    for (const name of ['web', 'pause']) await c.call('PullImage', { image: { image: `actorlet.dev/${name}` } });
    const socket = join(runtime.rootDir, 'web.sock');
    const web = await c.run(pod, containerConfig('web', 'actorlet.dev/web', { envs: [{ key: 'PORT', value: socket }] }), sandboxId);
    const pause = await c.run(pod, containerConfig('pause', 'actorlet.dev/pause'), sandboxId);
    const get = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const req = request({ socketPath: socket, path: '/x' }, (res) => res.on('data', (chunk: Buffer) => resolve(chunk.toString())));
        req.on('error', reject);
        req.end();
      });
    expect(await eventually('the server answers', () => get().catch(() => undefined))).toBe('hello from whole, you asked for /x\n');
    for (const id of [web, pause]) {
      await c.call('StopContainer', { containerId: id, timeout: 50 });
      expect((await c.status(id)).exitCode).toBe(0);
    }
  });

  it('reports processor time and memory of what runs', async () => {
    const id = await c.run(pod, containerConfig('busy', HOST, { command: ['sh', '-c', 'while :; do :; done'] }), sandboxId);
    const used = async () => Number((await c.call('ContainerStats', { containerId: id })).stats?.cpu?.usageCoreNanoSeconds?.value ?? 0);
    await eventually('it has used a tenth of a second', async () => ((await used()) > 100_000_000 ? true : undefined));
    await c.call('StopContainer', { containerId: id, timeout: 50 });
  });
});

describe('state on disk', () => {
  it('sets a file aside that cannot be read, says so, and serves the rest', async () => {
    const runtime = await startRuntime();
    onTestFinished(() => runtime.close());
    const c = calls(runtime.cri);
    const { podSandboxId } = await c.call('RunPodSandbox', { config: podConfig('kept') });
    await runtime.kill();
    const bad = join(layout(runtime.rootDir).sandboxes, 'bad.json');
    writeFileSync(bad, '{"version":1,"val');
    await runtime.start();
    expect((await c.call('ListPodSandbox', {})).items.map((s) => s.id)).toEqual([podSandboxId]);
    expect(readFileSync(`${bad}.bad`, 'utf8')).toBe('{"version":1,"val');
    expect(runtime.log()).toMatch(/bad\.json cannot be used.*set aside/);
  });
});

describe('one process runtime per root directory', () => {
  it('lets one of several starters win, attaches the others, and stops everything on demand, even when it is not there', async () => {
    const rootDir = tempRoot();
    const l = layout(rootDir);
    const o = { rootDir, execPath: process.execPath, entry: ENTRY, log: { info: () => undefined } };
    const results = await Promise.all([ensureProcessRuntime(o), ensureProcessRuntime(o)]);
    expect(results.filter((r) => r.started)).toHaveLength(1);
    const pid = await eventually('the pid file is written', () => {
      try {
        return Number(readFileSync(l.pid, 'utf8')) || undefined;
      } catch {
        return undefined;
      }
    });
    const { createGrpcCri } = await import('@actorlet/kubelet/boot/dependencies/cri/grpcCri.ts');
    const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
    const clock = {
      wallMs: () => Date.now(),
      monoMs: () => performance.now(),
      setTimeout,
      clearTimeout: (id: unknown) => clearTimeout(id as NodeJS.Timeout),
    };
    const cri = createGrpcCri({ endpoint: results[0].endpoint, log: quiet, clock });
    const c = calls(cri);
    await c.call('PullImage', { image: { image: HOST } });
    const pod = podConfig('stays', { logDirectory: join(rootDir, 'logs') });
    const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
    const id = await c.run(pod, containerConfig('main', HOST, { command: ['sleep', '1000'] }), podSandboxId);
    cri.close();
    signal(pid, 'SIGKILL');
    await eventually('the runtime is gone', () => ((readStat(pid)?.state ?? 'Z') === 'Z' ? true : undefined));
    expect(marked(id).length).toBeGreaterThan(0);
    const said: string[] = [];
    expect(await stopAll(rootDir, { execPath: process.execPath, entry: ENTRY, say: (line) => said.push(line) })).toEqual({ pods: 1 });
    await expect.poll(() => marked(id)).toEqual([]);
    expect(said.join()).toMatch(/1 pod stopped/);
  });

  it('refuses a root directory whose socket path would be too long, and says by how much', async () => {
    const o = { rootDir: join(tmpdir(), 'x'.repeat(120)), execPath: process.execPath, entry: ENTRY, log: { info: () => undefined } };
    await expect(ensureProcessRuntime(o)).rejects.toThrow(/limit is 107: choose a shorter root directory/);
  });
});

describe('the daemon’s side of the process runtime', () => {
  it('starts it on demand, and again when it is found dead, with the containers still there', async () => {
    const { connectEmbedded } = await import('@actorlet/kubelet/boot/dependencies/embedded.ts');
    const rootDir = tempRoot();
    const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
    const clock = {
      wallMs: () => Date.now(),
      monoMs: () => performance.now(),
      setTimeout,
      clearTimeout: (id: unknown) => clearTimeout(id as NodeJS.Timeout),
    };
    const { cri } = await connectEmbedded({
      endpoint: 'embedded://process',
      rootDir,
      log: quiet,
      clock,
      rng: { next: () => 0.5 },
      execPath: process.execPath,
      entry: ENTRY,
    });
    const c = calls(cri);
    await c.call('PullImage', { image: { image: HOST } });
    const pod = podConfig('revived');
    const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
    const id = await c.run(pod, containerConfig('main', HOST, { command: ['sleep', '1000'] }), podSandboxId);
    const before = marked(id);
    const { info } = await c.call('Status', { verbose: true });
    signal(Number(info.pid), 'SIGKILL');
    const back = await eventually('it answers again', () => c.call('Status', { verbose: true }).catch(() => undefined));
    expect(back.info.pid).not.toBe(info.pid);
    expect((await c.status(id)).state).toBe('CONTAINER_RUNNING');
    // The command itself may have begun a moment after the first look.
    expect(before.length).toBeGreaterThan(0);
    expect(marked(id)).toEqual(expect.arrayContaining(before));
    cri.close();
  });
});
