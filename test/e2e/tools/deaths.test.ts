/** What `actorctl deaths` keeps of pods that die or get stuck on a real containerd. */
import { readdirSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { DeathHead } from '../../../src/machines/reclaim/deaths/messages.ts';
import { type Daemon, NODE_NAME } from '../daemon.ts';
import type { Containerd } from '../lab/containerd.ts';
import { manifest, sh, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';
import { hostPid, running } from '../runtime.ts';

const SECRET = 'correct-horse-battery';
let lab: Containerd;
let daemon: Daemon;
/** Takes connections, and never answers. */
let silent: Server;

onContainerd(
  (made) => {
    ({ lab, daemon } = made);
    silent = createServer(() => {}).listen(0, '127.0.0.1');
  },
  { flags: ['--actorlet-deaths-stuck-after=5s'] },
);
afterAll(() => {
  silent?.close();
  silent?.closeAllConnections();
});

async function deaths(name: string): Promise<DeathHead[]> {
  const { deaths: all } = (await daemon.admin.json('/deaths')) as { deaths: DeathHead[] };
  return all.filter((d) => d.pod.name === `${name}-${NODE_NAME}`);
}

it('tells of each in plain words, with what a person needs, and without secrets', async () => {
  const probe = { exec: { command: ['sh', '-c', 'echo not well; exit 3'] }, periodSeconds: 1, failureThreshold: 2 };
  const hanging = `127.0.0.1:${(silent.address() as AddressInfo).port}/team/app:1`;
  const says = `echo "no db at postgres://app:${SECRET}@db/x"; echo key is $KEY; exit 3`;
  const volumes = [{ name: 'data', hostPath: { path: '/nowhere/at/all', type: 'Directory' } }];
  const pods = {
    hog: manifest('hog', [sh('main', 'echo eating; exec tail /dev/zero', { resources: { limits: { memory: '24Mi' } } })]),
    crash: manifest('crash', [sh('main', says, { env: [{ name: 'KEY', value: SECRET }] })]),
    shot: manifest('shot', [steady()]),
    ill: manifest('ill', [steady('main', { livenessProbe: probe })]),
    typo: manifest('typo', [{ ...steady(), command: ['/bin/bsuybox'] }]),
    pull: manifest('pull', [{ ...steady(), image: hanging, imagePullPolicy: 'Always' }]),
    gone: manifest('gone', [{ ...steady(), image: 'actorlet.test/nothing:1', imagePullPolicy: 'Never' }]),
    mount: manifest('mount', [steady('main', { volumeMounts: [{ name: 'data', mountPath: '/data' }] })], { spec: { volumes } }),
  };
  for (const [name, of] of Object.entries(pods)) daemon.put(`${name}.yaml`, of);
  const id = await daemon.wait('shot runs', async () => (await running(lab))['shot/main']?.split('#')[0]);
  process.kill(await hostPid(lab, id), 'SIGKILL');
  const expected: Record<keyof typeof pods, RegExp> = {
    hog: /^killed by the kernel: it reached its memory limit of 24 MiB, /,
    crash: /^exited with code 3, /,
    shot: /^ended by signal 9 \(SIGKILL\), /,
    ill: /^stopped by this node: its liveness probe failed \(not well\), /,
    typo: /^could not be started: RunContainerError: exec: "\/bin\/bsuybox": .*no such file or directory/,
    pull: new RegExp(`^has been pulling its image for .*: ${hanging}$`),
    gone: /^its image cannot be had: ErrImageNeverPull: /,
    mount: /^has been waiting for its volumes for /,
  };
  for (const [name, title] of Object.entries(expected))
    await daemon.wait(`a death of ${name} that says ${title}`, async () => (await deaths(name)).find((d) => title.test(d.title)));
  expect(JSON.parse(await daemon.ctl('deaths', '-o', 'json'))).toContainEqual(
    expect.objectContaining({ id: (await deaths('hog'))[0]?.id }),
  );

  const text = (name: string, ...more: string[]) => daemon.ctl('death', `${name}-${NODE_NAME}`, ...more);
  expect(await text('hog')).toContain('eating');
  expect(await text('crash')).toMatch(/no db at postgres:\/\/app:<masked>@db\/x\n.*key is <masked>/);
  expect(await text('mount')).toContain('/nowhere/at/all');
  const page = await text('crash', '-o', 'html');
  expect(page).toMatch(/^<!doctype html>[\s\S]*<svg [\s\S]*<\/html>\n$/);
  expect(`${page}${await text('crash', '-o', 'json')}`).not.toContain(SECRET);
  expect(await text('crash', '--private')).not.toContain('no db at');
  const dir = join(daemon.rootDir, 'actorlet/deaths');
  expect(new Set(readdirSync(dir).map((file) => statSync(join(dir, file)).mode & 0o777))).toEqual(new Set([0o600]));
});
