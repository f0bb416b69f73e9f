/** The programs of a control plane on this machine: in KUBEBUILDER_ASSETS, in the folders of envtest, or in PATH. */
import { accessSync, closeSync, constants, openSync, readdirSync, readSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { runProgram } from '@actorlet/kubelet/boot/dependencies/program.ts';
import { TARGET_MAJOR, TARGET_MINOR } from '@actorlet/kubelet/boot/version.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { PROGRAMS, type ProgramName } from '../../plane/messages.ts';
import { UsageError } from '../args.ts';

interface FoundProgram {
  path: string;
  /** Such as `1.36.2`. */
  version: string;
}
export type Assets = Record<'etcd' | 'kube-apiserver', FoundProgram> & Partial<Record<ProgramName, FoundProgram>>;

/** Of the process. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  arch: string;
  /** Folders that are looked at after KUBEBUILDER_ASSETS. Default: those of envtest, and PATH. */
  folders?: readonly string[];
}

const VERSION_TIMEOUT_MS = 30_000;
const KUBEBUILDER = '/usr/local/kubebuilder/bin';
/** What these programs print about themselves. */
const versionIn = (name: ProgramName): RegExp =>
  new RegExp(`${name === 'etcd' ? 'etcd Version: ' : 'Kubernetes v'}(\\d+)\\.(\\d+)\\.(\\d+)(\\S*)`);
/** Newer programs of this kind than these are published for the release that this project follows. */
const RELEASE = `${TARGET_MAJOR}.${TARGET_MINOR}`;
/** By Node's name of it. */
const ELF_MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183, arm: 40, ia32: 3, ppc64: 21, s390x: 22, riscv64: 243 };
const GO_ARCH: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

export const thisProcess = (): Surroundings => ({ env: process.env, platform: process.platform, arch: process.arch });

/** @throws UsageError with the commands that fetch what is missing, and where a program is not for this machine. */
export async function findAssets(of: Surroundings, signal: AbortSignal): Promise<Assets> {
  const named = of.env.KUBEBUILDER_ASSETS ?? '';
  if (named !== '' && seen(named)?.isDirectory() !== true)
    throw new UsageError(`KUBEBUILDER_ASSETS names ${named}, which is no folder that this user can read`);
  const folders = [...(named === '' ? [] : [named]), ...(of.folders ?? usualFolders(of))];
  const paths = new Map(PROGRAMS.flatMap((name) => pathOf(name, folders).map((path) => [name, path] as const)));
  if (!paths.has('etcd') || !paths.has('kube-apiserver')) throw new UsageError(missing(of));
  for (const path of paths.values()) checkProgram(path, of.arch);
  const failed = new AbortController();
  try {
    const asked = AbortSignal.any([signal, failed.signal]);
    const found = await Promise.all(
      [...paths].map(async ([name, path]) => [name, { path, version: await versionOf(name, path, asked) }] as const),
    );
    return Object.fromEntries(found) as Assets;
  } finally {
    // Those that were not waited for end, too.
    failed.abort();
  }
}

function usualFolders({ env, platform, arch }: Surroundings): string[] {
  const path = (env.PATH ?? '').split(delimiter).filter((dir) => dir !== '');
  return [KUBEBUILDER, ...envtestFolders(storeOf(env, platform), `${platform}-${goArch(arch)}`), ...path];
}

/** Where setup-envtest keeps what it fetched. */
function storeOf(env: Surroundings['env'], platform: NodeJS.Platform): string {
  const home = env.HOME || homedir();
  if (platform === 'darwin') return join(home, 'Library/Application Support/io.kubebuilder.envtest/k8s');
  return join(env.XDG_DATA_HOME || join(home, '.local/share'), 'kubebuilder-envtest/k8s');
}

/** `1.36.2-linux-amd64` and so on, the newest first. */
function envtestFolders(store: string, machine: string): string[] {
  const numbers = (name: string): number[] => name.split('-')[0]?.split('.').map(Number) ?? [];
  const newer = (a: string, b: string): number => {
    const [x, y] = [numbers(a), numbers(b)];
    return [0, 1, 2].map((i) => (y[i] ?? 0) - (x[i] ?? 0)).find((difference) => difference !== 0) ?? 0;
  };
  return namesIn(store)
    .filter((name) => name.endsWith(`-${machine}`))
    .sort(newer)
    .map((name) => join(store, name));
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    // There is none, or it is not for this user.
    return [];
  }
}

