/** What `--check` asks the container runtime: whether it answers, its version, its cgroup driver. */

import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { createGrpcCri } from '@actorlet/kubelet/boot/dependencies/cri/grpcCri.ts';
import { isEmbeddedEndpoint } from '@actorlet/kubelet/boot/dependencies/embedded.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { shownEndpoint } from '@actorlet/kubelet/machines/text/shownUrl.ts';
import type { Cri, Logger } from '@actorlet/kubelet/ports/ports.ts';
import type { Finding } from './findings.ts';
import { type PodsOfRuntime, UNKNOWN_RUNTIME } from './judge.ts';

const CALL_MS = 5_000;
/** gRPC: the runtime does not have this call. */
const UNIMPLEMENTED = 12;
const WHERE = 'containerRuntimeEndpoint (--container-runtime-endpoint)';
const quiet: Logger = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Logger;

const dial = (endpoint: string): Cri => createGrpcCri({ endpoint, log: quiet, clock: createClock() });

export interface RuntimeFindings extends PodsOfRuntime {
  findings: Finding[];
}
const only = (...findings: Finding[]): RuntimeFindings => ({ ...UNKNOWN_RUNTIME, findings });

export async function checkRuntime(
  { config }: Pick<NodeConfig, 'config'>,
  connect: (endpoint: string) => Cri = dial,
): Promise<RuntimeFindings> {
  const { containerRuntimeEndpoint: endpoint } = config;
  if (endpoint === 'embedded://oci') return only(...(await checkOci()));
  if (isEmbeddedEndpoint(endpoint)) return only({ level: 'note', where: WHERE, what: `${endpoint} is this node's own runtime`, todo: '' });
  let cri: Cri;
  try {
    cri = connect(endpoint);
  } catch (error) {
    return only({
      level: 'error',
      where: WHERE,
      what: `${shownEndpoint(endpoint)}: ${messageOf(error)}`,
      todo: 'Give the socket of the runtime.',
    });
  }
  try {
    return await ask(cri, config);
  } catch (error) {
    const what = `the runtime at ${endpoint} does not answer: ${messageOf(error)}`;
    return only({ level: 'error', where: WHERE, what, todo: 'Start the runtime, or give its socket.' });
  } finally {
    cri.close();
  }
}

/** The programs that OCI images need, one by one. */
async function checkOci(): Promise<Finding[]> {
  const { probeOci } = await import('@actorlet/runtimes/src/oci/probe.ts');
  const { found, missing, noNetwork, problem, cgroups } = await probeOci(process.env.PATH ?? '');
  const note = (p: (typeof found)[number]): Finding => ({ level: 'note', where: p.name, what: `${p.path} ${p.version}`.trim(), todo: '' });
  const ends = 'The runtime does not start without it.';
  const lacking = missing.map(({ what, todo }): Finding => ({ level: 'error', where: WHERE, what, todo: `${todo} ${ends}` }));
  const place: Finding[] = problem !== null && missing.length === 0 ? [{ level: 'error', where: WHERE, what: problem, todo: '' }] : [];
  const network: Finding[] =
    noNetwork === null
      ? []
      : [
          {
            level: 'warning',
            where: WHERE,
            what: `${noNetwork.what}: pods have no way out of their network, and no host ports`,
            todo: noNetwork.todo,
          },
        ];
  const limits: Finding = {
    level: cgroups.parent === null ? 'warning' : 'note',
    where: WHERE,
    what: cgroups.reason,
    todo: cgroups.parent === null ? 'Pods run all the same.' : '',
  };
  return [...found.map(note), ...lacking, ...place, ...network, limits];
}

async function ask(cri: Cri, config: NodeConfig['config']): Promise<RuntimeFindings> {
  const opts = { timeoutMs: CALL_MS, signal: AbortSignal.timeout(3 * CALL_MS) };
  const version = await cri.call('Version', { version: '' }, opts);
  const status = await cri.call('Status', { verbose: false }, opts);
  const what = `${version.runtimeName} ${version.runtimeVersion} at ${config.containerRuntimeEndpoint}`;
  const found: Finding[] = [{ level: 'note', where: WHERE, what, todo: '' }];
  for (const c of status.status?.conditions ?? []) {
    if (c.status || (c.type !== 'RuntimeReady' && c.type !== 'NetworkReady')) continue;
    found.push({
      level: 'warning',
      where: WHERE,
      what: `${c.type} is false: ${c.reason}: ${c.message}`,
      todo: 'The node is not Ready before it is true.',
    });
  }
  // A runtime that names no features has none of them.
  const strictGroups = status.features?.supplementalGroupsPolicy === true;
  return { findings: [...found, ...(await driver(cri, { config, opts }))], strictGroups };
}

async function driver(
  cri: Cri,
  { config, opts }: { config: NodeConfig['config']; opts: { timeoutMs: number; signal: AbortSignal } },
): Promise<Finding[]> {
  const where = 'cgroupDriver (--cgroup-driver)';
  try {
    const { linux } = await cri.call('RuntimeConfig', {}, opts);
    const own = linux?.cgroupDriver === 'CGROUPFS' ? 'cgroupfs' : 'systemd';
    if (linux === undefined || linux === null || own === config.cgroupDriver) return [];
    const what = `the configuration says ${config.cgroupDriver}, the runtime has ${own}: the node takes the runtime's`;
    return [{ level: 'note', where, what, todo: `Set cgroupDriver: ${own}.` }];
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNIMPLEMENTED) throw error;
    const what = `the runtime does not say its driver: the node takes ${config.cgroupDriver}`;
    return [{ level: 'warning', where, what, todo: 'It must be the one in the configuration of the runtime (containerd: SystemdCgroup).' }];
  }
}
