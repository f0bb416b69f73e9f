/**
 * The process runtime's state on disk: one JSON file per sandbox and container, each replaced by rename, so that a
 * restarted runtime finds what it left. Environment values are in it: everything is 0600 in folders of 0700.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { NotRegular, readRegularSync, writeOwnSync } from '@actorlet/process/src/regularFile.ts';
import type { Infra } from '../../oci/rows.ts';
import type { ContainerRow, SandboxRow } from '../../shared/model.ts';
import type { ContainerPlan } from '../container/plan.ts';
import type { ProcId } from '../container/procfs.ts';

const VERSION = 1;

export interface StoredSandbox extends SandboxRow {
  hostname: string;
  logDirectory: string;
  /** Of the pod, below the mount of cgroups, where the node made one. */
  cgroupParent?: string;
  /** Set with the kind `oci`. */
  infra?: Infra;
}
export interface StoredContainer extends ContainerRow {
  plan: ContainerPlan;
  /** The shim; null before the start. */
  shim: ProcId | null;
  /** The start was begun: if the runtime ended just then, there may be a process with the container's mark. */
  starting: boolean;
  /** The runtime sent KILL: an end without an exit code is then 137. */
  killed: boolean;
}

/** Every path of one runtime, below `<root-dir>/sandbox`. */
export function layout(rootDir: string) {
  const base = join(rootDir, 'sandbox');
  const exits = join(base, 'exits');
  const containers = join(base, 'containers');
  return {
    base,
    socket: join(base, 'sandbox.sock'),
    streaming: join(base, 'streaming.sock'),
    lock: join(base, 'lock'),
    pid: join(base, 'pid'),
    log: join(base, 'sandboxd.log'),
    shim: join(base, 'shim.sh'),
    init: join(base, 'init.sh'),
    exits,
    exit: (id: string) => join(exits, id),
    ready: (id: string) => join(exits, `${id}.up`),
    container: (id: string, file: 'in' | 'out' | 'err' | 'ack' | 'state.json') => join(containers, id, file),
    containerDir: (id: string) => join(containers, id),
    containers,
    sandboxes: join(base, 'sandboxes'),
    images: join(base, 'images.json'),
    /** Images of the kind `oci`. */
    ociImages: join(base, 'images'),
    pods: join(base, 'pods'),
    holder: join(base, 'holder'),
    kind: join(base, 'kind'),
  };
}
export type Layout = ReturnType<typeof layout>;

const STATE_MODE = 0o600;
const STATE_BYTES_MAX = 64 * 1024 * 1024;
const PID_BYTES_MAX = 64;
/** Ends the name of a state that cannot be used. */
const BAD = '.bad';

/** Socket addresses hold 108 bytes with the final zero. */
const SOCKET_PATH_BYTES_MAX = 107;

/** Makes the folders, private to this user. Throws with what to do when they are not or cannot be. */
export function prepareFolders(l: Layout): void {
  for (const socket of [l.socket, l.streaming]) {
    const bytes = Buffer.byteLength(socket);
    if (bytes > SOCKET_PATH_BYTES_MAX) {
      throw new Error(
        `socket path ${socket} has ${bytes} bytes, the system's limit is ${SOCKET_PATH_BYTES_MAX}: choose a shorter root directory`,
      );
    }
  }
  for (const dir of [l.base, l.exits, l.containers, l.sandboxes]) mkdirSync(dir, { recursive: true, mode: 0o700 });
  const info = statSync(l.base);
  const uid = process.geteuid?.() ?? 0;
  if (info.uid !== uid)
    throw new Error(`${l.base} belongs to user ${info.uid}, not to ${uid}: use another root directory, or run as that user`);
  if ((info.mode & 0o077) !== 0)
    throw new Error(`${l.base} is open to other users (mode ${(info.mode & 0o777).toString(8)}): chmod 700 it`);
}

/** By rename: a shell that is reading the old text goes on reading it. */
export function replaceText(path: string, text: string): void {
  const temp = `${path}.new`;
  writeOwnSync(temp, text, STATE_MODE);
  renameSync(temp, path);
}
const replaceFile = (path: string, value: unknown): void => replaceText(path, JSON.stringify({ version: VERSION, value }));

