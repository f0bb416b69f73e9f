/** The Debian packages, on a machine with systemd: installed, run as a unit and as kubeadm's kubelet.service, removed. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { hasMachine, Machine } from './machine.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '..', '..', '..');
const id = randomBytes(4).toString('hex');
const debs = join(project, '.cache', `deb-${id}`);
const vm = new Machine(`deb-${id}`, { processor: 0 });
/** Config of the machine in the words of a user's file; every port is the default one. */
const CONFIG = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
  ...{ staticPodPath: '/etc/kubernetes/manifests', resolvConf: '', enableServer: false, failSwapOn: false },
};
/** As kubeadm writes it. */
const KUBEADM_DROP_IN = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS="
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;
const file = (name: string): string => {
  const found = readdirSync(debs).find((deb) => deb.startsWith(`${name}_`));
  if (found === undefined) throw new Error(`no package ${name} in ${debs}: ${readdirSync(debs).join(', ')}`);
  return join(debs, found);
};
const healthy = () => vm.holds('curl -sf http://127.0.0.1:10248/healthz');

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await run('sh', [join(project, 'scripts/deb.sh'), debs, '--as-built'], { cwd: project, timeout: 240_000 });
}, 300_000);
afterAll(async () => {
  await vm.dispose();
  rmSync(debs, { recursive: true, force: true });
});

it('run with the Node.js of the second package alone', async () => {
  const root = join(debs, 'root');
  for (const name of ['actorlet', 'actorlet-node']) await run('dpkg-deb', ['-x', file(name), root]);
  const { stdout } = await run(join(root, 'usr/bin/actorlet'), ['--version'], { env: { PATH: '/usr/bin:/bin' } });
  expect(stdout).toMatch(/^Kubernetes v1\.\d+\.\d+\+actorlet/);
  rmSync(root, { recursive: true });
}, 120_000);

it('are installed, run as actorlet.service and as the kubelet.service of kubeadm, and are removed', async () => {
  const put = (path: string, input: string) => vm.run(`mkdir -p $(dirname ${path}) && cat >${path}`, { input });
  await vm.run(`dpkg -i --force-depends /share/${relative(project, file('actorlet'))}`, { timeoutMs: 180_000 });
  expect(await vm.run('systemctl is-enabled actorlet || true')).toBe('disabled');
  await put('/etc/actorlet/config.yaml', JSON.stringify(CONFIG));
  const node = `ACTORLET_NODE=/share/${relative(project, process.execPath)}`;
  await put('/etc/default/actorlet', `${node}\nACTORLET_ARGS=--hostname-override=vm\n`);
  await vm.run('mkdir -p /etc/kubernetes/manifests && systemctl start actorlet', { timeoutMs: 150_000 });
  expect(await healthy()).toBe(true);
  expect(await vm.run('systemctl show actorlet -p ActiveState,StatusText --value')).toContain('active');
  expect(await vm.run(`${node} actorctl --socket=/var/lib/kubelet/actorlet.sock tree`)).toContain('podManager');
  await vm.run('systemctl stop actorlet');

  await put('/var/lib/kubelet/config.yaml', JSON.stringify(CONFIG));
  await put('/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--hostname-override=vm --node-labels=from=kubeadm"\n');
  await put('/etc/default/kubelet', `${node}\n`);
  await put('/etc/systemd/system/kubelet.service', '[Unit]\nDescription=kubelet\n[Service]\nExecStart=/usr/bin/kubelet\n');
  await put('/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', KUBEADM_DROP_IN);
  await vm.run('cp /usr/share/actorlet/20-actorlet.conf /etc/systemd/system/kubelet.service.d/ && systemctl daemon-reload');
  await vm.run('systemctl start kubelet');
  await vm.wait('kubelet.service to be healthy', healthy, 120_000);
  const args = await vm.run("tr '\\0' ' ' </proc/$(systemctl show kubelet -p MainPID --value)/cmdline");
  expect(args).toContain('--config=/var/lib/kubelet/config.yaml');
  expect(args).toContain('--node-labels=from=kubeadm');
  expect(await vm.run('pidof kubelet')).toBe(await vm.run('systemctl show kubelet -p MainPID --value'));
  await vm.run('systemctl stop kubelet');

  await vm.run('systemctl start actorlet && dpkg -r actorlet', { timeoutMs: 180_000 });
  expect(await vm.holds('systemctl is-active --quiet actorlet')).toBe(false);
  expect(await vm.holds('test -e /usr/bin/actorlet')).toBe(false);
  // What an administrator wrote stays until `dpkg --purge`.
  expect(await vm.holds('test -e /etc/actorlet/config.yaml')).toBe(true);
}, 900_000);