/** Undefined: there is none, or it is not for this user. */
function seen(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** One, or none. */
function pathOf(name: string, folders: readonly string[]): string[] {
  // A program is started in another folder than this one.
  const there = folders.map((dir) => resolve(dir, name)).find((path) => seen(path)?.isFile() === true);
  return there === undefined ? [] : [there];
}

function checkProgram(path: string, arch: string): void {
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new UsageError(`${path} may not be executed by this user: chmod +x it, or name other programs with KUBEBUILDER_ASSETS`);
  }
  const other = otherMachine(path, arch);
  if (other === NO_PROGRAM)
    throw new UsageError(`${path} is ${NO_PROGRAM}: fetch it again, or name other programs with KUBEBUILDER_ASSETS`);
  if (other !== null)
    throw new UsageError(`${path} is ${other}, and this machine is ${goArch(arch)}: fetch the programs for ${goArch(arch)}`);
}

async function versionOf(name: ProgramName, path: string, signal: AbortSignal): Promise<string> {
  let said: string;
  try {
    said = await runProgram({ command: path, args: ['--version'], env: {} }, { clock: createClock(), limitMs: VERSION_TIMEOUT_MS, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new UsageError(`${path} --version failed, so it cannot be used as ${name}: it ${messageOf(error)}`);
  }
  const [, major, minor, patch, rest] = versionIn(name).exec(said) ?? [];
  if (major === undefined) throw new UsageError(`${path} is no ${name}: its --version says ${JSON.stringify(said.slice(0, 80))}`);
  return `${major}.${minor}.${patch}${rest}`;
}

const NO_PROGRAM = 'no program';

/** Null: for this one, or a script. */
function otherMachine(path: string, arch: string): string | null {
  const head = Buffer.alloc(20);
  const fd = openSync(path, 'r');
  try {
    if (readSync(fd, head) < head.length) return NO_PROGRAM;
  } finally {
    closeSync(fd);
  }
  const magic = head.toString('latin1', 0, 4);
  if (magic === '\x7fELF') {
    const machine = head[5] === 2 ? head.readUInt16BE(18) : head.readUInt16LE(18);
    if (process.platform !== 'linux') return 'a program for Linux';
    if (machine === (ELF_MACHINES[arch] ?? machine)) return null;
    const its = Object.entries(ELF_MACHINES).find(([, number]) => number === machine)?.[0];
    return `a program for ${its === undefined ? `another architecture (ELF machine ${machine})` : goArch(its)}`;
  }
  const isMach = [0xfeedfacf, 0xcafebabe].includes(head.readUInt32BE(0)) || head.readUInt32LE(0) === 0xfeedfacf;
  if (isMach) return process.platform === 'darwin' ? null : 'a program for macOS';
  if (magic.startsWith('MZ')) return 'a program for Windows';
  return magic.startsWith('#!') ? null : NO_PROGRAM;
}

function goArch(arch: string): string {
  return GO_ARCH[arch] ?? arch;
}

function missing(of: Surroundings): string {
  const { env, platform } = of;
  const where = env.KUBEBUILDER_ASSETS ? `KUBEBUILDER_ASSETS (${env.KUBEBUILDER_ASSETS})` : 'KUBEBUILDER_ASSETS (not set)';
  const [setup, more] = fetching(of);
  return `--api local needs etcd and kube-apiserver, and they are neither in ${where}, nor in ${KUBEBUILDER}, nor in ${storeOf(env, platform)}, nor in PATH; fetch them with \`${setup}\`, and what runs Deployments and schedules pods with \`${more}\``;
}

/** Commands that fetch etcd and kube-apiserver, and then the other two of that version. */
export function fetching({ platform, arch }: Pick<Surroundings, 'platform' | 'arch'>, version = `${RELEASE}.0`): [string, string] {
  const machine = `${platform}/${goArch(arch)}`;
  const base = `https://dl.k8s.io/v${version}/bin/${machine}`;
  return [
    `go run sigs.k8s.io/controller-runtime/tools/setup-envtest@latest use ${RELEASE}.x`,
    `curl -fL --remote-name-all ${base}/kube-controller-manager ${base}/kube-scheduler && chmod +x kube-controller-manager kube-scheduler`,
  ];
}
