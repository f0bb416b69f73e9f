/** The kind `oci` where slirp4netns is installed and pasta is not: as root, and as a user who is not. */
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { loadImages } from '@actorlet/admin/src/images.ts';
import { describe, expect, it, onTestFinished } from 'vitest';
import { calls, containerConfig, eventually, podConfig } from '../../../packages/runtimes/test/conformance.ts';
import { logLines, markedAll, startRuntime } from '../../../packages/runtimes/test/processRuntime.ts';
import type { PortMapping } from '../../../src/machines/wire/cri.ts';
import { canRunOci, makeRig, USER_ID } from './rig.ts';

/** A folder of links to every program of this machine but one. */
function pathWithout(hidden: string, dir: string): string {
  mkdirSync(dir);
  for (const from of ['/usr/sbin', '/usr/bin'])
    for (const name of readdirSync(from))
      if (name.split('.')[0] !== hidden && !readdirSync(dir).includes(name)) symlinkSync(join(from, name), join(dir, name));
  return dir;
}

describe.runIf(canRunOci()).each(['root', 'user'] as const)('kind oci on slirp4netns as %s', (who) => {
  it('has a way out, host ports, nameservers, and words for a port that is taken; nothing is left', async () => {
    const rig = makeRig();
    onTestFinished(() => rig.close());
    const user = who === 'user' ? { uid: USER_ID, launch: rig.launch } : {};
    const env = { ...(who === 'user' ? rig.env : {}), PATH: pathWithout('pasta', join(rig.dir, 'bin')) };
    const runtime = await startRuntime({ ...user, env, args: ['--kind', 'oci'] });
    const ran: string[] = [];
    try {
      const c = calls(runtime.cri);
      expect(JSON.parse((await c.call('Status', { verbose: true })).info.oci ?? '{}')).toMatchObject({
        programs: expect.stringContaining('slirp4netns'),
        network: { message: '' },
      });
      await loadImages(join(runtime.rootDir, 'actorlet.sock'), { file: rig.archive, name: '' });
      const newPod = async (name: string, portMappings: PortMapping[]) => {
        const pod = podConfig(name, { logDirectory: join(runtime.rootDir, 'logs') });
        pod.linux = { securityContext: { namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } } };
        const config = { ...pod, portMappings, dnsConfig: { servers: ['127.0.0.53'], searches: [], options: [] } };
        const { podSandboxId } = await c.call('RunPodSandbox', { config });
        ran.push(podSandboxId);
        return { config, podSandboxId };
      };
      const hostPort = 20_000 + Math.floor(Math.random() * 10_000);
      const mapping = { protocol: 'TCP' as const, containerPort: 8080, hostPort, hostIp: '127.0.0.1' };
      const web = await newPod('slirp', [mapping]);
      const run = (name: string, script: string) =>
        c.run(web.config, containerConfig(name, 'busybox', { command: ['sh', '-c', script], args: [] }), web.podSandboxId);
      ran.push(await run('web', 'mkdir /www; echo welcome >/www/index.html; exec httpd -f -p 8080 -h /www'));
      const get = () =>
        new Promise<string>((resolve, reject) => {
          const req = request({ host: '127.0.0.1', port: hostPort, agent: false }, (res) =>
            res.on('data', (d: Buffer) => resolve(String(d))),
          );
          req.on('error', reject).end();
        });
      expect(await eventually('the host port answers', () => get().catch(() => undefined))).toBe('welcome\n');
      const end = await c.exited(await run('looks', 'cat /etc/resolv.conf; ip route'));
      expect(logLines(end.logPath).map((l) => l.text)).toEqual(
        expect.arrayContaining(['nameserver 10.0.2.3', expect.stringMatching(/^default via 10\.0\.2\.2/)]),
      );
      const taken = createServer();
      onTestFinished(() => void taken.close());
      await new Promise<void>((resolve) => taken.listen(hostPort + 1, '127.0.0.1', () => resolve()));
      await expect(newPod('taken', [{ ...mapping, hostPort: hostPort + 1 }])).rejects.toThrow(
        new RegExp(`host port ${hostPort + 1} of 127.0.0.1 cannot be opened, most likely since it is taken`),
      );
      expect((await c.call('ListPodSandbox', {})).items).toHaveLength(1);
    } finally {
      await runtime.close();
    }
    await expect.poll(() => [...markedAll().keys()].filter((id) => ran.includes(id))).toEqual([]);
  });
});