/** Undefined when the file is missing; one that cannot be used is set aside and reported. */
function readState<T>(path: string, warn: (message: string) => void): T | undefined {
  let text: string;
  try {
    text = readRegularSync(path, { own: true, bytesMax: STATE_BYTES_MAX }).toString('utf8');
  } catch (error) {
    if (error instanceof NotRegular) setAside(path, error, warn);
    else if ((error as NodeJS.ErrnoException).code !== 'ENOENT') warn(`cannot read ${path}: ${(error as Error).message}`);
    return undefined;
  }
  try {
    const parsed = JSON.parse(text) as { version?: unknown; value?: T };
    if (parsed.version !== VERSION) throw new Error(`version ${String(parsed.version)}, expected ${VERSION}`);
    return parsed.value;
  } catch (error) {
    setAside(path, error as Error, warn);
    return undefined;
  }
}

function setAside(path: string, { message }: Error, warn: (message: string) => void): void {
  renameSync(path, `${path}${BAD}`);
  warn(`${path} cannot be used (${message}); set aside as ${path}${BAD}. Processes it described, if any, are no longer managed`);
}

/**
 * Folders of containers without a state: a runtime that was killed made them, and nothing ever ran there. One whose state was set
 * aside stays, for a person to look at. Files about the end of a container go with it.
 */
function dropLeftovers(l: Layout, drop: (id: string) => void): void {
  const there = new Set(readdirSync(l.containers));
  for (const id of there) {
    const state = l.container(id, 'state.json');
    if (!existsSync(state) && !existsSync(`${state}${BAD}`)) drop(id);
  }
  for (const name of readdirSync(l.exits)) {
    const id = name.replace(/\.up$/, '');
    if (!there.has(id)) drop(id);
  }
}

export interface Store {
  saveSandbox(s: StoredSandbox): void;
  saveContainer(c: StoredContainer): void;
  saveImages(names: readonly string[]): void;
  dropSandbox(id: string): void;
  dropContainer(id: string): void;
  load(): { sandboxes: StoredSandbox[]; containers: StoredContainer[]; images: string[] };
}

/** Writes are synchronous and small (page cache, no fsync: after a crash of the machine there are no processes to know). */
export function createStore(l: Layout, warn: (message: string) => void): Store {
  const sandboxFile = (id: string) => join(l.sandboxes, `${id}.json`);
  const containerFile = (id: string) => l.container(id, 'state.json');
  const dropContainer = (id: string): void => {
    rmSync(l.containerDir(id), { recursive: true, force: true });
    rmSync(l.exit(id), { force: true });
    rmSync(l.ready(id), { force: true });
  };
  return {
    saveSandbox: (s) => replaceFile(sandboxFile(s.id), s),
    saveContainer: (c) => replaceFile(containerFile(c.id), c),
    saveImages: (names) => replaceFile(l.images, names),
    dropSandbox(id) {
      rmSync(sandboxFile(id), { force: true });
      rmSync(join(l.pods, id), { recursive: true, force: true });
    },
    dropContainer,
    load() {
      dropLeftovers(l, dropContainer);
      const sandboxes = readdirSync(l.sandboxes)
        .filter((f) => f.endsWith('.json'))
        .map((f) => readState<StoredSandbox>(join(l.sandboxes, f), warn))
        .filter((s) => s !== undefined);
      const containers = readdirSync(l.containers)
        .map((id) => readState<StoredContainer>(containerFile(id), warn))
        .filter((c) => c !== undefined);
      return { sandboxes, containers, images: readState<string[]>(l.images, warn) ?? [] };
    },
  };
}

/** Pid of the runtime that serves a root directory, 0 when no file says so. Whether it lives is another question. */
export function readPidFile(layout: Layout): number {
  try {
    return Number.parseInt(readRegularSync(layout.pid, { own: true, bytesMax: PID_BYTES_MAX }).toString('latin1'), 10) || 0;
  } catch {
    return 0;
  }
}
