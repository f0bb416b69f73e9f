/**
 * The kind `oci` of the embedded runtime: what it does otherwise than the kind `process`. A container is a shim that runs
 * `crun run` in a mount namespace of its own, with an overlay over the image's unpacked root file system.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import type { ProcId } from '../process/container/procfs.ts';
import { hasDefaultRoute } from '../process/defaultRoute.ts';
import { findCommand } from '../process/probe.ts';
import type { Layout, StoredSandbox } from '../process/store/store.ts';
import type { Oci } from '../process/types.ts';
import { type HostFacts, refuse } from './bundle/spec.ts';
import { type Cgroups, dropGroup, dropParent, findCgroups, usageOf, wasOomKilled } from './cgroups.ts';
import { planOci, prepareContainer } from './container.ts';
import { Dialer } from './dial/dial.ts';
import { beside } from './exec.ts';
import { LIMITS, type Limits } from './images/budget.ts';
import { loadArchive } from './images/pull.ts';
import { Records } from './images/records.ts';
import { imageService } from './images/service.ts';
import { isUp, namespacePid, stopInfra } from './infra.ts';
import { enter, holderPid } from './place.ts';
import { startPod } from './pod.ts';
import { findPrograms, type Lack, lackText, type Programs } from './programs.ts';
import { inputOf } from './terminal.ts';

export { dropHolder as dropPlace, keepHolder as keepPlace } from './place.ts';

const OFFLINE: Lack = {
  what: 'this machine has no default route, which pasta needs',
  todo: 'Connect it to a network; pods that start after that have a way out.',
};

export interface OciOptions {
  layout: Layout;
  path: string;
  limits?: Partial<Limits>;
  warn(message: string): void;
}

/** First of all: becomes the process inside. @throws with what is missing, and what to do. */
export async function enterPlace(layout: Layout, path: string): Promise<void> {
  if (holderPid() !== 0) return;
  const { programs, missing } = await findPrograms(path);
  if (programs === null)
    throw new Error(`OCI images cannot run here: ${lackText(missing)} Or use embedded://process, which runs the built-in images alone.`);
  await enter(layout, programs);
}

export async function createOci(o: OciOptions): Promise<Oci> {
  // Inside, this user is root; whether there are ids for others was seen before.
  const { programs, missing, noNetwork } = await findPrograms(o.path, { uid: 0 });
  if (programs === null) throw new Error(`OCI images cannot run here: ${lackText(missing)}`);
  const { layout, warn } = o;
  const host = hostFacts(o.path);
  const cgroups = findCgroups(`actorlet-oci-${createHash('sha256').update(layout.base).digest('hex').slice(0, 12)}`, host);
  const records = new Records(layout.ociImages, warn);
  const limits: Limits = { ...LIMITS, ...o.limits };
  const pulls = { programs, records, limits, root: host.root };
  const dialer = new Dialer();
  /** Why pods that start now have a loopback alone; null: they have a way out. */
  const lack = (): Lack | null => noNetwork ?? (programs.network?.name === 'pasta' && !hasDefaultRoute() ? OFFLINE : null);
  /** Why the network of the last pod could not be had; '' where it could. */
  let failing = '';
  /** On their way, or failed. */
  const networks = new Map<string, Promise<void>>();
  const net = (infra: Parameters<typeof namespacePid>[0]): string => `/proc/${namespacePid(infra)}/ns/net`;
  return {
    about: about(programs, cgroups),
    network() {
      const now = lack();
      if (now !== null) return { reason: 'LoopbackOnly', message: `${now.what}: pods have no way out of their network. ${now.todo}` };
      return failing === '' ? { reason: 'PodNetworks', message: '' } : { reason: 'PodNetworkFailed', message: failing };
    },
    imageHandlers: (more) => imageService({ ...pulls, containersDir: layout.containers }, more),
    load: async (path, name, signal) => (await loadArchive(pulls, path, { name, signal })).map(({ id, tags }) => ({ id, tags })),
    hasImage: (ref) => records.find(ref) !== undefined,
    async startPod(row, config, changed) {
      const now = lack();
      const found = now === null ? programs : { ...programs, network: null };
      const { later } = await startPod(row, config, { programs: found, noNetwork: now, root: host.root, layout });
      if (later === null) return;
      const up = settle(row, later).then(
        () => {
          failing = '';
        },
        (error: Error) => {
          failing = `the network of a pod cannot be had: ${error.message}`;
          warn(`pod ${row.id} has no network: ${error.message}`);
          return refuse(failing);
        },
      );
      // As long as they fail, the pod's sandbox fails with the reason.
      if (failing !== '') return up;
      const settled = up.finally(changed);
      networks.set(row.id, settled);
      settled.then(
        () => networks.delete(row.id),
        () => undefined,
      );
    },
    networkUp: (id) => networks.get(id) ?? Promise.resolve(),
    stopPod(row) {
      networks.delete(row.id);
      stopInfra(row.id, row.infra);
    },
    isPodUp: (row) => !row.infra || isUp(row.infra),
    plan: (input) => planOci(input, { host, records, layout, programs, parent: cgroups.parent }),
    prepare: (plan, id) => prepareContainer(plan, { id, layout }),
    beside: (row, ask) => beside(row, ask, { layout, programs }),
    input: (row, innerPid) => inputOf(row, { layout, innerPid }),
    ended: (plan) => ({ oomKilled: plan.cgroupsPath !== null && wasOomKilled(plan.cgroupsPath) }),
    usage: (plan) => (plan.cgroupsPath === null ? null : usageOf(plan.cgroupsPath)),
    drop: (plan) => {
      if (plan.cgroupsPath !== null) dropGroup(plan.cgroupsPath);
    },
    dial: (row, port) => (row.infra ? dialer.dial(net(row.infra), { address: row.ip || '127.0.0.1', port }) : null),
    async close() {
      await dialer.close();
      if (cgroups.parent !== null) dropParent(cgroups.parent);
    },
  };
}

/** A pod whose network failed is not ready, so the node makes another. */
async function settle(row: StoredSandbox, later: Promise<ProcId>): Promise<void> {
  try {
    const network = await later;
    if (row.infra) row.infra.network = network;
    if (row.infra && !isUp(row.infra)) stopInfra(row.id, row.infra);
  } catch (error) {
    row.ready = false;
    throw error;
  }
}

function about(programs: Programs, cgroups: Cgroups): Oci['about'] {
  const name = (p: { name: string; version: string }): string => `${p.name} ${p.version}`.trim();
  return {
    programs: [programs.runtime, programs.skopeo, programs.umoci, ...(programs.network === null ? [] : [programs.network])]
      .map(name)
      .join(', '),
    cgroups: cgroups.reason,
  };
}

function hostFacts(path: string): HostFacts {
  const maps = readFileSync('/proc/self/uid_map', 'latin1')
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const root = maps.length === 1 && (maps[0]?.[2] ?? 0) > 0xffff_0000;
  return {
    root,
    // The ids are one run from 0: the user itself and those of /etc/subuid.
    idMax: root ? 0xffff_fffe : maps.reduce((sum, [, , count]) => sum + (count ?? 0), 0) - 1,
    capLast: Number(readFileSync('/proc/sys/kernel/cap_last_cap', 'latin1')),
    kernel: release(),
    oomScoreAdj: Number(readFileSync('/proc/self/oom_score_adj', 'latin1')),
    sh: findCommand('sh', path) || '/bin/sh',
  };
}
