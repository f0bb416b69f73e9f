/**
 * Directories of emptyDirs that count for themselves what they hold (gate LocalStorageCapacityIsolationFSQuotaMonitoring).
 * Only for pods with a user namespace of their own: others may give their files to another project.
 */

import type { MountEntry } from '../../../../machines/host/mountinfo.ts';
import type { NodeFacts } from '../../../../machines/nodeFacts.ts';
import type { ToolAnswer } from '../../../../machines/services/volumes/devices/format.ts';
import {
  countsProjects,
  freeProjects,
  PROJECT_IDS_FILE,
  PROJECTS_FILE,
  type ProjectFiles,
  projectOf,
  projectShown,
  projectUse,
  quotaCommand,
  quotaMount,
  withoutProject,
  withProject,
} from '../../../../machines/services/volumes/devices/quota.ts';
import { ifThere, textIfThere } from '../../../../ports/ifThere.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { HostFs, Ports } from '../../../../ports/ports.ts';
import { inTurn } from '../../../../ports/turns.ts';
import { lookCall } from './limits.ts';

export interface QuotaOptions {
  ports: Pick<Ports, 'fs'> & { mounter?: Mounter };
  facts(): Pick<NodeFacts, 'rootDir'>;
}
/** Of /etc/projects and /etc/projid. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

/** A project of its own for the directory. False: its file system does not count by project. Repeatable. */
export async function assignQuota(o: QuotaOptions, dir: string, signal: AbortSignal): Promise<boolean> {
  const tools = await quotaTools(o, dir, signal);
  if (tools === null) return false;
  await changing(o, async (files) => {
    const mine = projectOf(files, dir) ?? (await unused(tools, files));
    const next = projectOf(files, dir) === null ? withProject(files, dir, mine) : files;
    // The files come first: a project that they name is never given to another directory.
    await write(o.ports.fs, files, next);
    await ran(tools, quotaCommand.limit(mine, tools.mount.type));
    await ran(tools, quotaCommand.assign(dir, mine));
  });
  return true;
}

/** Before the directory goes. */
export async function clearQuota(o: QuotaOptions, dir: string, signal: AbortSignal): Promise<void> {
  const known = projectOf(await read(o.ports.fs), dir);
  const tools = known === null ? null : await quotaTools(o, dir, signal);
  if (known === null) return;
  if (tools !== null) await ran(tools, quotaCommand.unlimited(known));
  await changing(o, (files) => write(o.ports.fs, files, withoutProject(files, dir, known)));
}

/** What the file system counts for the directory's project. Null: the directory has no project. */
export async function quotaUse(o: QuotaOptions, dir: string, signal: AbortSignal): Promise<{ bytes: number; inodes: number } | null> {
  const known = projectOf(await read(o.ports.fs), dir);
  const tools = known === null ? null : await quotaTools(o, dir, signal);
  if (known === null || tools === null) return null;
  // The files may be older than the directory.
  if (projectShown(await tools.lsattr(dir)) !== known) return null;
  return projectUse(await tools.run(quotaCommand.use(known, 'b')), await tools.run(quotaCommand.use(known, 'i')));
}

interface QuotaTools {
  mount: MountEntry;
  run(command: string): Promise<ToolAnswer>;
  lsattr(dir: string): Promise<ToolAnswer>;
}

async function quotaTools({ ports, facts }: QuotaOptions, dir: string, signal: AbortSignal): Promise<QuotaTools | null> {
  const { fs, mounter } = ports;
  const mount = mounter === undefined ? null : quotaMount(await mounter.list('/'), dir);
  if (mounter === undefined || mount === null) return null;
  // Where a link leads to the directory, it lies elsewhere than its name says.
  if ((await fs.lstat(dir)).dev !== (await fs.lstat(mount.path)).dev) return null;
  // xfs_quota looks at every mount that it knows of, and a dead server's would hold it up.
  const table = `${facts().rootDir}/project-quota.mounts`;
  const line = `${mount.source} ${mount.path} ${mount.type} rw,prjquota 0 0\n`;
  await inTurn(fs, table, async () => {
    if ((await text(fs, table)) !== line) await replace(fs, table, line);
  });
  const options = ['-t', table, '-P', '/dev/null', '-D', '/dev/null', '-x', '-f', mount.path];
  const tools: QuotaTools = {
    mount,
    run: (command) => mounter.tool('xfs_quota', [...options, '-c', command], lookCall(signal)),
    lsattr: (path) => mounter.tool('lsattr', ['-pd', path], lookCall(signal)),
  };
  // The host may have no such program.
  const state = await ifThere(tools.run(quotaCommand.state));
  return state !== null && countsProjects(state) ? tools : null;
}

async function ran(tools: QuotaTools, command: string): Promise<void> {
  const { code, out, err } = await tools.run(command);
  if (code !== 0) throw new Error(`xfs_quota ${command} ended with ${code}: ${err.trim() || out.trim()}`);
}

async function unused(tools: QuotaTools, files: ProjectFiles): Promise<number> {
  for (const id of freeProjects(files)) {
    const use = projectUse(await tools.run(quotaCommand.use(id, 'b')), await tools.run(quotaCommand.use(id, 'i')));
    if (use !== null && use.bytes === 0 && use.inodes === 0) return id;
  }
  throw new Error('no project is free for another directory');
}

/** The kubelet's files: one change after the other. */
function changing(o: QuotaOptions, change: (files: ProjectFiles) => Promise<void>): Promise<void> {
  return inTurn(o.ports.fs, PROJECTS_FILE, async () => change(await read(o.ports.fs)));
}
async function read(fs: HostFs): Promise<ProjectFiles> {
  return { projects: await text(fs, PROJECTS_FILE), ids: await text(fs, PROJECT_IDS_FILE) };
}
const text = async (fs: HostFs, file: string): Promise<string> => (await textIfThere(fs, file, FILE_BYTES_MAX)) ?? '';
async function write(fs: HostFs, old: ProjectFiles, next: ProjectFiles): Promise<void> {
  if (next.ids !== old.ids) await replace(fs, PROJECT_IDS_FILE, next.ids);
  if (next.projects !== old.projects) await replace(fs, PROJECTS_FILE, next.projects);
}
async function replace(fs: HostFs, file: string, content: string): Promise<void> {
  await fs.writeFile(`${file}.new`, content, { fsync: true });
  await fs.rename(`${file}.new`, file);
}
