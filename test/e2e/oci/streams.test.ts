/** Attach, standard input, terminals and port-forward of the kind `oci`: as root, and as a user who is not. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { calls, containerConfig, eventually, podConfig } from '../../../packages/runtimes/test/conformance.ts';
import { logLines, marked, markedAll, startRuntime, type TestRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { openStreams, resultOf, type Streams } from '../../../packages/runtimes/test/remoteClient.ts';
import type { ContainerConfig } from '../../../src/machines/wire/cri.ts';
import { until } from '../lab/ports.ts';
import { canRunOci, makeRig, type Rig, USER_ID } from './rig.ts';

/** Rows and columns of the terminal of the shell whose script holds `word`. */
function sizeOf(containerId: string, word: string): string {
  const has = (pid: number): boolean => {
    try {
      return new RegExp(`^sh\\0-c\\0.*${word}`).test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'));
    } catch {
      return false;
    }
  };
  return execFileSync('sh', ['-c', `stty size </proc/${marked(containerId).find(has)}/fd/0`], { encoding: 'latin1' });
}

for (const who of ['root', 'user'] as const)
  describe.runIf(canRunOci())(`streams of kind oci as ${who}`, () => {
    let rig: Rig;
    let runtime: TestRuntime;
    let c: ReturnType<typeof calls>;
    let podSandboxId = '';
    const ran: string[] = [];
    const pod = podConfig(`streams-${who}`);
    pod.linux = { securityContext: { namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } } };
    beforeAll(async () => {
      rig = makeRig();
      const user = who === 'user' ? { uid: USER_ID, launch: rig.launch, env: rig.env } : {};
      runtime = await startRuntime({ ...user, args: ['--kind', 'oci'] });
      c = calls(runtime.cri);
      pod.logDirectory = join(runtime.rootDir, 'logs');
      await loadImages(join(runtime.rootDir, 'actorlet.sock'), { file: rig.archive, name: '' });
      podSandboxId = (await c.call('RunPodSandbox', { config: pod })).podSandboxId;
    });
    afterAll(async () => {
      await runtime.close();
      rig.close();
      await until('nothing of it is left', () => ![...markedAll().keys()].some((id) => ran.includes(id)));
    });

    const start = async (name: string, script: string, more: Partial<ContainerConfig>) => {
      const config = containerConfig(name, 'busybox', { command: ['sh', '-c', script], args: [], ...more });
      const id = await c.run(pod, config, podSandboxId);
      ran.push(id);
      return id;
    };
    const attach = async (containerId: string, tty = false): Promise<Streams> => {
      const { url } = await c.call('Attach', { ...{ containerId, tty, stdin: true, stdout: true, stderr: !tty } });
      const s = await openStreams(url, { names: ['error', 'stdin', 'stdout', tty ? 'resize' : 'stderr'] });
      onTestFinished(() => s.close());
      return s;
    };
    const shows = (s: Streams, text: string | RegExp) =>
      eventually(`it shows ${text}: ${s.text('stdout')}`, () => {
        const out = s.text('stdout');
        return (typeof text === 'string' ? out.includes(text) : text.test(out)) || undefined;
      });

    it('gives input to a container, client after client, also over a crash of the runtime', async () => {
      const id = await start('parrot', 'while read line; do echo "<$line>"; done; echo over', { stdin: true });
      const first = await attach(id);
      first.write('stdin', 'one\n');
      await shows(first, '<one>');
      // The client's end is the attachment's, not that of the input.
      first.end('stdin');
      await first.closed;
      await runtime.kill();
      await runtime.start();
      const second = await attach(id);
      second.write('stdin', 'two\n');
      await shows(second, '<two>');
      expect((await c.status(id)).state).toBe('CONTAINER_RUNNING');
      await c.call('StopContainer', { containerId: id, timeout: 0 });
      await second.closed;
      expect(logLines((await c.status(id)).logPath).map((l) => l.text)).toEqual(['<one>', '<two>']);
    });

    it('ends the input of stdinOnce with its first client, all of which is read', async () => {
      const id = await start('once', 'cat | wc -c; echo counted', { stdin: true, stdinOnce: true });
      const s = await attach(id);
      s.write('stdin', 'x'.repeat(300_000));
      s.end('stdin');
      await s.closed;
      expect(s.text('stdout')).toBe('300000\ncounted\n');
      expect(await c.exited(id)).toMatchObject({ exitCode: 0 });
      // Gone without a word, as kubectl killed by Ctrl-C.
      const cut = await start('cut', 'cat; echo over', { stdin: true, stdinOnce: true });
      const gone = await attach(cut);
      gone.write('stdin', 'typed\n');
      await shows(gone, 'typed');
      gone.close();
      expect(logLines((await c.exited(cut)).logPath).map((l) => l.text)).toEqual(['typed', 'over']);
    });

    it('has a terminal, of the size of its client’s, with Ctrl-C and exit codes', async () => {
      const script = 'trap "echo hit; exit 6" INT; test -t 0 && test -t 1 && echo ready; while :; do sleep 0.1; done';
      const id = await start('terminal', script, { tty: true, stdin: true });
      const s = await attach(id, true);
      await eventually('it is ready', async () => readFileSync((await c.status(id)).logPath, 'utf8').includes('ready') || undefined);
      s.write('resize', '{"Width":101,"Height":33}\n');
      s.write('stdin', 'typed\n');
      await shows(s, 'typed');
      await eventually('its size', () => sizeOf(id, 'trap') === '33 101\n' || undefined);
      s.write('stdin', '\u0003');
      await s.closed;
      expect(s.text('stdout')).toMatch(/hit\r\n$/);
      expect(await c.exited(id)).toMatchObject({ exitCode: 6 });
      const sleeper = await start('sleeper', 'sleep 1000', {});
      const cmd = ['sh', '-c', 'echo begun; read x; exit 7'];
      const { url } = await c.call('Exec', { containerId: sleeper, cmd, tty: true, stdin: true, stdout: true, stderr: false });
      const beside = await openStreams(url, { names: ['error', 'stdin', 'stdout', 'resize'] });
      beside.write('resize', '{"Width":133,"Height":44}\n');
      await shows(beside, 'begun');
      expect(sizeOf(sleeper, 'begun')).toBe('44 133\n');
      beside.write('resize', '{"Width":80,"Height":25}\n');
      await eventually('its next size', () => sizeOf(sleeper, 'begun') === '25 80\n' || undefined);
      beside.write('stdin', '\n');
      await beside.closed;
      expect(resultOf(beside).exitCode).toBe(7);
      const alone = await start('alone', 'test -t 0 && echo yes; exit 3', { tty: true });
      const end = await c.exited(alone);
      expect([end.exitCode, readFileSync(end.logPath, 'utf8')]).toEqual([3, expect.stringMatching(/^\S+ stdout F yes\r\n/)]);
      const absent = start('absent', '', { tty: true, command: ['/no/such'] });
      await expect(absent).rejects.toThrow(/\/no\/such/);
    });

    it('forwards ports into the pod’s own network', async () => {
      await start('web', 'mkdir /www; echo welcome >/www/index.html; exec httpd -f -p 8080 -h /www', {});
      const get = async (port: number): Promise<{ data: string; error: string }> => {
        const { url } = await c.call('PortForward', { podSandboxId, port: [] });
        const s = await openStreams(url, { names: [], protocol: 'portforward.k8s.io' });
        for (const type of ['error', 'data']) s.open(type, { streamtype: type, port: String(port), requestid: '0' });
        s.write('data', 'GET / HTTP/1.0\r\n\r\n');
        const over = () => s.text('data').endsWith('welcome\n') || s.text('error') !== '' || undefined;
        await eventually('an answer', over).finally(() => s.close());
        return { data: s.text('data'), error: s.text('error') };
      };
      expect((await eventually('the server', async () => ((await get(8080)).error === '' ? get(8080) : undefined))).data).toMatch(
        /200 OK[\s\S]*welcome/,
      );
      expect((await get(8081)).error).toMatch(/port 8081 of the pod: .*ECONNREFUSED/);
    });
  });
