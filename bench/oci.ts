/**
 * From a manifest to Ready, for a pod of an OCI image that is present on `embedded://oci`, against `crun run` of the same image
 * alone: the bound is 1.5 times that plus 150 ms. Needs crun, skopeo, umoci and busybox-static. Options: --rounds=20
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNode, type TestNode } from '@actorlet/harness/src/index.ts';
import { buildImages } from '../test/e2e/lab/images.ts';
import { numberOption, report, say, sleep, summary } from './lib/report.ts';

const rounds = numberOption('rounds', 20);
const FACTOR = 1.5;
const MORE_MS = 150;
const LOOK_EVERY_MS = 8;

const dir = mkdtempSync(join(tmpdir(), 'actorlet-oci-'));
const archive = join(dir, 'busybox.tar');
writeFileSync(archive, buildImages().busybox);
const run = (file: string, ...args: string[]) => execFileSync(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });

/** As a person would run it: unpacked, in namespaces of its own. */
function bundle(): string {
  run('skopeo', 'copy', '--quiet', `docker-archive:${archive}:busybox:latest`, `oci:${dir}/layout:image`);
  mkdirSync(join(dir, 'bundle'));
  run('umoci', 'raw', 'unpack', '--image', `${dir}/layout:image`, `${dir}/bundle/rootfs`);
  const mounts = Object.entries({ '/proc': 'proc', '/dev': 'tmpfs', '/sys': 'sysfs' }).map(([destination, type]) => ({
    destination,
    type,
    source: type,
  }));
  const namespaces = ['pid', 'mount', 'uts', 'ipc', 'network'].map((type) => ({ type }));
  const process = { args: ['sleep', '1000'], env: ['PATH=/bin'], cwd: '/', user: { uid: 0, gid: 0 } };
  writeFileSync(
    join(dir, 'bundle', 'config.json'),
    JSON.stringify({ ociVersion: '1.0.0', process, root: { path: 'rootfs' }, mounts, linux: { namespaces } }),
  );
  return join(dir, 'bundle');
}

const isReady = async (node: TestNode, name: string) => (await node.pods()).some((p) => p.name.startsWith(name) && p.ready);

/** A machine with both versions of cgroups is none for crun. */
const HIDE = 'if [ -e /sys/fs/cgroup/unified ]; then mount -t tmpfs none /sys/fs/cgroup/unified; fi; exec "$@"';

function crunMs(at: string, name: string): number {
  const crun = ['crun', '--cgroup-manager=disabled', '--root', join(dir, 'crun')];
  const script = `s=$(date +%s%N); ${crun.join(' ')} run -d -b ${at} ${name} </dev/null >/dev/null 2>&1; e=$(date +%s%N); ${crun.join(' ')} delete -f ${name}; echo $(((e-s)/1000))`;
  return Number(run('unshare', '--mount', 'sh', '-c', HIDE, 'bench', 'sh', '-c', script).toString()) / 1000;
}

try {
  const at = bundle();
  const alone = Array.from({ length: rounds }, (_, i) => crunMs(at, `bench-${i}`));
  await using node = await startNode({ runtime: 'oci' });
  await node.loadImages(archive);
  const pods: number[] = [];
  // The first ones compile the code that all others run.
  for (let i = -3; i < rounds; i++) {
    const container = { name: 'main', image: 'busybox', imagePullPolicy: 'IfNotPresent', command: ['sleep', '1000'] };
    const spec = { terminationGracePeriodSeconds: 0, dnsPolicy: 'Default', containers: [container] };
    const beganMs = performance.now();
    const pod = await node.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: `pod-${i + 3}` }, spec });
    // Looking without a pause would take the daemon's processor from it.
    while (!(await isReady(node, pod.name))) await sleep(LOOK_EVERY_MS);
    const tookMs = performance.now() - beganMs;
    if (i >= 0) pods.push(tookMs);
    say(`oci: ${pod.name} ready after ${Math.round(tookMs)} ms`);
    await node.remove(pod);
  }
  const bound = FACTOR * Number(summary(alone).p50) + MORE_MS;
  const median = Number(summary(pods).p50);
  say(
    `oci: ready after ${Math.round(median)} ms at the median; crun run takes ${Math.round(Number(summary(alone).p50))} ms, the bound is ${Math.round(bound)} ms`,
  );
  await report('oci', { rounds, crunRunMs: summary(alone), readyMs: summary(pods), boundMs: Math.round(bound), within: median <= bound });
} finally {
  rmSync(dir, { recursive: true, force: true });
}
