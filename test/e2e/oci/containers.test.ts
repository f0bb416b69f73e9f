/** Containers and networks of the kind `oci`: as root, and as a user who is not. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { signal } from '@actorlet/runtimes/src/process/container/procfs.ts';
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { calls, containerConfig, eventually, podConfig } from '../../../packages/runtimes/test/conformance.ts';
import { logLines, marked, markedAll, startRuntime, type TestRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import { openStreams, resultOf } from '../../../packages/runtimes/test/remoteClient.ts';
import { createProber } from '../../../src/boot/dependencies/prober.ts';
import type { ContainerConfig, PodSandboxConfig } from '../../../src/machines/wire/cri.ts';
import { rotating } from '../../rotation.ts';
import { busyboxFiles } from '../lab/images.ts';
import { until } from '../lab/ports.ts';
import { startRegistry } from '../lab/registry.ts';
import { canRunOci, imageParts, makeRig, type Rig, USER_ID } from './rig.ts';

const CONFIG = { Env: ['FROM_IMAGE=1', 'BOTH=image'], User: '1000:100', WorkingDir: '/tmp', Entrypoint: ['sh', '-c'], Cmd: ['pwd'] };
const SERVER = 'while :; do printf "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok" | nc -l -p 8080; done';

/** With a terminal; gives what it wrote and how it ended. */
async function execTty(
  c: ReturnType<typeof calls>,
  o: { containerId: string; cmd: string[]; input: string; when?: 'prompted' | 'at once'; answer?: string },
): Promise<{ out: string; exitCode: number | null; error: string }> {
  const { url } = await c.call('Exec', {
    ...{ containerId: o.containerId, cmd: o.cmd },
    tty: true,
    stdin: true,
    stdout: true,
    stderr: false,
  });
  const s = await openStreams(url, { names: ['error', 'stdin', 'stdout', 'resize'] });
  // As a person types: once there is a prompt.
  if (o.when !== 'at once' && o.input !== '') await eventually('a prompt', () => s.text('stdout').includes('> ') || undefined);
  if (o.input !== '') s.write('stdin', o.input);
  const { answer = '' } = o;
  if (answer !== '') {
    await eventually('its answer', () => s.text('stdout').includes(answer) || undefined);
    s.write('stdin', '\n');
  }
  await s.closed;
  const { stdout: out, exitCode, error } = resultOf(s);
  return { out, exitCode, error };
}

