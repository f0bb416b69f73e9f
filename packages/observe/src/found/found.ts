/**
 * The kubelet of this machine as it is: its process, flags, files, names and sockets. Nothing is changed, and nothing is refused that
 * another release of it may have: what cannot be read is a remark.
 */
import { constants } from 'node:fs';
import { access, opendir, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname } from 'node:path';
import { type LoadedConfig, loadConfig } from '@actorlet/kubelet/boot/config/load.ts';
import { type Tree, withPath } from '@actorlet/kubelet/boot/config/paths.ts';
import { StartError } from '@actorlet/kubelet/boot/errors.ts';
import { type GivenFlag, readFlags } from '@actorlet/kubelet/boot/flags/parse.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { unsaidWords } from '../border/releases.ts';
import { type Access, accessOf, nodeOfCertificate } from './access.ts';
import { type HostView, hostViewOf } from './hostView.ts';
import { kubeletArgs } from './inside.ts';
import { type KubeletProcess, type ProcessSearch, processOf, searchKubelets, stateOf } from './processes.ts';
import { askRunning, type Difference, differencesOf, type Running } from './running.ts';

export interface FindOptions {
  /** For tests; default: /proc. */
  proc?: string;
  /** `--kubelet-pid`; null: it is searched for. */
  pid: number | null;
  /** The one that was observed until now: its next start is looked for. */
  before?: Before;
  /** `--host-root`; null: it is found out. */
  hostRoot: string | null;
  /** `--kubelet-credentials`. */
  asKubelet: boolean;
  /** Flags of the observer, which win over those of the kubelet. */
  own: ReadonlyMap<string, GivenFlag>;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  signal: AbortSignal;
  /** Is told of the process before anything else is known of it. */
  seen?(pid: number): void;
  /** Where service accounts are, for tests. */
  accountFolder?: string;
}

export interface Before {
  process: KubeletProcess;
  /** Wall ms at which it ran still. */
  seenMs: number;
}

export interface FoundKubelet {
  process: KubeletProcess;
  view: HostView;
  /** Where its flags come from, in words. */
  flagsFrom: string;
  /** Its own flags. */
  given: ReadonlyMap<string, GivenFlag>;
  /** By its files and flags, and by its running configuration where that is known; the observer's flags over all. */
  loaded: LoadedConfig;
  /** The same by its files and flags alone. */
  files: LoadedConfig;
  nodeName: { value: string; from: string };
  access: Access;
  /** Null: there is nobody to ask. */
  running: Running | null;
  differences: readonly Difference[];
  /** Lines for people: what is odd, what cannot be seen, and why. */
  remarks: readonly string[];
}

/** A file is as old as its last change; clocks of file systems are coarse. */
const SLACK_MS = 1_000;

/** @throws StartError: there is no kubelet, or more than one. */
export async function findKubelet(o: FindOptions): Promise<FoundKubelet> {
  const proc = o.proc ?? '/proc';
  const process = await chooseProcess(proc, o);
  o.seen?.(process.pid);
  const view = await hostViewOf({ proc, pid: process.pid }, o.hostRoot);
  const { args, from, remarks } = await kubeletArgs(process, view);
  const { given, unread } = readFlags(args, { cwd: process.cwd ?? '/' });
  const files = await loadSeen(given, { view, cwd: process.cwd ?? '/' });
  const access = await accessOf(files, view, {
    own: text(o.own, 'kubeconfig'),
    asKubelet: o.asKubelet,
    env: o.env,
    ...(o.accountFolder === undefined ? {} : { accountFolder: o.accountFolder }),
  });
  const nodeName = await nodeNameOf({ given, own: o.own, env: o.env, access });
  const running =
    access.client === null
      ? null
      : await askRunning({
          client: access.client,
          ownRights: access.kind !== 'kubelet',
          nodeName: nodeName.value,
          loaded: files,
          view,
          ...{ clock: o.clock, env: o.env, signal: o.signal },
        });
  const changed = await changedSince(process.startedMs, files, view);
  const setBy = (path: string): string | null => flagOf(path, given) ?? files.origins.get(path) ?? null;
  const differences = running?.config == null ? [] : differencesOf(running.config, files.config, { setBy, changed });
  const said = [
    ...unread.map(({ flag, why }) => `the flag ${flag} of the kubelet is not read: ${why}`),
    ...remarks,
    ...[...files.errors, ...files.warnings].map(({ where, what }) => `${where}: ${what}`),
    ...changed.map((path) => `${path} changed after the kubelet was started: it runs with what was there before`),
    ...(running === null ? [] : remarksOf(running, files)),
    ...(await unseen(files, view)),
  ];
  const over = { own: o.own, nodeName: nodeName.value };
  const loaded = withOwn({ ...files, config: running?.config ?? files.config }, over);
  return {
    process,
    view,
    flagsFrom: from,
    given,
    loaded,
    files: withOwn(files, over),
    nodeName,
    access,
    running,
    differences,
    remarks: said,
  };
}

