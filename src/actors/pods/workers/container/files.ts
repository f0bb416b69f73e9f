/** Files that the node makes for one container: hosts, termination message, the link to its log. */

import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import { etcHostsPath } from '../../../../machines/pod/names.ts';
import { isPathName, pathName } from '../../../../machines/pod/pathName.ts';
import { containerLogDir, containerLogLink, podFolder } from '../../../../machines/pod/runtime/logNames.ts';
import { containerDir, podDir } from '../../../../machines/pod/volumes/volumePaths.ts';
import { etcHosts } from '../../../../machines/pods/workers/config/hosts.ts';
import type { StartJob } from '../../../../machines/pods/workers/container/startJob.ts';
import { codeOf, messageOf } from '../../../../machines/text/errors.ts';
import type { Mount } from '../../../../machines/wire/cri.ts';
import type { HostFs } from '../../../../ports/ports.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** Modes of the kubelet's directories and files (pod lifecycle 5.1 step 15, 5.5, 5.10). */
export const POD_DIR_MODE = 0o750;
export const LOG_DIR_MODE = 0o755;
const HOSTS_MODE = 0o644;
const TERMINATION_LOG_MODE = 0o666;

type Ctx = Pick<ActorCtx, 'ports' | 'log'>;

/** The folder is there but for the first time: it is made when something is missed. */
async function inFolder(fs: HostFs, { dir, mode }: { dir: string; mode: number }, make: () => Promise<void>): Promise<void> {
  try {
    await make();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    await fs.mkdirp(dir, mode);
    await make();
  }
}

export async function hostsMount({ ports: { fs } }: Ctx, facts: NodeFacts, job: StartJob): Promise<Mount[]> {
  const known = job.podIPs.length > 0 || job.pod.spec.hostNetwork === true;
  if (!known || (job.container.volumeMounts ?? []).some((m) => m.mountPath === '/etc/hosts')) return [];
  const path = etcHostsPath(facts.rootDir, pathName(job.pod.metadata.uid));
  const nodeHosts =
    job.pod.spec.hostNetwork === true ? new TextDecoder().decode(await fs.readFile(facts.hostsFile, { bytesMax: 1 << 20 })) : '';
  const text = etcHosts({ pod: job.pod, podIPs: job.podIPs, facts, nodeHosts });
  // The sandbox may have been made by another agent, with another root directory: then nothing of the pod is here yet.
  const dir = podDir(facts.rootDir, pathName(job.pod.metadata.uid));
  await inFolder(fs, { dir, mode: POD_DIR_MODE }, () => fs.writeFile(path, text, { mode: HOSTS_MODE }));
  return [{ containerPath: '/etc/hosts', hostPath: path, readonly: false, selinuxRelabel: true }];
}

export async function terminationLogMount(ctx: Ctx, facts: NodeFacts, job: StartJob): Promise<Mount[]> {
  const containerPath = job.container.terminationMessagePath ?? '';
  if (containerPath === '') return [];
  const { fs, entropy } = ctx.ports;
  const dir = containerDir(facts.rootDir, pathName(job.pod.metadata.uid), pathName(job.container.name));
  const name = [...entropy.bytes(4)].map((b) => b.toString(16).padStart(2, '0')).join('');
  if (!(await fs.mkdirp(dir, POD_DIR_MODE))) await clearLitter(ctx, dir, job.terminationFiles);
  // Any user of the container must be able to write it.
  await fs.writeFile(`${dir}/${name}`, '', { mode: TERMINATION_LOG_MODE });
  return [{ containerPath, hostPath: `${dir}/${name}`, readonly: false, selinuxRelabel: true }];
}

/** Every start makes a file; those of instances that are gone would add up over a life of crashes. */
async function clearLitter({ ports: { fs }, log }: Ctx, dir: string, kept: readonly string[] | undefined): Promise<void> {
  if (kept === undefined) return;
  try {
    for (const name of await fs.readdir(dir)) if (!kept.includes(`${dir}/${name}`)) await fs.unlink(`${dir}/${name}`);
  } catch (error) {
    // Not worth a failed start.
    log.debug({ err: String(error), dir }, 'an old termination file cannot be removed');
  }
}

/** The link that log collectors follow. A failure is said and does not matter to the container. */
export async function linkLog(
  { ports: { fs }, log }: Ctx,
  facts: NodeFacts,
  { job, id, restartCount }: { job: StartJob; id: string; restartCount: number },
): Promise<void> {
  const container = pathName(job.container.name);
  const pod = podFolder(job.pod.metadata);
  const dir = containerLogDir(facts.podLogsDir, pod, container);
  if (!isPathName(id)) return log.warn({ id }, 'the id that the runtime gave cannot name a file: no log link is made');
  const link = containerLogLink(facts.containerLogsDir, pod, { container, id });
  try {
    await inFolder(fs, { dir: facts.containerLogsDir, mode: LOG_DIR_MODE }, () => fs.symlink(`${dir}/${restartCount}.log`, link));
  } catch (error) {
    const err = messageOf(error);
    log.warn({ err, link }, 'log link was not made; log collectors will not see this container');
  }
}
