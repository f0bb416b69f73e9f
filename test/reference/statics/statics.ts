/**
 * Runs the reference kubelet and then actorlet with static policies of CPUs and memory under several topology policies, with the same
 * pods, and prints what they do or tell differently. About three minutes, as root, after `npm run e2e:setup`, with containerd 2 and
 * the programs of a release of 1.36 or later:
 *   KUBEBUILDER_ASSETS=PROGRAMS scripts/node test/reference/statics/statics.ts [--record]
 * `--record` writes what CI compares with (statics.test.ts).
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHost } from '../../../src/boot/dependencies/machine/host.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { type Cluster, isReady, startCluster } from '../../cluster/cluster.ts';
import { NODE_NAME } from '../../e2e/daemon.ts';
import { createReferenceKubelet, REFERENCE_LOGS, whyNoReferenceKubelet } from '../../e2e/lab/cluster/referenceKubelet.ts';
import { IMAGE, steady } from '../../e2e/manifests.ts';
import { named } from '../claims/told.ts';
import { differences } from '../differences.ts';
import { COMMON, filesOf, metricsOf, plainly, pods, STATICS_RECORDING, type ToldPod, type ToldTurn, TURNS } from './told.ts';

const FILES = ['cpu_manager_state', 'memory_manager_state'] as const;
const all = pods(
  (name, more) => steady(name, more),
  (name, more) => ({ name, image: IMAGE, command: ['true'], ...more }),
);
interface Agent {
  start(config: Record<string, unknown>): Promise<void>;
  end(): Promise<unknown>;
}

async function placed(c: Cluster, pod: Pod): Promise<ToldPod['placed']> {
  const found: Record<string, readonly [string, string]> = {};
  const statuses = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
  for (const { name, containerID = '' } of statuses) {
    if (containerID === '') continue;
    const request = { containerId: containerID.slice(containerID.indexOf('://') + 3), verbose: true };
    const answer = await c.lab.cri.call('ContainerStatus', request, { timeoutMs: 5_000, signal: new AbortController().signal });
    const { config } = JSON.parse(answer.info.info ?? '{}') as {
      config?: { linux?: { resources?: { cpuset_cpus?: string; cpuset_mems?: string } } };
    };
    const { cpuset_cpus: cpus = '', cpuset_mems: mems = '' } = config?.linux?.resources ?? {};
    found[name] = [cpus, mems];
  }
  return found;
}

async function turn(c: Cluster, agent: Agent, config: Record<string, unknown>): Promise<ToldTurn> {
  const files = FILES.map((name) => join(c.daemon.rootDir, name));
  for (const file of files) rmSync(file, { force: true });
  await agent.start({ ...COMMON, ...config });
  await c.daemon.wait('the account', () => c.plane.hasAccount(), { timeoutMs: 60_000, everyMs: 100 });
  await c.daemon.wait('the node is Ready', async () => / Ready /.test(await c.kubectl('get', 'node', NODE_NAME)), {
    ...{ timeoutMs: 60_000, everyMs: 100 },
  });
  const told: Record<string, ToldPod> = {};
  const known = new Map<string, string>();
  for (const [name, spec] of Object.entries(all)) {
    await c.create(name, { nodeName: NODE_NAME, ...spec });
    const pod = await c.podWhere(name, 'is Ready or refused', (p) => isReady(p) || p.status.phase === 'Failed');
    known.set(pod.metadata.uid, name);
    const { reason = '', message = '' } = pod.status.phase === 'Failed' ? pod.status : {};
    told[name] = { reason, message: plainly(message), placed: await placed(c, pod) };
  }
  const [cpus = '', memory = ''] = files.map((file) => readFileSync(file, 'utf8'));
  const seen = { pods: told, files: filesOf(cpus, memory, named(known)), metrics: metricsOf(await c.nodePage('/metrics')) };
  await c.kubectl('delete', 'pods', '--all', '--timeout=100s');
  await agent.end();
  return seen;
}

async function told(by: 'reference' | 'actorlet'): Promise<Record<string, ToldTurn>> {
  const c = await startCluster({ start: false, config: { podLogsDir: REFERENCE_LOGS.podLogs } });
  const reference = await createReferenceKubelet(c);
  const agents: Record<typeof by, Agent> = {
    reference: { start: (config) => reference.start({ config }), end: () => reference.end('SIGTERM') },
    actorlet: {
      start: async (config) => {
        c.daemon.configure(config);
        await c.daemon.start();
      },
      end: () => c.daemon.end('SIGTERM'),
    },
  };
  const over = async (): Promise<void> => {
    await reference.end('SIGKILL');
    await c.stop();
    await reference.dispose();
  };
  // A run that is cut short leaves nothing behind.
  const cut = (): void => void over().finally(() => process.exit(130));
  process.once('SIGINT', cut);
  try {
    const turns: Record<string, ToldTurn> = {};
    for (const [name, config] of Object.entries(TURNS)) turns[name] = await turn(c, agents[by], config);
    return turns;
  } catch (error) {
    console.error(by === 'reference' ? reference.log().slice(-3000) : '');
    throw error;
  } finally {
    process.off('SIGINT', cut);
    await over();
  }
}

const whyNot = whyNoReferenceKubelet();
if (whyNot !== undefined) throw new Error(whyNot);
const host = createHost();
const reference = await told('reference');
const machine = { cpus: host.cpus?.() ?? [], numaNodes: host.numaNodes?.() ?? [] };
if (process.argv.includes('--record')) writeFileSync(STATICS_RECORDING, `${JSON.stringify({ machine, turns: reference }, null, 2)}\n`);
const found = differences('', reference, await told('actorlet'));
for (const [where, theirs, ours] of found) console.log(`${where}\n  reference: ${theirs}\n  actorlet:  ${ours}`);
console.log(`${found.length} differences`);
