/**
 * Specs of Kubernetes' own end-to-end tests on one node, of this daemon and of the reference kubelet, and a table of where they differ
 * (root; what bench/cluster.ts needs; `e2e.test`, `ginkgo`, `agnhost` and a kubelet of one release in KUBEBUILDER_ASSETS). Images are made
 * on the spot, of busybox and agnhost: a spec that asks for another one cannot run, and is counted apart.
 * `npm run conformance`. Options: --agents=ours,reference --focus=REGEXP --skip=REGEXP --nodes=4 (specs at a time) --out=FILE.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { buildDaemon, createDaemon, type Daemon, freePort, NODE_NAME } from '../test/e2e/daemon.ts';
import { type ControlPlane, startControlPlane } from '../test/e2e/lab/cluster/controlPlane.ts';
import { createReferenceKubelet, type ReferenceKubelet, whyNoReferenceKubelet } from '../test/e2e/lab/cluster/referenceKubelet.ts';
import { type Containerd, startContainerd } from '../test/e2e/lab/containerd.ts';
import { busyboxFiles, dockerArchive } from '../test/e2e/lab/images.ts';
import { cleanUpOnce } from './lib/cleanUp.ts';
import { numberOption, option, report, say, until } from './lib/report.ts';
import { type Outcome, type SpecOutcomes, specsOf, tableOf } from './lib/specs.ts';

/** The specs that a node must pass to be called conformant. */
const FOCUS = '\\[NodeConformance\\]';
/** They change the machine for everybody, wait for what one node has not, or take longer than all others together. */
const SKIP = '\\[Serial\\]|\\[Disruptive\\]|\\[Slow\\]|\\[Flaky\\]|\\[Feature:';
const READY = { timeoutMs: 120_000, everyMs: 200 };
const REGISTRY = 'actorlet.test/e2e';
/** Images of the specs that busybox and agnhost can stand for, by the keys of KUBE_TEST_REPO_LIST. */
const REGISTRIES = ['promoterE2eRegistry', 'gcRegistry', 'dockerLibraryRegistry', 'buildImageRegistry', 'e2eRegistry'];

const agents = (option('agents') ?? 'ours,reference').split(',');
const focus = option('focus') ?? FOCUS;
const skip = option('skip') ?? SKIP;
const nodes = numberOption('nodes', 4);

function asset(name: string): string {
  const dirs = (process.env.KUBEBUILDER_ASSETS ?? '').split(delimiter).filter(Boolean);
  const found = dirs.map((dir) => join(dir, name)).find(existsSync);
  if (found === undefined) throw new Error(`${name} is not in KUBEBUILDER_ASSETS: build it of the release under test, beside its kubelet`);
  return found;
}
const [tests, ginkgo, agnhost] = [asset('e2e.test'), asset('ginkgo'), asset('agnhost')];
const why = agents.includes('reference') ? whyNoReferenceKubelet() : undefined;
if (why !== undefined) throw new Error(why);

/** `agnhost:2.59`: as the specs name them. */
async function imagesWanted(): Promise<string[]> {
  const { out } = await ran(tests, ['--list-images']);
  return out.split('\n').filter((line) => line.startsWith(`${REGISTRY}/`));
}

function ran(program: string, args: readonly string[]): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: { ...process.env, KUBE_TEST_REPO_LIST: repositories },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        out += text;
      });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out }));
  });
}

/** Those that cannot be made stay away: their specs fail at both, with the name of the image. */
function importImages(lab: Containerd, wanted: readonly string[]): string[] {
  const busybox = busyboxFiles();
  const files = [...busybox, { kind: 'file' as const, path: 'agnhost', data: readFileSync(agnhost), mode: 0o755 }];
  const stands: readonly [RegExp, Parameters<typeof dockerArchive>[0]][] = [
    [/\/agnhost:/, { tags: [], layer: files, entrypoint: ['/agnhost'], cmd: ['pause'] }],
    [
      /\/(busybox|httpd|nginx|httpd-new|nginx-new):/,
      { tags: [], layer: busybox, cmd: ['sh', '-c', 'mkdir -p /w && exec httpd -f -p 80 -h /w'] },
    ],
    [/\/pause:/, { tags: [], layer: files, entrypoint: ['/agnhost'], cmd: ['pause'] }],
  ];
  const made: string[] = [];
  for (const [pattern, image] of stands) {
    const tags = wanted.filter((name) => pattern.test(name));
    if (tags.length === 0) continue;
    const archive = join(dir, 'image.tar');
    writeFileSync(archive, dockerArchive({ ...image, tags }));
    lab.ctr('images', 'import', archive);
    made.push(...tags);
  }
  return wanted.filter((name) => !made.includes(name));
}

