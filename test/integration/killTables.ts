/** The stories of all actors in all states, and the machines of the sources with their states. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { StateMachine } from 'xstate';
import { API_CASES } from './killApi.ts';
import { CERTIFICATE_CASES } from './killCertificates.ts';
import { CGROUP_CASES } from './killCgroups.ts';
import { CLUSTER_CASES } from './killCluster.ts';
import { CPU_CASES } from './killCpus.ts';
import { DEVICE_CASES } from './killDevices.ts';
import { DRIVER_CASES } from './killDrivers.ts';
import { EVICTION_CASES } from './killEviction.ts';
import { HOOK_CASES } from './killHooks.ts';
import { IPTABLES_CASES } from './killIptables.ts';
import type { KillCase } from './killing.ts';
import { LIFE_CASES } from './killLives.ts';
import { NODE_SHUTDOWN_CASES } from './killNodeShutdown.ts';
import { OBJECT_CASES } from './killObjects.ts';
import { OOM_CASES } from './killOom.ts';
import { PROBE_CASES } from './killProbes.ts';
import { RESIZE_CASES } from './killResize.ts';
import { CONTAINER_CASES, LINK_CASES, OTHER_CASES, POD_CASES, RUNTIME_CASES, WORKER_CASES } from './killStates.ts';
import { VOLUME_CASES } from './killVolumes.ts';

export const KILL_TABLES: Record<string, KillCase[]> = {
  'pod worker': WORKER_CASES,
  container: CONTAINER_CASES,
  'hooks and stops': HOOK_CASES,
  'changes of resources': RESIZE_CASES,
  pods: POD_CASES,
  "states of a pod's life": LIFE_CASES,
  runtime: RUNTIME_CASES,
  probes: PROBE_CASES,
  'with an act in flight': LINK_CASES,
  'CPUs of their own': CPU_CASES,
  volumes: VOLUME_CASES,
  'plugins and drivers': DRIVER_CASES,
  devices: DEVICE_CASES,
  'the cluster side': CLUSTER_CASES,
  'objects of the API': OBJECT_CASES,
  certificates: CERTIFICATE_CASES,
  'control groups': CGROUP_CASES,
  eviction: EVICTION_CASES,
  'a shutdown of the machine': NODE_SHUTDOWN_CASES,
  "the kernel's log": OOM_CASES,
  'the packet filter': IPTABLES_CASES,
  "the kubelet's API": API_CASES,
  'the rest': OTHER_CASES,
};

interface StateNodeLike {
  id: string;
  path: string[];
  states: Record<string, StateNodeLike>;
}

/** Machines that files below `dir` export. */
export async function machinesOf(dir: string): Promise<{ root: StateNodeLike }[]> {
  const found: unknown[] = [];
  for (const e of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (!e.isFile() || !e.name.endsWith('.ts')) continue;
    const module = (await import(join(e.parentPath, e.name))) as Record<string, unknown>;
    found.push(...Object.values(module).filter((v) => v instanceof StateMachine));
  }
  return found as never;
}

/** Dotted paths of the states that have no states below them. */
export function leaves(node: StateNodeLike): string[] {
  const below = Object.values(node.states);
  return below.length === 0 ? [node.path.join('.')] : below.flatMap(leaves);
}