async function chooseProcess(proc: string, { pid, before }: Pick<FindOptions, 'pid' | 'before'>): Promise<KubeletProcess> {
  const title = 'the kubelet of this machine was not found';
  const fail = (where: string, what: string): never => {
    throw new StartError(title, [{ where, what }]);
  };
  try {
    // Its number may be another program's by now.
    if (before !== undefined) {
      if ((await stateOf(proc, before.process)) !== null) return await processOf(proc, before.process.pid);
    } else if (pid !== null) return await processOf(proc, pid);
  } catch (error) {
    return fail('--kubelet-pid', messageOf(error));
  }
  let search: ProcessSearch;
  try {
    search = await searchKubelets(proc);
  } catch (error) {
    return fail(proc, `it cannot be read: ${messageOf(error)}`);
  }
  const found = before === undefined ? search.found : nextOf(before, search.found);
  const [one, ...more] = found;
  const others = search.refused.map(({ pid: id, name, why }) => `process ${id} (${name}) ${why}`);
  if (one === undefined) {
    const hint = others.length > 0 ? `${others.join('; ')}. Choose one with --kubelet-pid` : 'In a container it needs hostPID: true';
    return fail(proc, `none of its ${search.seen} processes is a kubelet. ${hint}`);
  }
  if (more.length === 0) return one;
  const pids = found.map(({ pid: id, program }) => `${id} (${program})`).join(', ');
  return fail('--kubelet-pid', `more than one kubelet runs on this machine: processes ${pids}. Choose one with --kubelet-pid`);
}

/** Of several kubelets on a machine each keeps these flags from start to start. */
const OF_ITS_NODE: readonly string[] = ['--root-dir', '--config', '--kubeconfig', '--hostname-override'];

/**
 * Those that may be its next start: with the same words, else of the same node, else one that was not there beside it and has one of the
 * node's flags in common. One that has none is of another node.
 */
function nextOf({ process, seenMs }: Before, found: readonly KubeletProcess[]): readonly KubeletProcess[] {
  const words = ({ args }: KubeletProcess): string => args.join('\0');
  const node = ({ args }: KubeletProcess): string[] =>
    OF_ITS_NODE.map((flag) => {
      const at = args.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
      return (args[at] === flag ? args[at + 1] : args[at]?.slice(flag.length + 1)) ?? '';
    });
  for (const key of [words, (one: KubeletProcess) => node(one).join('\0')]) {
    const alike = found.filter((one) => key(one) === key(process));
    if (alike.length > 0) return alike;
  }
  const before = node(process);
  return found.filter((one) => one.startedMs > seenMs - SLACK_MS && node(one).some((value, i) => value === before[i]));
}

/** The files where they lie here, under the names that the kubelet has for them. */
async function loadSeen(given: ReadonlyMap<string, GivenFlag>, { view, cwd }: { view: HostView; cwd: string }): Promise<LoadedConfig> {
  const placed = new Map(given);
  for (const name of ['config', 'config-dir']) {
    const flag = given.get(name);
    if (flag === undefined || typeof flag.value !== 'string' || flag.value === '') continue;
    // A link as the folder of drop-ins is not followed, but with a slash behind it.
    const folder = name === 'config-dir' && !flag.value.endsWith('/');
    const at = folder ? `${await view.at(dirname(flag.value))}/${basename(flag.value)}` : await view.at(flag.value);
    placed.set(name, { ...flag, value: flag.value.endsWith('/') ? `${at}/` : at });
  }
  const loaded = await loadConfig(placed, cwd);
  if (view.root === '') return loaded;
  const { config, configDir } = { config: text(given, 'config'), configDir: text(given, 'config-dir') };
  return {
    ...loaded,
    flags: { ...loaded.flags, config, configDir },
    config: namedIn(loaded.config, view),
    origins: new Map([...loaded.origins].map(([path, where]) => [path, view.named(where)])),
  };
}

/** Relative paths of a file stand against its folder, which has another name here. */
function namedIn<T>(value: T, view: HostView): T;
function namedIn(value: unknown, view: HostView): unknown {
  if (typeof value === 'string') return view.named(value);
  if (Array.isArray(value)) return value.map((item: unknown) => namedIn(item, view));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, namedIn(item, view)]));
}

