/** Limits of `embedded://oci` on cgroup v2: as root in the groups of pods, and as a user with a delegated group and without. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { hasMachine, Machine, staticPod } from '../vm/machine.ts';

const vm = new Machine(`test-${randomBytes(4).toString('hex')}`);
const V2 = '/sys/fs/cgroup';
const MI = 1024 * 1024;
const USER = 'tester';
/** crun of this host, with what the machine's system does not have; images are laid down as the runtime keeps them. */
const BORROWED = ['crun', 'newuidmap', 'newgidmap'].map((name) =>
  execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(),
);
const LIBRARIES = execFileSync('sh', ['-c', 'ldd "$0" | grep -oE "/[^ ]*libyajl[^ ]*"', BORROWED[0] ?? ''], { encoding: 'utf8' }).trim();
const IMAGE_ID = createHash('sha256').update('busybox').digest('hex');
const RECORD = {
  ...{ id: `sha256:${IMAGE_ID}`, tags: ['docker.io/library/busybox:latest'], digests: [], bytes: 1, inodes: 1 },
  config: { env: [], entrypoint: [], cmd: ['sh'], user: '', workingDir: '', stopSignal: '' },
};
/** Only their versions are asked for: nothing is pulled here. */
const STUBS = ['skopeo', 'umoci'].map(
  (name) => `printf '#!/bin/sh\\necho ${name} version 9.9\\n' >/usr/local/bin/${name}; chmod 755 /usr/local/bin/${name}`,
);

const image = (
  root: string,
) => `d=${root}/sandbox/images/${IMAGE_ID}; mkdir -p $d/rootfs/bin $d/rootfs/etc $d/rootfs/dev $d/rootfs/proc $d/rootfs/sys
  cp /usr/bin/busybox $d/rootfs/bin/; for a in sh sleep cat tail dd seq echo; do ln -sf busybox $d/rootfs/bin/$a; done
  echo '${JSON.stringify(RECORD)}' >$d/record.json; chmod 700 ${root}/sandbox`;

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  const tar = execFileSync('tar', ['-czhf', '-', ...BORROWED, ...LIBRARIES.split('\n')], {
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1 << 26,
  });
  await vm.run('base64 -d | tar -xzf - -C /; chmod u+s /usr/bin/newuidmap /usr/bin/newgidmap; ldconfig', { input: tar.toString('base64') });
  const user = `${USER}:x:4242:4242::/home/${USER}:/bin/sh`;
  const ids = `echo ${USER}:500000:65536 | tee /etc/subuid >/etc/subgid`;
  await vm.run(
    [
      ...STUBS,
      `echo ${user} >>/etc/passwd; echo ${USER}:x:4242: >>/etc/group; ${ids}; mkdir -p /home/${USER}`,
      image('/root/actorlet/root'),
    ].join('\n'),
  );
}, 300_000);
afterAll(() => vm.dispose());

const pod = (name: string, command: string[], resources: object) =>
  staticPod(name, {
    uid: `uid-${name}`,
    spec: {
      restartPolicy: 'Never',
      containers: [
        {
          ...{ name: 'main', image: 'busybox', imagePullPolicy: 'IfNotPresent', command, resources },
          terminationMessagePolicy: 'FallbackToLogsOnError',
        },
      ],
    },
  });

it('ends what uses more memory, and limits CPU, in the group of the pod, whose number of processes is limited', async () => {
  await vm.start({ containerRuntimeEndpoint: 'embedded://oci', podPidsLimit: 40 });
  const limits = { memory: '32Mi', cpu: '200m' };
  await vm.put('eats', pod('eats', ['tail', '/dev/zero'], { limits }));
  await vm.put('lives', pod('lives', ['sleep', '1000'], { limits }));
  await vm.running('lives');
  const eaten = await vm.wait('the one that eats to be ended', async () =>
    (await vm.pods()).find((p) => p.metadata.name === 'eats-vm' && p.status.phase === 'Failed'),
  );
  expect(JSON.stringify(eaten.status)).toContain('"exitCode":137,"reason":"OOMKilled"');
  const group = await vm.run(`dirname $(find ${V2}/kubepods -path '*uid-lives*' -name run)`);
  const read = (file: string) => vm.run(`cat ${group}/run/${file}`);
  expect([await read('memory.max'), await read('cpu.max')]).toEqual([String(32 * MI), '20000 100000']);
  // Of the pod, and so of all below it.
  expect(await vm.run(`cat ${group}/../pids.max`)).toBe('40');
  const forks = pod('forks', ['sh', '-c', 'for i in $(seq 60); do sleep 1000 & done'], {});
  await vm.put('forks', forks);
  const refused = await vm.wait('the one that forks to be refused', async () =>
    (await vm.pods()).find((p) => p.metadata.name === 'forks-vm' && p.status.phase === 'Failed'),
  );
  expect(JSON.stringify(refused.status)).toContain("can't fork");
  expect(await vm.log()).toContain(`CPU and memory limits are applied`);
  await vm.clear();
  await vm.wait('the groups to be gone', async () => (await vm.run(`find ${V2}/kubepods -name run`)) === '');
}, 300_000);

