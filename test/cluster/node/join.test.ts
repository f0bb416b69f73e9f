/** docs/joining-a-cluster.md, line for line: only addresses, paths and ports are others here. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon, NODE_NAME } from '../../e2e/daemon.ts';
import { removeMounts } from '../../e2e/lab/cleanup.ts';
import { type ControlPlane, program, startControlPlane } from '../../e2e/lab/cluster/controlPlane.ts';
import { type Containerd, startContainerd } from '../../e2e/lab/containerd.ts';
import { until } from '../../e2e/lab/ports.ts';
import { IMAGE } from '../../e2e/manifests.ts';
import { freePort } from '../../freePort.ts';
import { LONG, STAY } from '../cluster.ts';

const project = join(import.meta.dirname, '../../..');
const END_TIMEOUT_MS = 20_000;
const run = promisify(execFile);

let plane: ControlPlane;
let lab: Containerd;
let dir = '';
let daemon: ChildProcess | undefined;
let blocks: string[] = [];

/** The shell blocks of a document. */
const shellBlocks = (document: string): string[] => [...document.matchAll(/```sh\n([\s\S]*?)```/g)].map((m) => m[1] ?? '');
/** Of the test's cluster and folders. */
const here = (text: string) =>
  text
    .replaceAll('https://SERVER:6443', plane.url)
    .replaceAll('/etc/kubernetes/pki/ca.crt', plane.ca.certFile)
    .replaceAll('/etc/kubernetes', dir)
    .replaceAll('sudo ', '');
async function type(lines: string): Promise<string> {
  const env = { PATH: `${dirname(program('kubectl'))}:${process.env.PATH}`, HOME: dir, KUBECONFIG: plane.adminKubeconfig };
  const { stdout } = await run('sh', ['-euc', lines], { cwd: dir, env, timeout: 120_000 });
  return stdout;
}
const log = () => readFileSync(join(dir, 'daemon.log'), 'utf8');
async function wait<T>(what: string, probe: () => Promise<T | false> | T | false): Promise<void> {
  await until(what, probe, LONG).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${log().split('\n').slice(-25).join('\n')}`);
  });
}

beforeAll(async () => {
  await buildDaemon();
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  lab = await startContainerd();
  dir = mkdtempSync(join(tmpdir(), 'actorlet-join-'));
  mkdirSync(join(dir, 'manifests'));
  blocks = shellBlocks(readFileSync(join(project, 'docs/joining-a-cluster.md'), 'utf8'));
});
afterAll(async () => {
  if (daemon !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
    const child = daemon;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), END_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }
  await plane?.stop();
  expect(await lab?.stop()).toEqual([]);
  if (dir !== '') {
    removeMounts(dir);
    rmSync(dir, { recursive: true, force: true });
  }
});

it('makes a member of a cluster of a machine, which kubectl reaches', async () => {
  const [administrator = '', node = '', approver = ''] = blocks;
  expect(blocks).toHaveLength(3);
  await type(here(administrator));

  const config = here(readFileSync(join(project, 'examples/cluster/config.yaml'), 'utf8'));
  const file = join(dir, 'config.yaml');
  writeFileSync(
    file,
    `${config.replace('unix:///run/containerd/containerd.sock', lab.endpoint)}podLogsDir: ${join(dir, 'logs', 'pods')}\n`,
  );
  const [prepare = '', start = ''] = here(node).split(/^(?=bin\/actorlet )/m);
  await type(prepare);
  const [command = '', ...args] = start.replaceAll('\\\n', ' ').replace('examples/cluster/config.yaml', file).trim().split(/\s+/);
  expect(command).toBe('bin/actorlet');
  // What a machine that is not this one's alone needs besides.
  const ports = await Promise.all([freePort(), freePort()]);
  const own = [
    ...[`--root-dir=${join(dir, 'root')}`, `--cert-dir=${join(dir, 'own-pki')}`],
    ...[`--hostname-override=${NODE_NAME}`, '--node-ip=127.0.0.1', `--port=${ports[0]}`, `--healthz-port=${ports[1]}`],
    '--eviction-hard=memory.available<0%',
    // Groups of its own would stay on a machine that is not its own.
    ...['--cgroups-per-qos=false', '--enforce-node-allocatable=none', '--make-iptables-util-chains=false'],
  ];
  const out = openSync(join(dir, 'daemon.log'), 'a');
  // The kernel settings of this machine stay as they are.
  const env = { ...process.env, ACTORLET_PROC_SYS: join(project, 'test/e2e/lab/procSys') };
  daemon = spawn(join(project, command), [...args, ...own], { stdio: ['ignore', out, out], cwd: project, env });
  closeSync(out);

  const approve = approver.split('\n').find((line) => line.includes(' approve ')) ?? '';
  const names = async () => (await type('kubectl get csr -o name')).split('\n').filter(Boolean);
  const done = new Set<string>();
  const approveAll = async () => {
    for (const name of await names()) {
      if (done.has(name)) continue;
      await type(approve.replace('NAME', name.split('/')[1] ?? ''));
      done.add(name);
    }
  };
  await wait('the node is Ready', async () => {
    await approveAll();
    return / Ready /.test(await type(approver.split('\n').find((line) => line.includes('get nodes')) ?? ''));
  });
  await wait('the default service account', () => plane.hasAccount());
  await type(
    `kubectl run hello --image=${IMAGE} --image-pull-policy=IfNotPresent --restart=Never --command -- sh -c 'echo hello; ${STAY}'`,
  );
  await type('kubectl wait pod/hello --for=condition=Ready --timeout=110s');
  await wait('its log, over the certificate that the cluster signed', async () => {
    await approveAll();
    return (await type('kubectl logs hello').catch(() => '')) === 'hello\n';
  });
  expect(await type('kubectl exec hello -- echo from inside')).toBe('from inside\n');
  await type('kubectl delete pod hello --grace-period=1');
  await wait('the pod is gone', async () => (await type('kubectl get pods --no-headers')) === '');
});
