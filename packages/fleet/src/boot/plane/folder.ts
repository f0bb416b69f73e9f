/** The folder of a control plane: a new one that goes with it, or one that a person named and that is gone on with. */
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readRegularSync } from '@actorlet/process/src/regularFile.ts';
import { UsageError } from '../args.ts';
import type { Assets } from './assets.ts';
import { claimFolder, isClaim } from './claim.ts';
import { removeLeft } from './left.ts';
import { sweep } from './warden.ts';

const PREFIX = 'actorlet-plane-';
const RECORD = 'plane.json';
const FORMAT = 1;
const RECORD_BYTES_MAX = 64 * 1024;
/** etcd alone takes 64 MB for a log that it writes ahead. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;

/** What a later start must know. */
interface PlaneRecord {
  kubernetes: string;
  etcd: string;
  ports: { etcd: number; api: number };
}

export interface PlaneFolder extends Disposable {
  dir: string;
  /** It goes with the control plane. */
  temporary: boolean;
  /** Of an earlier control plane; null: there was none. */
  record: PlaneRecord | null;
  write(record: PlaneRecord): void;
  /** Removes a temporary one. */
  remove(): void;
}

/**
 * @param data A path; '': a new folder. @throws UsageError where it is in use, holds something else, belongs to another version, or has
 * no room.
 */
export async function openFolder(data: string, assets: Assets): Promise<PlaneFolder> {
  const temporary = data === '';
  const dir = temporary ? inWords(tmpdir(), () => mkdtempSync(join(realpathSync(tmpdir()), PREFIX))) : namedFolder(data);
  if (temporary) await removeLeft(PREFIX, sweep);
  const claim = await claimFolder(dir);
  if (claim === null)
    throw new UsageError(`--data ${data}: another control plane of this machine runs in it; stop that one first, or name another folder`);
  try {
    const record = temporary ? null : recordOf(data, dir);
    if (record !== null) checkVersions(data, record, assets);
    checkRoom(dir, temporary);
    if (!temporary) await sweep(dir);
    return {
      dir,
      temporary,
      record,
      write: (of) => writeRecord(dir, of),
      remove() {
        if (temporary) rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      },
      [Symbol.dispose]: () => claim[Symbol.dispose](),
    };
  } catch (error) {
    claim[Symbol.dispose]();
    if (temporary) rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

function namedFolder(data: string): string {
  return inWords(`--data ${data}`, () => {
    mkdirSync(resolve(data), { recursive: true, mode: 0o700 });
    return realpathSync(resolve(data));
  });
}

function inWords<T>(where: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new UsageError(`${where} cannot be used as the folder of a control plane: ${messageOf(error)}`);
  }
}

/** Null: it is empty. */
function recordOf(data: string, dir: string): PlaneRecord | null {
  return inWords(`--data ${data}`, () => {
    const names = readdirSync(dir).filter((name) => !isClaim(name));
    if (names.length === 0) return null;
    if (!names.includes(RECORD)) throw new Error('it holds other files, and none of a control plane; name a new folder or an empty one');
    const read = jsonOf(join(dir, RECORD));
    const { format, kubernetes, etcd, ports } = isRecord(read) ? read : {};
    if (format !== FORMAT) throw new Error(`${RECORD} in it is of another version of this program`);
    const { etcd: etcdPort, api } = isRecord(ports) ? ports : {};
    if (typeof kubernetes !== 'string' || typeof etcd !== 'string' || !isPort(etcdPort) || !isPort(api))
      throw new Error(`${RECORD} in it lacks kubernetes, etcd or ports`);
    return { kubernetes, etcd, ports: { etcd: etcdPort, api } };
  });
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536;
}

function jsonOf(path: string): unknown {
  const text = readRegularSync(path, { bytesMax: RECORD_BYTES_MAX }).toString();
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${RECORD} in it is damaged (${messageOf(error)}); name a new folder`);
  }
}

/** etcd and the API server write what other minor releases may not read. */
function checkVersions(data: string, record: PlaneRecord, assets: Assets): void {
  const pairs = [
    ['kube-apiserver', record.kubernetes, assets['kube-apiserver'].version],
    ['etcd', record.etcd, assets.etcd.version],
  ] as const;
  for (const [name, was, is] of pairs) {
    if (minorOf(was) === minorOf(is)) continue;
    throw new UsageError(
      `--data ${data} was written by ${name} ${was}, and the one found here is ${is} (${assets[name].path}): name programs of ${minorOf(was)} with KUBEBUILDER_ASSETS, or another folder`,
    );
  }
}

/** `1.36` of `1.36.2`. */
export function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

function checkRoom(dir: string, temporary: boolean): void {
  const { bavail, bsize } = statfsSync(dir);
  const free = bavail * bsize;
  if (free >= FREE_BYTES_MIN) return;
  const mib = (bytes: number): number => Math.floor(bytes / 1024 ** 2);
  const instead = temporary ? 'name a folder of another disk with --data DIR or TMPDIR' : 'make room, or name another folder';
  throw new UsageError(`the disk of ${dir} has ${mib(free)} MiB free, and a control plane needs ${mib(FREE_BYTES_MIN)}: ${instead}`);
}

function writeRecord(dir: string, record: PlaneRecord): void {
  const path = join(dir, RECORD);
  writeFileSync(`${path}.new`, `${JSON.stringify({ format: FORMAT, ...record }, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