it('applies them for a user in a group that is delegated to it, and says so where none is, and runs pods all the same', async () => {
  const home = `/home/${USER}`;
  const config = {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', containerRuntimeEndpoint: 'embedded://oci' },
    ...{ staticPodPath: `${home}/manifests`, podLogsDir: `${home}/logs`, address: '127.0.0.1', readOnlyPort: 10_256, healthzPort: 10_249 },
    ...{ enableServer: false, failSwapOn: false, resolvConf: '', cgroupsPerQOS: false, enforceNodeAllocatable: [] },
    ...{ evictionHard: { 'memory.available': '0%' }, imageGCHighThresholdPercent: 100 },
  };
  const flags = `--config=${home}/config.yaml --root-dir=${home}/root --cert-dir=${home}/pki --hostname-override=user`;
  const run = (unit: string, properties: string, rest: string) =>
    vm.run(
      `systemd-run --quiet --collect --unit=${unit} --uid=${USER} ${properties} -p KillMode=mixed -p WorkingDirectory=/ -E HOME=${home} ${rest}`,
    );
  const log = () => vm.run(`cat ${home}/log`);
  const pods = () => vm.run('curl -sf http://127.0.0.1:10256/pods');
  await vm.run(`mkdir -p ${home}/manifests ${home}/logs; cat >${home}/config.yaml`, { input: JSON.stringify(config) });
  await vm.run(`${image(`${home}/root`)}; touch ${home}/log; chown -R ${USER}: ${home}`);
  const limits = { memory: '32Mi', cpu: '300m' };
  await vm.run(`cat >${home}/manifests/eats.json`, { input: JSON.stringify(pod('eats', ['tail', '/dev/zero'], { limits })) });
  await vm.run(`cat >${home}/manifests/lives.json`, { input: JSON.stringify(pod('lives', ['sleep', '1000'], { limits })) });
  const output = `-p StandardOutput=append:${home}/log -p StandardError=append:${home}/log`;
  await run('usernode', `-p Delegate=yes -p DelegateSubgroup=node ${output}`, `/share/bin/actorlet ${flags}`);
  await vm.wait('the pod to be ended', async () => (await pods()).includes('"reason":"OOMKilled"'));
  expect(await log()).toContain('CPU and memory limits are applied');
  const group = await vm.run(`dirname $(find ${V2}/system.slice/usernode.service -name run | head -1)`);
  await vm.wait('the limits of the other', () =>
    vm.holds(`grep -rqx 33554432 ${group}/../*/run/memory.max && grep -rqx '30000 100000' ${group}/../*/run/cpu.max`),
  );
  await vm.run('systemctl stop usernode');
  await vm.run(`rm -rf ${home}/root/sandbox/containers/* ${home}/root/sandbox/sandboxes/* ${home}/manifests/eats.json; : >${home}/log`);

  await run('plainnode', output, `/share/bin/actorlet ${flags}`);
  await vm.wait('the pod to run', async () => (await pods()).includes('"phase":"Running"'));
  expect(await log()).toMatch(
    /CPU and memory limits are not applied: no part of cgroup v2 is delegated to this user\. Start it with systemd-run/,
  );
  const check = await run('checks', '--wait --pipe', `/share/bin/actorlet --check ${flags}`).catch((error: Error) => error.message);
  expect(check).toContain('CPU and memory limits are not applied');
  await vm.run('systemctl stop plainnode');
}, 300_000);
