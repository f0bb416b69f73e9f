/** Steps that look at the host and refuse it where the configuration says so: swap, cgroup version, taken ports. */

import { access, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { missingGroup } from '../../../machines/allocation/cgroups/hierarchies.ts';
import { configuredName, groupPath, rootName } from '../../../machines/allocation/cgroups/names.ts';
import type { KubeletConfiguration } from '../../../machines/config/config.ts';
import type { GroupDriver } from '../../../machines/nodeFacts.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import { createCgroups } from '../../dependencies/cgroups/cgroups.ts';
import { listenAt } from '../../dependencies/net/listenAt.ts';
import { type Problem, StartError } from '../../errors.ts';
import { need, type Step } from '../context.ts';

const SWAPS = '/proc/swaps';
/** Exists at the root of a cgroup v2 hierarchy only. */
const CGROUP_V2 = '/sys/fs/cgroup/cgroup.controllers';

/** @param text Of `/proc/swaps`: one line of titles, and one for each area that is in use. Null: there is none. */
export function swapProblem(text: string): Problem | null {
  const areas = text.trim().split('\n').slice(1);
  if (areas.length === 0) return null;
  const names = areas.map((line) => line.split(/\s+/)[0] ?? line).join(', ');
  return { where: 'failSwapOn (--fail-swap-on)', what: `swap is on (${names}); turn it off, or set the field to false` };
}

const OTHERS_WRITE = 0o022;
/** Who else may write in the root directory. Null: only its owner, root or this user, or the directory is not made yet. */
export async function rootDirProblem(rootDir: string): Promise<Problem | null> {
  const info = await stat(rootDir).catch(() => null);
  if (info === null) return null;
  const where = '--root-dir';
  const harm = 'who writes there can put files in the place of what the node keeps of its pods, and of their secrets';
  if ((info.mode & OTHERS_WRITE) !== 0)
    return {
      where,
      what: `${rootDir} is open to other users (mode ${(info.mode & 0o7777).toString(8)}): ${harm}; run chmod go-w ${rootDir}`,
    };
  if (info.uid === 0 || info.uid === process.geteuid?.()) return null;
  return { where, what: `${rootDir} belongs to user ${info.uid}: ${harm}; run chown root ${rootDir}` };
}

export const checkSwap: Step = {
  name: 'check swap',
  async run(ctx) {
    if (!need(ctx, 'loaded').config.failSwapOn) return undefined;
    let text: string;
    try {
      text = await readFile(SWAPS, 'utf8');
    } catch (error) {
      need(ctx, 'log').warn({ err: messageOf(error) }, `${SWAPS} cannot be read; assuming that swap is off`);
      return undefined;
    }
    const problem = swapProblem(text);
    if (problem !== null) throw new StartError('this host is not accepted', [problem]);
    return undefined;
  },
};

export const checkCgroupVersion: Step = {
  name: 'check the cgroup version',
  async run(ctx) {
    if (!need(ctx, 'loaded').config.failCgroupV1) return undefined;
    try {
      await access(CGROUP_V2);
      return undefined;
    } catch {
      throw new StartError('this host is not accepted', [
        { where: 'failCgroupV1', what: 'this host does not use cgroup v2; set the field to false to run on it' },
      ]);
    }
  },
};

const DRIVERS: readonly GroupDriver[] = ['cgroupfs', 'systemd'];

/**
 * Refuses a host where the cgroups of the node cannot be kept: a start without them would take a protection away.
 * Which driver makes them is the runtime's to say, later: a group counts as there in either form of its name.
 */
export const checkPodGroups: Step = {
  name: 'check for what cgroups of its own need',
  async run(ctx) {
    const problems = await podGroupProblems(need(ctx, 'nodeConfig').config);
    if (problems.length > 0) throw new StartError('this host is not accepted', problems);
    return undefined;
  },
};

/** None with `cgroupsPerQOS: false`. Changes nothing. */
export async function podGroupProblems(config: KubeletConfiguration): Promise<Problem[]> {
  if (!config.cgroupsPerQOS) return [];
  const problems: Problem[] = [];
  const where = 'cgroupsPerQOS (--cgroups-per-qos)';
  const hint = 'run as root on a host with cgroups, or set the field to false and enforceNodeAllocatable to []';
  const cgroups = createCgroups();
  try {
    await cgroups.detect('cgroupfs');
    for (const what of await cgroups.unwritable()) problems.push({ where, what: `${what}; ${hint}` });
    if (
      !(await isThere(
        cgroups,
        DRIVERS.map((driver) => groupPath(rootName(config.cgroupRoot), driver)),
      ))
    )
      problems.push({
        where: 'cgroupRoot (--cgroup-root)',
        what: missingGroup(config.cgroupRoot),
      });
    for (const [prefix, field] of [
      ['system-reserved', 'systemReservedCgroup'],
      ['kube-reserved', 'kubeReservedCgroup'],
    ] as const) {
      if (!config.enforceNodeAllocatable.some((v) => v.startsWith(prefix))) continue;
      const paths = DRIVERS.map((driver) => groupPath(configuredName(config[field], driver), driver));
      if (!(await isThere(cgroups, paths))) problems.push({ where: field, what: missingGroup(config[field]) });
    }
  } catch (error) {
    problems.push({ where, what: `${messageOf(error)}; ${hint}` });
  }
  return problems;
}

async function isThere(cgroups: Pick<Cgroups, 'exists'>, paths: readonly string[]): Promise<boolean> {
  for (const path of paths) if (await cgroups.exists(path)) return true;
  return false;
}

/**
 * Tries the ports this node is going to listen on. A taken read-only or API port ends the start, as a listener's failure does
 * in the reference; a taken healthz port is said and tried again by its server for ever.
 */
export const checkPorts: Step = {
  name: 'check that ports are free',
  async run(ctx) {
    const { config } = need(ctx, 'nodeConfig');
    const healthz = await tryPort(config.healthzBindAddress, config.healthzPort, 'healthzPort (--healthz-port)');
    if (healthz !== undefined) need(ctx, 'log').error({}, `${healthz.where}: ${healthz.what}; it is tried again until it is free`);
    const readOnly = await tryPort(config.address, config.readOnlyPort, 'readOnlyPort (--read-only-port)');
    const https = config.enableServer
      ? await tryPort(config.address, config.port, 'port (--port)', 'choose another port, or --enable-server=false for no server')
      : undefined;
    const taken = [readOnly, https].filter((p) => p !== undefined);
    if (taken.length > 0) throw new StartError('a port cannot be listened on', taken);
    return undefined;
  },
};

async function tryPort(
  host: string,
  port: number,
  where: string,
  hint = 'choose another port, or 0 for none',
): Promise<Problem | undefined> {
  if (port === 0) return undefined;
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...listenAt({ host, port }), exclusive: true }, resolve);
    });
    return undefined;
  } catch (error) {
    const why = codeOf(error) === 'EADDRINUSE' ? 'another process listens there already' : messageOf(error);
    return { where, what: `${host}:${port}: ${why}; ${hint}` };
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}
