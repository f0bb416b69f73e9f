/** Containers of the process runtime outlive it, and nothing outlives them: as root with namespaces, plain, and as an ordinary user. */
import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { ContainerConfig, PodSandboxConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotating } from '../../../test/rotation.ts';
import { firstChild, readStat, scanProcesses, signal } from '../src/process/container/procfs.ts';
import { calls, codeOf, containerConfig, eventually, podConfig } from './conformance.ts';
import { logLines, marked, markedAll, startRuntime, type TestRuntime } from './processRuntime.ts';

const HOST = 'actorlet.dev/host:latest';
const root = process.getuid?.() === 0;
const linkOf = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};
const users: { name: string; uid?: number; args?: string[] }[] = [
  { name: 'as this user' },
  { name: 'as this user, plain processes', args: ['--isolation', 'plain'] },
  // The second user that a root-run test can have; an ordinary user's tests are that case already.
  ...(root ? [{ name: 'as user 65534', uid: 65534 }] : []),
];

for (const user of rotating('users of the process runtime', users, 2)) {
  describe(`process runtime ${user.name}`, () => {
    let runtime: TestRuntime;
    let c: ReturnType<typeof calls>;
    let serial = 0;

    beforeAll(async () => {
      runtime = await startRuntime(user);
      c = calls(runtime.cri);
      await c.call('PullImage', { image: { image: HOST } });
    });
    afterAll(async () => {
      await runtime.close();
    });

    const newPod = async (): Promise<{ pod: PodSandboxConfig; sandboxId: string; logs: string }> => {
      const logs = join(runtime.rootDir, 'logs', `pod-${++serial}`);
      const pod = podConfig(`pod-${serial}`, { logDirectory: logs });
      const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
      return { pod, sandboxId: podSandboxId, logs };
    };
    const sh = (script: string, more: Partial<ContainerConfig> = {}) =>
      containerConfig('main', HOST, { command: ['sh', '-c', script], ...more });
    const runToEnd = async (config: ContainerConfig) => {
      const { pod, sandboxId, logs } = await newPod();
      const id = await c.run(pod, config, sandboxId);
      const status = await c.exited(id);
      return { id, status, lines: logLines(join(logs, 'main', '0.log')), sandboxId };
    };

    it('logs nothing of its own about a command that is killed', async () => {
      const { lines, status } = await runToEnd(sh('echo one; kill -KILL $$'));
      expect({ exitCode: status.exitCode, texts: lines.map((l) => l.text) }).toEqual({ exitCode: 137, texts: ['one'] });
    });

    it('writes stdout and stderr as CRI lines, cuts long lines into P pieces, and tags an unfinished end P', async () => {
      const { lines, status } = await runToEnd(
        sh('echo one; echo two >&2; echo three >/dev/stderr; head -c 40000 /dev/zero | tr "\\0" x; echo; printf end'),
      );
      expect(status).toMatchObject({ exitCode: 0, reason: 'Completed' });
      const of = (stream: string) => lines.filter((l) => l.stream === stream);
      expect(of('stderr').map((l) => `${l.tag} ${l.text}`)).toEqual(['F two', 'F three']);
      const out = of('stdout');
      expect(out[0]).toMatchObject({ tag: 'F', text: 'one' });
      const long = out.slice(1, -1);
      expect(long.map((l) => l.tag)).toEqual([...Array(long.length - 1).fill('P'), 'F']);
      expect(long.map((l) => l.text).join('')).toBe('x'.repeat(40_000));
      expect(Math.max(...long.map((l) => l.text.length))).toBeLessThanOrEqual(16_384);
      expect(out.at(-1)).toMatchObject({ tag: 'P', text: 'end' });
    });

    it('gives the environment, odd names too, the arguments and the working directory, and nothing of its own environment', async () => {
      const { lines } = await runToEnd(
        sh('', {
          command: ['sh', '-c', 'echo "$A|$0|$1|$(pwd)"'],
          args: ['zero', 'two words'],
          workingDir: '/usr/bin',
          envs: [{ key: 'A', value: 'it\'s "quoted"' }],
        }),
      );
      expect(lines.map((l) => l.text)).toEqual(['it\'s "quoted"|zero|two words|/usr/bin']);
      const printed = await runToEnd(sh('', { command: ['env'], envs: [{ key: 'odd.name', value: 'x y' }] }));
      const names = printed.lines.map((l) => l.text.slice(0, l.text.indexOf('=')));
      expect(printed.lines.map((l) => l.text)).toContain('odd.name=x y');
      expect(
        names.filter((n) => !['PATH', 'HOME', 'HOSTNAME', 'ACTORLET_CONTAINER_ID', 'odd.name', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(n)),
      ).toEqual([]);
    });

    it('reports 128 + signal for a command that a signal ended', async () => {
      expect((await runToEnd(sh('kill -USR1 $$; sleep 5'))).status.exitCode).toBe(138);
    });

    it('fails the start of a command that does not exist, with 128 and StartError', async () => {
      const { pod, sandboxId } = await newPod();
      const config = containerConfig('main', HOST, { command: ['no-such-command'] });
      const { containerId } = await c.call('CreateContainer', { podSandboxId: sandboxId, config, sandboxConfig: pod });
      await expect(c.call('StartContainer', { containerId })).rejects.toThrow(/no-such-command.*not found/);
      expect(await c.status(containerId)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 128, reason: 'StartError' });
    });

    it('leaves no process behind when the command ends, not even one that left its session', async () => {
      const { id } = await runToEnd(sh('setsid sleep 1000 & sleep 1000 & sleep 0.1; exit 0'));
      await eventually('no marked process is left', () => (marked(id).length === 0 ? true : undefined));
    });

    it('sends the stop signal to the whole group and returns the code of the command’s own handler', async () => {
      const { pod, sandboxId } = await newPod();
      const id = await c.run(pod, sh('trap "exit 5" TERM; echo up; while :; do sleep 100 & wait; done'), sandboxId);
      await eventually('the trap is set', () => {
        try {
          return logLines(join(pod.logDirectory ?? '', 'main', '0.log')).length > 0 ? true : undefined;
        } catch {
          return undefined;
        }
      });
      await c.call('StopContainer', { containerId: id, timeout: 50 });
      expect((await c.status(id)).exitCode).toBe(5);
    });

    it('runs commands beside the container: output, exit code, and KILL at the timeout', async () => {
      const { pod, sandboxId } = await newPod();
      const id = await c.run(pod, sh('sleep 1000', { envs: [{ key: 'WHO', value: 'inside' }] }), sandboxId);
      const done = await c.call('ExecSync', { containerId: id, cmd: ['sh', '-c', 'echo $WHO; echo bad >&2; exit 9'], timeout: 50 });
      expect({ out: Buffer.from(done.stdout).toString(), err: Buffer.from(done.stderr).toString(), code: done.exitCode }).toEqual({
        out: 'inside\n',
        err: 'bad\n',
        code: 9,
      });
      expect(await codeOf(c.call('ExecSync', { containerId: id, cmd: ['sh', '-c', 'sleep 777; true'], timeout: 1 }))).toBe(4);
      await eventually('the late command is gone', () => {
        const left = marked(id).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('777'));
        return left.length === 0 ? true : undefined;
      });
      expect((await c.status(id)).state).toBe('CONTAINER_RUNNING');
    });

    it('survives its own SIGKILL with 20 live containers: same processes, right states, no output or exit code lost', {
      timeout: 60_000,
    }, async () => {
      const { pod, sandboxId, logs } = await newPod();
      const config = (name: string, script: string) => containerConfig(name, HOST, { command: ['sh', '-c', script] });
      const ids = await Promise.all(
        Array.from({ length: 20 }, (_, i) => c.run(pod, config(`c${i}`, 'while :; do sleep 1000; done'), sandboxId)),
      );
      const gate = join(runtime.rootDir, 'gate');
      const leaver = await c.run(pod, config('leaver', `while [ ! -e ${gate} ]; do sleep 0.02; done; echo last words; exit 7`), sandboxId);
      const victim = await c.run(pod, config('victim', 'sleep 1000'), sandboxId);
      const before = markedAll();
      const startedAt = new Map(await Promise.all(ids.map(async (id) => [id, (await c.status(id)).startedAt] as const)));

      await runtime.kill();
      mkdirSync(gate);
      // Everything of the victim, its shim included: nobody is left to tell how it ended.
      for (const pid of marked(victim)) signal(pid, 'SIGKILL');
      await eventually('the leaver has left its code', () => {
        try {
          return readFileSync(join(runtime.rootDir, 'sandbox/exits', leaver), 'utf8') === '7\n' ? true : undefined;
        } catch {
          return undefined;
        }
      });
      const orphaned = markedAll();
      expect(ids.filter((id) => !orphaned.has(id))).toEqual([]);
      await runtime.start();

      const after = markedAll();
      for (const id of ids) {
        expect(after.get(id)).toEqual(before.get(id));
        expect(await c.status(id)).toMatchObject({ state: 'CONTAINER_RUNNING', startedAt: startedAt.get(id) });
      }
      expect(await c.status(leaver)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 7 });
      expect(logLines(join(logs, 'leaver', '0.log')).map((l) => l.text)).toEqual(['last words']);
      expect(await c.status(victim)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 255, reason: 'ContainerStatusUnknown' });

      // The adopted ones are as manageable as before.
      const [first = ''] = ids;
      await c.call('StopContainer', { containerId: first, timeout: 50 });
      expect(await c.status(first)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 143 });
      await c.call('RemovePodSandbox', { podSandboxId: sandboxId });
      await eventually('everything is gone', () => {
        const left = markedAll();
        return ids.some((id) => left.has(id)) ? undefined : true;
      });
    });

    it('leaves no shim that was frozen when it was released', async () => {
      const { pod, sandboxId } = await newPod();
      const id = await c.run(pod, sh('sleep 1000'), sandboxId);
      const shim = marked(id).find((pid) => readStat(pid)?.session === pid) ?? 0;
      signal(shim, 'SIGSTOP');
      signal(firstChild(shim) ?? 0, 'SIGKILL');
      // In its place, whole and of its user: its word.
      const word = join(runtime.rootDir, 'word');
      writeFileSync(word, '137\n');
      if (user.uid !== undefined) chownSync(word, user.uid, user.uid);
      renameSync(word, join(runtime.rootDir, 'sandbox/exits', id));
      expect(await c.exited(id)).toMatchObject({ exitCode: 137 });
      const fds = `/proc/${runtime.pid()}/fd`;
      const holdsAck = () => readdirSync(fds).some((fd) => linkOf(join(fds, fd)).endsWith(`${id}/ack`));
      await eventually('the runtime has let go of it', () => !holdsAck() || undefined);
      await eventually('the shim has ended', () => marked(id).length === 0 || undefined);
    });

    it('notices within a moment that a container was killed behind its back that it adopted, of whose start it saw no end', async () => {
      const { pod, sandboxId } = await newPod();
      const id = await c.run(pod, sh('sleep 1000'), sandboxId);
      await runtime.kill();
      const folder = join(runtime.rootDir, 'sandbox/containers', id);
      const stored = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8')) as { value: object };
      const value = { ...stored.value, state: 'CONTAINER_CREATED', starting: true, shim: null };
      writeFileSync(join(folder, 'state.json'), JSON.stringify({ ...stored, value }));
      rmSync(join(folder, 'pid'), { force: true });
      await runtime.start();
      // A process that has just begun does not show its environment yet.
      const pids = await eventually('its processes are known', () => {
        const all = [...marked(id)];
        return all.length === 0 ? undefined : all;
      });
      for (const pid of pids) signal(pid, 'SIGKILL');
      expect(await c.exited(id)).toMatchObject({ exitCode: 255, reason: 'ContainerStatusUnknown' });
    });

    it('takes no process for its own that only has the pid of one: after a reboot nothing is signalled', async () => {
      const { pod, sandboxId } = await newPod();
      const id = await c.run(pod, sh('sleep 1000'), sandboxId);
      const others = marked(id);
      await runtime.kill();
      const file = join(runtime.rootDir, 'sandbox/containers', id, 'state.json');
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
      await runtime.start();
      expect(await c.status(id)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 255, reason: 'ContainerStatusUnknown' });
      await c.call('RemovePodSandbox', { podSandboxId: sandboxId });
      // The shell may have started its sleep only after they were counted.
      expect(marked(id)).toEqual(expect.arrayContaining(others));
      for (const pid of marked(id)) signal(pid, 'SIGKILL');
    });

    it('gives each container its own processes, host name and mounts where it says that it can, and the host’s where not', async () => {
      const { info } = await c.call('Status', { verbose: true });
      const { kind } = JSON.parse(info.isolation ?? '{}') as { kind: string };
      if (user.args !== undefined) expect(kind).toBe('plain');
      const hosts = join(runtime.rootDir, 'hosts');
      writeFileSync(hosts, '127.0.0.1 only-here\n', { mode: 0o644 });
      const { lines } = await runToEnd(
        sh(
          'hostname; ls /proc | grep -c "^[0-9]"; grep -c only-here /etc/hosts; [ "$NS" ] && (echo x >>/etc/hosts) 2>/dev/null && echo writable; true',
          {
            // Never writes where the mount is not: that would be the host's own file.
            envs: kind === 'namespaces' ? [{ key: 'NS', value: '1' }] : [],
            mounts: [{ containerPath: '/etc/hosts', hostPath: hosts, readonly: true }],
          },
        ),
      );
      const [name, processes, own, writable] = lines.map((l) => l.text);
      expect(name).toBe(kind === 'namespaces' ? `pod-${serial}` : hostname());
      expect(Number(processes)).toBeLessThanOrEqual(kind === 'namespaces' ? 5 : Number.POSITIVE_INFINITY);
      expect(own).toBe(kind === 'namespaces' ? '1' : '0');
      if (kind === 'namespaces') expect(writable).toBeUndefined();
      expect(readFileSync(hosts, 'utf8')).toBe('127.0.0.1 only-here\n');
    });

    it('leaves no zombies', async () => {
      await runToEnd(sh('true'));
      await eventually('no zombie child of the runtime', () => {
        const zombies = scanProcesses().filter((p) => p.ppid === runtime.pid() && p.state === 'Z');
        return zombies.length === 0 ? true : undefined;
      });
      expect(readStat(runtime.pid())?.state).not.toBe('Z');
    });

    it('refuses what it cannot honour, naming it', async () => {
      const { pod, sandboxId } = await newPod();
      const create = (linux: NonNullable<ContainerConfig['linux']>['securityContext'], more: Partial<ContainerConfig> = {}) =>
        c.call('CreateContainer', {
          podSandboxId: sandboxId,
          config: sh('true', { ...(linux === undefined ? {} : { linux: { securityContext: linux } }), ...more }),
          sandboxConfig: pod,
        });
      await expect(create({ readonlyRootfs: true })).rejects.toThrow(/readOnlyRootFilesystem/);
      await expect(create({ seccomp: { profileType: 'RuntimeDefault' } })).rejects.toThrow(/seccompProfile RuntimeDefault/);
      await expect(create(undefined, { tty: true })).rejects.toThrow(/tty/);
      await expect(create(undefined, { mounts: [{ containerPath: '/no/such/target', hostPath: '/tmp' }] })).rejects.toThrow(
        /\/no\/such\/target/,
      );
      const ownUid = user.uid ?? process.getuid?.() ?? 0;
      if (ownUid !== 0) await expect(create({ runAsUser: { value: '4321' } })).rejects.toThrow(/runAsUser 4321/);
      expect((await c.call('ListContainers', { filter: { podSandboxId: sandboxId } })).containers).toEqual([]);
    });

    it('runs as the user asked for, or as its own', async () => {
      const uid = user.uid ?? process.getuid?.() ?? 0;
      const asked = uid === 0 ? 4321 : uid;
      const { lines } = await runToEnd(
        sh('id -u; id -g; grep NoNewPrivs /proc/self/status | tr -d "\\t"', {
          linux: { securityContext: { runAsUser: { value: String(asked) }, runAsGroup: { value: String(asked) }, noNewPrivs: true } },
        }),
      );
      expect(lines.map((l) => l.text)).toEqual([String(asked), String(asked), 'NoNewPrivs:1']);
    });
  });
}
