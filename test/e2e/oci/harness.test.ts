/** Test nodes on runtime `oci`: one's own images, as root here; the same code runs without root (test/sandbox). */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { startNode } from '@actorlet/harness/src/index.ts';
import { describe, expect, it } from 'vitest';
import { CTL, DAEMON } from '../../programs.ts';
import { busyboxFiles } from '../lab/images.ts';
import { startRegistry } from '../lab/registry.ts';
import { canRunOci, imageParts, makeRig } from './rig.ts';

const WEB = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox
    imagePullPolicy: IfNotPresent
    command: [sh, -c, 'mkdir /www; echo fine >/www/index.html; echo serving; exec httpd -f -p 80 -h /www']
    readinessProbe: {httpGet: {port: 80}, periodSeconds: 1}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, emptyDir: {}}]
`;

describe.runIf(canRunOci())('a test node on runtime oci', () => {
  it('runs an image of an archive, probes it, keeps it over a crash of the daemon, and leaves nothing', async () => {
    const rig = makeRig();
    try {
      await using node = await startNode({ runtime: 'oci' });
      const loaded = await node.loadImages(rig.archive);
      expect(loaded[0]?.tags).toContain('docker.io/library/busybox:latest');
      const pod = await node.apply(WEB);
      await pod.ready();
      await pod.logged(/serving/);
      const before = (await node.containers()).map((c) => c.id);
      await node.kill('SIGKILL');
      await node.restart();
      await pod.ready();
      expect((await node.containers()).map((c) => c.id)).toEqual(before);
      await node.remove(pod);
      await node.dispose();
      expect(existsSync(node.dir)).toBe(false);
    } finally {
      rig.close();
    }
  });

  it('is where actorctl try runs an image of a registry, and ends with what the image does', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'actorlet-try-oci-'));
    const registry = await startRegistry({
      username: '',
      password: '',
      parts: imageParts(busyboxFiles(), { config: { Entrypoint: ['sh', '-c'], Cmd: ['exit 4'] } }),
    });
    try {
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'mine' },
        spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: registry.image }] },
      };
      writeFileSync(join(dir, 'pod.json'), JSON.stringify(pod));
      const args = [CTL, 'try', '--runtime', 'oci', '-f', join(dir, 'pod.json'), '-e', 'mine exit=4 within 60s'];
      const { stdout } = await promisify(execFile)(resolve('scripts/node'), args);
      expect(stdout).toMatch(/^held {6}mine {2}mine exit=4/m);
    } finally {
      await registry.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('is found by --check, program by program', () => {
    const node = resolve('scripts/node');
    const out = (() => {
      try {
        const args = [DAEMON, '--check', '-o', 'json', '--container-runtime-endpoint=embedded://oci', '--fail-swap-on=false'];
        return execFileSync(node, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
      } catch (error) {
        return (error as { stdout: string }).stdout;
      }
    })();
    const { findings } = JSON.parse(out) as { findings: { where: string; what: string }[] };
    for (const name of ['skopeo', 'umoci']) expect(findings.find((f) => f.where === name)?.what).toMatch(new RegExp(`/${name} \\d`));
  });
});
