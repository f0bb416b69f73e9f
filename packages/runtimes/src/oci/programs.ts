/**
 * The programs that run OCI images: found by name and version, as this user may use them. Starts nothing but `--version`;
 * `actorlet --check` prints what is found here.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { findCommand } from '../process/probe.ts';

const VERSION_WITHIN_MS = 5000;
const TUN = '/dev/net/tun';
/** Fewest ids beyond the user's own, for the users of an image. */
const IDS_MIN = 65_535;

interface Program {
  name: string;
  path: string;
  /** '' where it does not say. */
  version: string;
}
/** What a machine lacks. `todo` begins with a verb. */
export interface Lack {
  what: string;
  todo: string;
}
/** Ids of this machine that a user may give to containers. */
interface SubIds {
  start: number;
  count: number;
}

export interface Programs {
  /** crun, else runc. */
  runtime: Program;
  skopeo: Program;
  umoci: Program;
  /** pasta, else slirp4netns; null: pods have a loopback network of their own and no way out. */
  network: Program | null;
  /** Null for root. */
  ids: { newuidmap: string; newgidmap: string; uids: SubIds; gids: SubIds } | null;
  unshare: string;
  nsenter: string;
  setpriv: string;
  mount: string;
  prlimit: string;
}
export interface Search {
  /** Null where something that every pod needs is missing. */
  programs: Programs | null;
  found: Program[];
  /** Each stops the runtime. */
  missing: Lack[];
  /** Pods have no way out of their network because of it. */
  noNetwork: Lack | null;
}

interface Wanted {
  name: string;
  package: string;
  /** Older ones lack something that this runtime uses; '' for any. */
  atLeast: string;
}
const RUNTIMES: readonly Wanted[] = [
  { name: 'crun', package: 'crun', atLeast: '1.0' },
  { name: 'runc', package: 'runc', atLeast: '1.1' },
];
const SKOPEO: Wanted = { name: 'skopeo', package: 'skopeo', atLeast: '1.4' };
/** Older ones write outside of the root file system: CVE-2021-29136. */
const UMOCI: Wanted = { name: 'umoci', package: 'umoci', atLeast: '0.4.7' };
const NETWORKS: readonly Wanted[] = [
  { name: 'pasta', package: 'passt', atLeast: '' },
  { name: 'slirp4netns', package: 'slirp4netns', atLeast: '1.0' },
];
const HELPERS = { unshare: 'util-linux', nsenter: 'util-linux', setpriv: 'util-linux', prlimit: 'util-linux', mount: 'mount' } as const;

/** @param uid 0 for root. Paths are for tests. */
export async function findPrograms(
  path: string,
  o: { uid?: number; user?: string; subuid?: string; subgid?: string; tun?: string } = {},
): Promise<Search> {
  const uid = o.uid ?? process.geteuid?.() ?? 0;
  const found: Program[] = [];
  const missing: Lack[] = [];
  const one = async (wanted: readonly Wanted[]): Promise<{ program: Program | null; lack: Lack }> => {
    let lack: Lack = {
      what: `${wanted.map((w) => w.name).join(' or ')} is not installed`,
      todo: `Install ${wanted.map((w) => `the package ${w.package}`).join(' or ')}.`,
    };
    for (const w of wanted) {
      const file = findCommand(w.name, path);
      if (file === '') continue;
      const version = await versionOf(file);
      const program = { name: w.name, path: file, version };
      if (version === '' || w.atLeast === '' || !older(version, w.atLeast)) {
        found.push(program);
        return { program, lack };
      }
      lack = { what: `${file} is version ${version}, ${w.atLeast} is needed`, todo: `Install a newer package ${w.package}.` };
    }
    return { program: null, lack };
  };
  const [runtime, skopeo, umoci, network] = await Promise.all([one(RUNTIMES), one([SKOPEO]), one([UMOCI]), one(NETWORKS)]);
  for (const { program, lack } of [runtime, skopeo, umoci]) if (program === null) missing.push(lack);
  const helpers = { unshare: '', nsenter: '', setpriv: '', mount: '', prlimit: '' };
  for (const [name, from] of Object.entries(HELPERS) as [keyof typeof HELPERS, string][]) {
    helpers[name] = findCommand(name, path);
    if (helpers[name] === '') missing.push({ what: `${name} is not installed`, todo: `Install the package ${from}.` });
  }
  const ids = uid === 0 ? null : subIds(path, { uid, ...o }, missing);
  const tun = openable(o.tun ?? TUN);
  const noTun: Lack = { what: `${o.tun ?? TUN} cannot be opened`, todo: 'Run modprobe tun; its mode is 0666 on most systems.' };
  const noNetwork = network.program === null ? network.lack : tun ? null : noTun;
  const ready = missing.length === 0 && runtime.program !== null && skopeo.program !== null && umoci.program !== null;
  const programs: Programs | null =
    ready && runtime.program !== null && skopeo.program !== null && umoci.program !== null
      ? {
          ...{ runtime: runtime.program, skopeo: skopeo.program, umoci: umoci.program },
          ...{ network: noNetwork === null ? network.program : null, ids },
          ...helpers,
        }
      : null;
  return { programs, found: found.sort((a, b) => a.name.localeCompare(b.name)), missing, noNetwork };
}

/** What is missing, in one line. */
export function lackText(missing: readonly Lack[]): string {
  return missing.map((l) => `${l.what}. ${l.todo}`).join(' ');
}

/** Also what cannot be had is pushed to `missing`. */
function subIds(path: string, o: { uid: number; user?: string; subuid?: string; subgid?: string }, missing: Lack[]): Programs['ids'] {
  const newuidmap = findCommand('newuidmap', path);
  const newgidmap = findCommand('newgidmap', path);
  if (newuidmap === '' || newgidmap === '') missing.push({ what: 'newuidmap is not installed', todo: 'Install the package uidmap.' });
  const user = o.user ?? userName();
  const uids = rangeOf(o.subuid ?? '/etc/subuid', [user, String(o.uid)]);
  const gids = rangeOf(o.subgid ?? '/etc/subgid', [user, String(o.uid)]);
  if (uids === null || gids === null) {
    const name = user || String(o.uid);
    const file = uids === null ? (o.subuid ?? '/etc/subuid') : (o.subgid ?? '/etc/subgid');
    missing.push({
      what: `${file} gives user ${name} no ${IDS_MIN + 1} ids for the users of images`,
      todo: `As root run usermod --add-subuids 200000-265535 --add-subgids 200000-265535 ${name} (other numbers if these are taken).`,
    });
  }
  return newuidmap === '' || newgidmap === '' || uids === null || gids === null ? null : { newuidmap, newgidmap, uids, gids };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry in /etc/passwd.
    return '';
  }
}

function rangeOf(file: string, names: readonly string[]): SubIds | null {
  let text = '';
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return null;
  }
  for (const line of text.split('\n')) {
    const [name = '', start = '', count = ''] = line.trim().split(':');
    if (name !== '' && names.includes(name) && Number(start) > 0 && Number(count) >= IDS_MIN)
      return { start: Number(start), count: Number(count) };
  }
  return null;
}

function openable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function versionOf(file: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(file, ['--version'], { timeout: VERSION_WITHIN_MS }, (_error, stdout, stderr) => {
      resolve(/\b\d+\.\d+(?:\.\d+)?/.exec(`${stdout}${stderr}`)?.[0] ?? '');
    });
  });
}

function older(version: string, than: string): boolean {
  const [a, b] = [version, than].map((v) => v.split('.').map(Number)) as [number[], number[]];
  for (let i = 0; i < 3; i++) if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) < (b[i] ?? 0);
  return false;
}
