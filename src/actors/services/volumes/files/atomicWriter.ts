/**
 * Writes the files of a volume so that every reader sees either all of the old ones or all of the new ones. What a crash
 * leaves half done is never shown, and is cleared away by the next write.
 */

import {
  DATA_LINK,
  DATA_LINK_NEW,
  dataDirName,
  directoriesOf,
  groupMode,
  isUnchanged,
  topNames,
  type WrittenFile,
} from '../../../../machines/services/volumes/atomic.ts';
import type { Payload } from '../../../../machines/services/volumes/payload.ts';
import { codeOf } from '../../../../machines/text/errors.ts';
import { ifThere, listIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import type { Mounter } from '../../../../ports/machine/mounter.ts';
import type { Clock, Entropy, HostFs } from '../../../../ports/ports.ts';
import { giveToGroup } from '../disk/group.ts';

const DATA_DIR_MODE = 0o755;
/** The API server allows an object of 1 MiB; a projected volume joins several, but a file is of one object. */
const FILE_BYTES_MAX = 4 << 20;

export interface AtomicWriterPorts {
  fs: HostFs;
  mounter: Mounter;
  clock: Clock;
  entropy: Entropy;
}
export interface AtomicWrite {
  /** The volume: it exists. */
  dir: string;
  payload: Payload;
  /** The group every file is given to, or null. */
  gid: number | null;
}

/** No other writer may be there meanwhile. True when something was written; false when everything already stood as wanted. */
export async function writeAtomically(ports: AtomicWriterPorts, o: AtomicWrite): Promise<boolean> {
  const { fs } = ports;
  const { dir, gid } = o;
  const wanted = new Map(
    [...o.payload].map(([path, f]) => [path, gid === null ? f : { ...f, mode: groupMode(f.mode, { dir: false, readOnly: true }) }]),
  );
  const tops = topNames(wanted.keys());
  const oldName = await ifThere(fs.readlink(`${dir}/${DATA_LINK}`));
  const old = oldName === null ? null : await readTree(fs, `${dir}/${oldName}`);
  const names = await fs.readdir(dir);
  const linked = await userLinks(fs, dir, names);
  const linksAsWanted = linked.size === tops.size && [...tops].every((t) => linked.get(t) === `${DATA_LINK}/${t}`);
  if (old !== null && linksAsWanted && isUnchanged(old, wanted)) return false;

  const name = dataDirName(ports.clock.wallMs(), ports.entropy.bytes(4));
  const data = `${dir}/${name}`;
  await fs.mkdirp(data, DATA_DIR_MODE);
  try {
    await fs.chmod(data, DATA_DIR_MODE);
    await writeFiles(ports, { data, wanted, gid });
    if (names.includes(DATA_LINK_NEW)) await unlinkIfThere(fs, `${dir}/${DATA_LINK_NEW}`);
    await fs.symlink(name, `${dir}/${DATA_LINK_NEW}`);
    await fs.rename(`${dir}/${DATA_LINK_NEW}`, `${dir}/${DATA_LINK}`);
  } catch (error) {
    await removeData(fs, data);
    throw error;
  }
  const owners = ownersOf(wanted);
  for (const top of tops) {
    if (linked.get(top) === `${DATA_LINK}/${top}`) continue;
    if (names.includes(top)) await unlinkIfThere(fs, `${dir}/${top}`);
    await fs.symlink(`${DATA_LINK}/${top}`, `${dir}/${top}`);
    const uid = owners.get(top);
    // In a folder that all may write to, Linux follows a link for its owner alone.
    if (uid !== undefined) await ports.mounter.chown(`${dir}/${top}`, { uid });
  }
  for (const [top, target] of linked) if (!tops.has(top) && target === `${DATA_LINK}/${top}`) await fs.unlink(`${dir}/${top}`);
  // The one before, and what crashes have left.
  for (const entry of names) if (/^\.\.\d{4}(_\d\d){5}\./.test(entry)) await removeData(fs, `${dir}/${entry}`);
  return true;
}

async function writeFiles(ports: AtomicWriterPorts, o: { data: string; wanted: Payload; gid: number | null }): Promise<void> {
  const { fs, mounter } = ports;
  const { data, gid } = o;
  const dirs = directoriesOf(o.wanted.keys());
  for (const d of dirs) await fs.mkdirp(`${data}/${d}`, DATA_DIR_MODE);
  for (const [path, file] of o.wanted) {
    const at = `${data}/${path}`;
    await fs.writeFile(at, file.data, { mode: file.mode, exclusive: true });
    if (file.uid !== null || gid !== null) {
      await mounter.chown(at, { ...(file.uid === null ? {} : { uid: file.uid }), ...(gid === null ? {} : { gid }) });
    }
  }
  if (gid !== null)
    for (const d of [...dirs.map((d) => `${data}/${d}`), data]) await giveToGroup({ fs, mounter }, d, { gid, readOnly: true });
}

/** Owner of the files behind each link; links of others stay root's. */
function ownersOf(wanted: Payload): Map<string, number> {
  const owners = new Map<string, number>();
  for (const [path, { uid }] of wanted) if (uid !== null) owners.set(path.split('/', 1)[0] ?? path, uid);
  return owners;
}

/** What users see in the volume: name and where it leads; '' for what is no link of ours. */
async function userLinks(fs: HostFs, dir: string, names: readonly string[]): Promise<Map<string, string>> {
  const links = new Map<string, string>();
  for (const name of names) {
    if (name.startsWith('..')) continue;
    const info = await fs.lstat(`${dir}/${name}`);
    if (info.kind === 'symlink') links.set(name, await fs.readlink(`${dir}/${name}`));
  }
  return links;
}

/** Null when it is not all there: then it is written anew. */
async function readTree(fs: HostFs, dir: string, prefix = ''): Promise<Map<string, WrittenFile> | null> {
  const files = new Map<string, WrittenFile>();
  try {
    for (const name of await fs.readdir(`${dir}${prefix === '' ? '' : `/${prefix}`}`)) {
      const path = prefix === '' ? name : `${prefix}/${name}`;
      const info = await fs.lstat(`${dir}/${path}`);
      if (info.kind === 'dir') {
        const below = await readTree(fs, dir, path);
        if (below === null) return null;
        for (const [p, f] of below) files.set(p, f);
      } else if (info.kind === 'file') {
        files.set(path, { data: await fs.readFile(`${dir}/${path}`, { bytesMax: FILE_BYTES_MAX }), mode: info.mode });
      } else return null;
    }
  } catch (error) {
    if (['ENOENT', 'EFBIG', 'ENOTDIR'].includes(codeOf(error))) return null;
    throw error;
  }
  return files;
}

async function removeData(fs: HostFs, dir: string): Promise<void> {
  for (const name of await listIfThere(fs, dir)) {
    const path = `${dir}/${name}`;
    if ((await fs.lstat(path)).kind === 'dir') await removeData(fs, path);
    else await fs.unlink(path);
  }
  await fs.rmdir(dir);
}