/** As the kubelet names its node; what says it for sure comes first. */
async function nodeNameOf(o: {
  given: ReadonlyMap<string, GivenFlag>;
  own: ReadonlyMap<string, GivenFlag>;
  env: FindOptions['env'];
  access: Access;
}): Promise<{ value: string; from: string }> {
  const certificate = o.access.kind === 'kubelet' ? await nodeOfCertificate(o.access.client) : null;
  const candidates = [
    { value: text(o.own, 'hostname-override'), from: '--hostname-override of the observer' },
    { value: text(o.given, 'hostname-override'), from: '--hostname-override' },
    { value: o.env.NODE_NAME ?? '', from: 'NODE_NAME of this pod' },
    { value: certificate ?? '', from: 'the client certificate of the kubelet' },
    { value: hostname(), from: 'the host name' },
  ];
  const found = candidates.find(({ value }) => value.trim() !== '');
  return { value: (found?.value ?? '').trim().toLowerCase(), from: found?.from ?? 'nothing' };
}

function text(given: ReadonlyMap<string, GivenFlag>, name: string): string {
  const value = given.get(name)?.value;
  return typeof value === 'string' ? value : '';
}

/** The flag of a command line that sets a field. */
function flagOf(path: string, given: ReadonlyMap<string, GivenFlag>): string | null {
  for (const { spec } of given.values())
    if (spec.cfg !== undefined && (path === spec.cfg || path.startsWith(`${spec.cfg}.`))) return `--${spec.name}`;
  return null;
}

/** Files of the configuration that are younger than the process, under the kubelet's names. */
async function changedSince(startedMs: number, { files, flags }: LoadedConfig, view: HostView): Promise<string[]> {
  const folder = flags.configDir === '' ? [] : [await view.at(flags.configDir)];
  const out: string[] = [];
  for (const path of [...files, ...folder]) {
    // A file that was moved there has an old content and a new place.
    const { ctimeMs } = (await stat(path).catch(() => null)) ?? { ctimeMs: 0 };
    if (ctimeMs > startedMs + SLACK_MS) out.push(view.named(path));
  }
  return out;
}

function remarksOf({ version, config, configFrom, unknownFields, forbidden }: Running, files: LoadedConfig): string[] {
  const unsaid = version === null ? [] : unsaidWords({ version, gates: (config ?? files.config).featureGates });
  // What its file says has been named already.
  const named = files.warnings.map(({ where, what }) => `${where} ${what}`).join('\n');
  const fields = unknownFields.filter((field) => !named.includes(field));
  return [
    ...forbidden,
    ...(unsaid.length === 0 ? [] : [`the kubelet does not write these, so they are not judged: ${unsaid.join(', ')}`]),
    ...(config === null ? [`the running configuration cannot be read, so files and flags count: ${configFrom}`] : []),
    ...(fields.length === 0 ? [] : [`the kubelet has fields that this release does not know: ${fields.join(', ')}`]),
  ];
}

/** Places that the tree reads under the kubelet's own names. */
async function unseen({ flags, config }: LoadedConfig, view: HostView): Promise<string[]> {
  const socket = /^unix:\/\/(\/.*)$/.exec(config.containerRuntimeEndpoint)?.[1];
  const places = [
    { what: 'the root directory', path: flags.rootDir },
    { what: 'the folder of pod logs', path: config.podLogsDir },
    { what: 'the socket of the runtime', path: socket ?? '' },
    { what: 'the static pods', path: config.staticPodPath },
  ];
  const out: string[] = [];
  for (const { what, path } of places) {
    if (path === '') continue;
    if (await view.same(path)) {
      const why = await unreadable(path);
      if (why !== null) out.push(`cannot see ${what}, because ${why}`);
      continue;
    }
    const why = view.root === '' ? `there is no ${path} here` : `${path} of the machine is not at ${path} here: mount it there (hostPath)`;
    out.push(`cannot see ${what}, because ${why}`);
  }
  return out;
}

/** Why a folder cannot be listed, or anything else not be read; null: it can. */
async function unreadable(path: string): Promise<string | null> {
  try {
    if ((await stat(path)).isDirectory()) await (await opendir(path)).close();
    else await access(path, constants.R_OK);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The observer's flags over all, and the node's name as it was found. */
function withOwn(loaded: LoadedConfig, { own, nodeName }: { own: ReadonlyMap<string, GivenFlag>; nodeName: string }): LoadedConfig {
  let flags = { ...loaded.flags, hostnameOverride: nodeName };
  let config: Tree = { ...loaded.config };
  for (const { spec, value } of own.values()) {
    if (value === undefined) continue;
    if (spec.flag !== undefined) flags = { ...flags, [spec.flag]: value };
    else if (spec.cfg !== undefined) config = withPath(config, spec.cfg, value);
  }
  return { ...loaded, flags, config: { ...loaded.config, ...config } };
}