// `conformance.test.ts` of the same commit runs as the other.
for (const who of rotating('users of kind oci', ['root', 'user'] as const, 2))
  describe.runIf(canRunOci())(`kind oci as ${who}`, () => {
    let rig: Rig;
    let runtime: TestRuntime;
    let c: ReturnType<typeof calls>;
    let image = '';
    let serial = 0;
    let ran: string[] = [];
    beforeAll(async () => {
      rig = makeRig();
      const user = who === 'user' ? { uid: USER_ID, launch: rig.launch, env: rig.env } : {};
      runtime = await startRuntime({ ...user, args: ['--kind', 'oci'] });
      c = calls(runtime.cri);
      const registry = await startRegistry({ username: '', password: '', parts: imageParts(busyboxFiles(), { config: CONFIG }) });
      image = (await c.call('PullImage', { image: { image: registry.image } })).imageRef;
      await registry.stop();
      await loadImages(join(runtime.rootDir, 'actorlet.sock'), { file: rig.archive, name: '' });
    });
    afterAll(async () => {
      await runtime.close();
      rig.close();
      await until('nothing of it is left', () => ![...markedAll().keys()].some((id) => ran.includes(id)));
    });

    const newPod = async (
      more: Partial<PodSandboxConfig> = {},
      network: 'POD' | 'NODE' = 'POD',
      pid: 'CONTAINER' | 'POD' = 'CONTAINER',
    ) => {
      const pod = {
        ...podConfig(`oci-${who}-${++serial}`, { logDirectory: join(runtime.rootDir, 'logs', String(serial)) }),
        linux: { securityContext: { namespaceOptions: { network, pid, ipc: 'POD' as const } } },
        ...more,
      };
      const { podSandboxId } = await c.call('RunPodSandbox', { config: pod });
      ran.push(podSandboxId);
      const { status } = await c.call('PodSandboxStatus', { podSandboxId });
      return { pod, podSandboxId, ip: status?.network?.ip ?? '' };
    };
    type Pod = Awaited<ReturnType<typeof newPod>>;
    const start = async (p: Pod, config: Partial<ContainerConfig>, name = 'main') => {
      const id = await c.run(p.pod, containerConfig(name, image, config), p.podSandboxId);
      ran.push(id);
      return id;
    };
    const runToEnd = async (p: Pod, config: Partial<ContainerConfig>, name = 'main') => {
      const end = await c.exited(await start(p, config, name));
      return { end, out: logLines(end.logPath).map((l) => l.text) };
    };
    const sh = (script: string, more: Partial<ContainerConfig> = {}): Partial<ContainerConfig> => ({
      command: ['sh', '-c', script],
      ...more,
    });
    const security = (s: NonNullable<ContainerConfig['linux']>['securityContext']) => ({
      linux: s === undefined ? {} : { securityContext: s },
    });

    it('takes command, user, environment, folder and host name from the image and the pod', async () => {
      const p = await newPod();
      expect((await runToEnd(p, {})).out).toEqual(['/tmp']);
      const envs = [{ key: 'BOTH', value: 'pod' }];
      const asked = await runToEnd(p, sh('id -u; id -g; echo $FROM_IMAGE $BOTH; hostname; cat /etc/hostname', { envs }), 'asked');
      expect(asked.out).toEqual(['1000', '100', '1 pod', p.pod.hostname, p.pod.hostname]);
      const other = security({ runAsUser: { value: '65534' }, supplementalGroups: ['77'] });
      expect((await runToEnd(p, sh('id -u; id -G; echo to-stdout >/dev/stdout', other), 'other')).out).toEqual([
        '65534',
        '65534 77',
        'to-stdout',
      ]);
      expect((await runToEnd(p, sh('kill -9 $$; exit 4'), 'code')).end.exitCode).toBe(4);
      await expect(start(p, { command: ['no-such-command'] }, 'absent')).rejects.toThrow(/no-such-command/);
    });

    it('gives a container what the spec of its CDI device asks for', async () => {
      const [folder, kind] = ['/var/run/cdi', `e2e.example.com/${who}-${process.pid}`];
      const made = mkdirSync(folder, { recursive: true });
      const file = join(folder, `actorlet-e2e-${who}-${process.pid}.json`);
      const mounts = [{ hostPath: rig.dir, containerPath: '/of-device', options: ['ro'] }];
      const containerEdits = { env: ['OF_DEVICE=yes'], mounts, deviceNodes: [{ path: '/dev/given', hostPath: '/dev/null' }] };
      writeFileSync(file, JSON.stringify({ cdiVersion: '0.6.0', kind, devices: [{ name: 'one', containerEdits }] }));
      try {
        const p = await newPod();
        const script = 'echo $OF_DEVICE; test -c /dev/given && echo device; test -d /of-device && echo mount';
        const { out } = await runToEnd(p, sh(script, { CDIDevices: [{ name: `${kind}=one` }] }));
        expect(out).toEqual(['yes', 'device', 'mount']);
        await expect(start(p, { CDIDevices: [{ name: `${kind}=two` }] }, 'absent')).rejects.toThrow(
          `unresolvable CDI device ${kind}=two: it is not in`,
        );
      } finally {
        rmSync(made ?? file, { recursive: true, force: true });
      }
    });

    it('gives each container a root file system of its own, or a read-only one, and mounts as asked', async () => {
      const p = await newPod();
      const root = { runAsUser: { value: '0' } };
      await runToEnd(p, sh('echo mine >/mine', security(root)), 'writes');
      expect((await runToEnd(p, sh('ls /mine 2>/dev/null || echo clean', security(root)), 'reads')).out).toEqual(['clean']);
      const folder = join(rig.dir, 'home', `volume-${serial}`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'given'), 'given\n');
      const mounts = [
        { containerPath: '/data', hostPath: folder, readonly: true },
        { containerPath: '/new/path', hostPath: folder },
      ];
      const script = 'cat /data/given; touch /data/x 2>/dev/null || echo ro; touch /root-is-ro 2>/dev/null || echo ro-root; ls /new/path';
      const { out } = await runToEnd(p, sh(script, { mounts, ...security({ ...root, readonlyRootfs: true }) }), 'mounts');
      expect(out).toEqual(['given', 'ro', 'ro-root', 'given']);
    });

    it('applies capabilities, no-new-privileges and the default seccomp profile', async () => {
      const p = await newPod();
      const status = 'grep -E "CapBnd|NoNewPrivs|Seccomp:" /proc/self/status | tr -d "\\t"';
      const root = { runAsUser: { value: '0' } };
      const strict = security({
        ...root,
        capabilities: { addCapabilities: ['NET_BIND_SERVICE'], dropCapabilities: ['ALL'] },
        noNewPrivs: true,
        seccomp: { profileType: 'RuntimeDefault' },
      });
      expect((await runToEnd(p, sh(status, strict), 'strict')).out).toEqual(['CapBnd:0000000000000400', 'NoNewPrivs:1', 'Seccomp:2']);
      expect((await runToEnd(p, sh(status, security(root)), 'default')).out).toEqual([
        'CapBnd:00000000a80425fb',
        'NoNewPrivs:0',
        'Seccomp:0',
      ]);
      await expect(start(p, { ...sh('true'), ...security({ apparmor: { profileType: 'RuntimeDefault' } }) }, 'refused')).rejects.toThrow(
        /appArmor/,
      );
    });

    it('runs commands beside: output, exit code, missing commands, timeouts', async () => {
      const p = await newPod();
      const id = await start(p, sh('sleep 1000'));
      const exec = (cmd: string[], timeout = 0) => c.call('ExecSync', { containerId: id, cmd, timeout });
      const ok = await exec(['sh', '-c', 'id -u; echo $BOTH; cat; echo err >&2; exit 3']);
      expect({ ...ok, stdout: String(Buffer.from(ok.stdout)), stderr: String(Buffer.from(ok.stderr)) }).toEqual({
        ...{ exitCode: 3, stdout: '1000\nimage\n', stderr: 'err\n' },
      });
      await expect(exec(['no-such-command'])).rejects.toThrow(/no-such-command/);
      await expect(execTty(c, { containerId: id, cmd: ['no-such-command'], input: '' })).resolves.toMatchObject({
        error: expect.stringContaining('no-such-command'),
      });
      const prompt = ['sh', '-c', 'printf "> "; test -t 0 && read x && echo "got $x"; exit 5'];
      const typed = await execTty(c, { containerId: id, cmd: prompt, input: 'hello\n' });
      expect(typed).toMatchObject({ exitCode: 5, out: expect.stringContaining('got hello') });
      // Typed before the command has its terminal: nothing is lost, and Ctrl-C ends the command alone.
      // It ends once its answer was seen: of a command that ends at once crun 1.8 may lose the last output on a busy machine.
      const script = 'read x; echo "got $x"; read y; exit 5';
      const early = (typed: string, answer = '') => {
        const ask = { containerId: id, cmd: ['sh', '-c', script], input: typed, when: 'at once' as const, answer };
        return Promise.all([1, 2, 3, 4].map(() => execTty(c, ask)));
      };
      const said = { exitCode: 5, out: expect.stringMatching(/^hello\r\ngot hello\r\n/), error: '' };
      expect(await early('hello\n', 'got hello')).toEqual(Array(4).fill(said));
      expect(await early('\u0003')).toEqual(Array(4).fill(expect.objectContaining({ exitCode: 130 })));
      await expect(exec(['sleep', '987'], 1)).rejects.toThrow(/timed out/);
      const left = await exec(['sh', '-c', 'ps | grep -c "[s]leep 987"']);
      expect(String(Buffer.from(left.stdout)).trim()).toBe('0');
      expect(Number((await c.call('ContainerStats', { containerId: id })).stats?.memory?.rssBytes?.value)).toBeGreaterThan(0);
    });

    it('shares the processes of a pod that asks for it', async () => {
      const p = await newPod({}, 'POD', 'POD');
      const shared = { linux: { securityContext: { namespaceOptions: { pid: 'POD' as const } } } };
      const id = await start(p, sh('sleep 4321', shared), 'one');
      expect(Number((await runToEnd(p, sh('ps | grep -c "[s]leep 4321"', shared), 'two')).out[0])).toBeGreaterThan(0);
      await c.call('StopContainer', { containerId: id, timeout: 0 });
      await expect.poll(() => marked(id)).toEqual([]);
    });

    it('gives each pod a network of its own, which probes reach', async () => {
      const pods = [await newPod(), await newPod()];
      const prober = createProber(layout(runtime.rootDir).streaming);
      const { signal: never } = new AbortController();
      const get = (ip: string, port = 8080) =>
        prober.httpGet(`http://${ip}:${port}/`, { headers: {}, host: null, bytesMax: 1000, signal: never });
      for (const p of pods) {
        await start(p, sh(SERVER));
        expect(p.ip).toMatch(/^127\./);
        const answer = await eventually('the server answers', () => get(p.ip).catch(() => undefined));
        expect([answer.status, String(Buffer.from(answer.body))]).toEqual([200, 'ok']);
        await expect(prober.tcpDial({ host: p.ip, port: 8081 }, { signal: never })).rejects.toThrow(/ECONNREFUSED/);
        const health = await prober.grpcHealth({ host: p.ip, port: 8081 }, { service: '', userAgent: 'test', signal: never });
        expect(health).toMatchObject({ ok: false, code: 14 });
      }
      expect(pods[0]?.ip).not.toBe(pods[1]?.ip);
      const host = await newPod({}, 'NODE');
      expect(host.ip).toBe('');
      const interfaces = (await runToEnd(host, sh('ls /sys/class/net | wc -l; cat /etc/hosts | wc -l'), 'net')).out;
      expect(Number(interfaces[0])).toBeGreaterThan(0);
    });

    it('sets sysctls of the pod’s network, and refuses those that cannot be set', async () => {
      const securityContext = { namespaceOptions: { network: 'POD' as const, pid: 'CONTAINER' as const, ipc: 'POD' as const } };
      const sysctls = { 'net.ipv4.ip_unprivileged_port_start': '7' };
      const p = await newPod({ linux: { securityContext, sysctls } });
      expect((await runToEnd(p, sh('cat /proc/sys/net/ipv4/ip_unprivileged_port_start'))).out).toEqual(['7']);
      await expect(newPod({ linux: { securityContext, sysctls: { 'net.no.such': '1' } } })).rejects.toThrow(/net\/no\/such/);
    });

    it('forwards host ports, and gives nameservers that the pod reaches', async () => {
      const hostPort = 20_000 + Math.floor(Math.random() * 10_000);
      const p = await newPod({
        portMappings: [{ protocol: 'TCP', containerPort: 8080, hostPort, hostIp: '127.0.0.1' }],
        dnsConfig: { servers: ['127.0.0.53', '192.0.2.53'], searches: ['example.test'], options: [] },
      });
      await start(p, sh(SERVER));
      const get = () =>
        new Promise<string>((resolve, reject) => {
          const req = request({ host: '127.0.0.1', port: hostPort, agent: false }, (res) =>
            res.on('data', (d: Buffer) => resolve(String(d))),
          );
          req.on('error', reject).end();
        });
      expect(await eventually('the host port answers', () => get().catch(() => undefined))).toBe('ok');
      const { out } = await runToEnd(p, sh('cat /etc/resolv.conf; ip route | wc -l'), 'dns');
      expect(out.slice(0, 1)).toEqual(['search example.test']);
      expect(out.join()).toMatch(/nameserver (169\.254\.0\.53|10\.0\.2\.3),nameserver 192\.0\.2\.53/);
      expect(Number(out.at(-1))).toBeGreaterThan(0);
    });

    it('finds everything again after the runtime was killed', async () => {
      const p = await newPod();
      const lives = await start(p, sh(SERVER), 'lives');
      const ends = await start(p, sh('sleep 1; exit 9'), 'ends');
      await runtime.kill();
      await eventually('it has ended', () => existsSync(layout(runtime.rootDir).exit(ends)) || undefined);
      await runtime.start();
      expect(await c.exited(ends)).toMatchObject({ exitCode: 9 });
      expect((await c.status(lives)).state).toBe('CONTAINER_RUNNING');
      expect((await c.call('ExecSync', { containerId: lives, cmd: ['true'], timeout: 60 })).exitCode).toBe(0);
      const prober = createProber(layout(runtime.rootDir).streaming);
      const dial = () => prober.tcpDial({ host: p.ip, port: 8080 }, { signal: new AbortController().signal });
      await eventually('its network is reached', () =>
        dial()
          .then(() => true as const)
          .catch(() => undefined),
      );
      await c.call('StopContainer', { containerId: lives, timeout: 0 });
      expect(await c.status(lives)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 137 });
    });

    it('says that a pod is not ready whose namespaces were ended from outside, and removes it', async () => {
      const p = await newPod();
      for (const pid of marked(p.podSandboxId)) signal(pid, 'SIGKILL');
      const { status } = await eventually('it is seen', async () => {
        const s = await c.call('PodSandboxStatus', { podSandboxId: p.podSandboxId });
        return s.status?.state === 'SANDBOX_NOTREADY' ? s : undefined;
      });
      expect(status?.network?.ip).toBe('');
      await c.call('RemovePodSandbox', { podSandboxId: p.podSandboxId });
    });

    it('keeps built-in images beside them', async () => {
      const p = await newPod();
      await c.call('PullImage', { image: { image: 'actorlet.dev/echo' } });
      const config = containerConfig('echo', 'actorlet.dev/echo', { args: ['still', 'here'] });
      const id = await c.run(p.pod, config, p.podSandboxId);
      ran = [...ran, id];
      const end = await c.exited(id);
      expect(readFileSync(end.logPath, 'utf8')).toContain('still here');
    });
  });