/** Of a bridge of this benchmark: an API server goes to no node on the loopback. */
const NODE_IP = '198.18.77.1';
const BRIDGE = 'actorlet-conf0';
function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' });
}

const dir = mkdtempSync(join(tmpdir(), 'actorlet-conformance-'));
const repositories = join(dir, 'repositories.yaml');
writeFileSync(repositories, REGISTRIES.map((key) => `${key}: ${REGISTRY}\n`).join(''));

async function specsWith(agent: string, plane: ControlPlane, missing: readonly string[]): Promise<SpecOutcomes> {
  const reports = join(dir, agent);
  const args = [
    ...[
      `--nodes=${nodes}`,
      `--focus=${focus}`,
      `--skip=${skip}`,
      '--no-color',
      '--timeout=3h',
      '--keep-going',
      '--output-interceptor-mode=none',
    ],
    ...[`--output-dir=${dir}`, `--junit-report=${agent}.xml`, '--silence-skips', tests, '--'],
    ...[`--kubeconfig=${plane.adminKubeconfig}`, '--provider=skeleton', '--num-nodes=1', '--minStartupPods=0', `--report-dir=${reports}`],
    ...['--delete-namespace-on-failure=true', '--node-schedulable-timeout=2m', '--disable-log-dump=true'],
  ];
  const { out } = await ran(ginkgo, args);
  const file = join(dir, `${agent}.xml`);
  if (!existsSync(file)) throw new Error(`the specs did not run: ${out.slice(-4_000)}`);
  return specsOf(readFileSync(file, 'utf8'), missing);
}

await buildDaemon();
ip('link', 'add', BRIDGE, 'type', 'bridge');
const lab = await startContainerd();
let plane: ControlPlane | undefined;
let daemon: Daemon | undefined;
let reference: ReferenceKubelet | undefined;
const cleanUp = cleanUpOnce(async () => {
  await reference?.end('SIGTERM');
  await daemon?.dispose();
  await plane?.stop();
  const left = await lab.stop();
  await reference?.dispose();
  ip('link', 'del', BRIDGE);
  rmSync(dir, { recursive: true, force: true });
  return left;
});
try {
  ip('addr', 'add', `${NODE_IP}/32`, 'dev', BRIDGE);
  ip('link', 'set', BRIDGE, 'up');
  const missing = importImages(lab, await imagesWanted());
  say(`images that cannot be made here: ${missing.join(', ')}`);
  plane = await startControlPlane({ controllerManager: true, scheduler: true });
  const server = plane;
  const ofNode = { cgroupRoot: lab.cgroupParent, maxPods: 110, kubeAPIQPS: 50, kubeAPIBurst: 100 };
  const served = { enableServer: true, address: NODE_IP, authentication: { x509: { clientCAFile: plane.ca.certFile } } };
  const args = ['--kubeconfig', plane.nodeKubeconfig(NODE_NAME), `--node-ip=${NODE_IP}`];
  daemon = await createDaemon(lab, { ...ofNode, ...served, port: await freePort() }, args);
  if (agents.includes('reference')) reference = await createReferenceKubelet({ plane, daemon, port: await freePort() });
  const outcomes: Record<string, SpecOutcomes> = {};
  for (const name of agents) {
    const agent: Daemon | ReferenceKubelet | undefined = name === 'reference' ? reference : daemon;
    if (agent === undefined) throw new Error(`--agents: no agent ${name}`);
    say(`${name}: starts`);
    if (agent === daemon) await daemon.start();
    else await reference?.start({ nodeIp: NODE_IP, config: { address: NODE_IP, ...ofNode } });
    await until('the service account', async () => ((await server.hasAccount()) ? true : undefined), READY);
    await until('the node to be Ready', async () => ((await isReady(server)) ? true : undefined), READY);
    outcomes[name] = await specsWith(name, server, missing);
    const count = (of: Outcome['result']): number => [...(outcomes[name]?.values() ?? [])].filter((o) => o.result === of).length;
    say(`${name}: ${count('passed')} passed, ${count('failed')} failed`);
    await agent.end('SIGTERM');
  }
  const table = tableOf(outcomes);
  say(table.text);
  await report('conformance', { focus, skip, missing, ...table.figures });
} finally {
  await cleanUp();
}

async function isReady(server: ControlPlane): Promise<boolean> {
  const { spec, status } = JSON.parse(await server.kubectl('get', 'node', NODE_NAME, '-o', 'json')) as {
    spec: { taints?: object[] };
    status: { conditions: { type: string; status: string }[] };
  };
  return spec.taints === undefined && status.conditions.some((c) => c.type === 'Ready' && c.status === 'True');
}
