/**
 * Flags of a kubelet that runs inside another program: k3s makes them of its own configuration, microk8s has them in a file. What
 * cannot be known that way is said; the running configuration has the rest.
 */
import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { readUnit, variablesOf } from '@actorlet/check/src/unit.ts';
import { expandedWords, wordsOf } from '@actorlet/check/src/unitWords.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { parse } from 'yaml';
import type { HostView } from './hostView.ts';
import type { KubeletKind, KubeletProcess } from './processes.ts';

export interface KubeletArgs {
  args: readonly string[];
  /** Where they come from, in words. */
  from: string;
  remarks: string[];
}

const FILE_BYTES_MAX = 1024 * 1024;
const FILES_MAX = 100;

export const PROGRAM_OF: Readonly<Record<KubeletKind, string>> = {
  kubelet: 'a process of its own',
  k3s: 'inside k3s',
  microk8s: 'inside kubelite of microk8s',
};

/** The kubelet's own flags, wherever they stand. */
export async function kubeletArgs(process: KubeletProcess, view: HostView): Promise<KubeletArgs> {
  if (process.kind === 'k3s') return k3sArgs(process, view);
  if (process.kind === 'microk8s') return microk8sArgs(process, view);
  return { args: process.args, from: `the command line of process ${process.pid}`, remarks: [] };
}

const K3S_CONFIG = '/etc/rancher/k3s/config.yaml';
const K3S_DATA = '/var/lib/rancher/k3s';
const K3S_SOCKET = '/run/k3s/containerd/containerd.sock';
/** Of k3s, which they go to the kubelet from. Others say nothing to it. */
const K3S_OPTIONS = ['data-dir', 'node-name', 'node-ip', 'container-runtime-endpoint', 'image-service-endpoint', 'kubelet-arg'];

async function k3sArgs({ args }: KubeletProcess, view: HostView): Promise<KubeletArgs> {
  const remarks: string[] = [];
  const options = new Map<string, string[]>();
  const add = (name: string, values: readonly string[]): void => {
    if (K3S_OPTIONS.includes(name)) options.set(name, name === 'kubelet-arg' ? [...(options.get(name) ?? []), ...values] : [...values]);
  };
  const files = await k3sFiles(view);
  for (const path of files) for (const [name, values] of await yamlOptions(path, remarks)) add(name, values);
  // k3s hides its words behind its title: then those of its unit are they.
  for (const words of [await k3sUnitWords(view, remarks), args]) for (const [name, values] of wordOptions(words)) add(name, values);
  const one = (name: string): string => options.get(name)?.at(-1) ?? '';
  const agent = `${one('data-dir') || K3S_DATA}/agent`;
  const configDir = `${agent}/etc/kubelet.conf.d`;
  const found = [`--kubeconfig=${agent}/kubelet.kubeconfig`, '--read-only-port=0', '--cloud-provider=external'];
  if ((await kindOfFolder(view, configDir)) === 'folder') found.push(`--config-dir=${configDir}`);
  else {
    found.push(
      '--serialize-image-pulls=false',
      `--container-runtime-endpoint=${socketUrl(one('container-runtime-endpoint') || K3S_SOCKET)}`,
    );
    remarks.push(
      `${configDir} cannot be read, as before k3s 1.32: what k3s sets in the kubelet by itself is known from its running configuration alone`,
    );
  }
  if (one('node-name') !== '') found.push(`--hostname-override=${one('node-name')}`);
  if (one('node-ip') !== '') found.push(`--node-ip=${one('node-ip')}`);
  found.push(...(options.get('kubelet-arg') ?? []).map((arg) => `--${arg.replace(/^--?/, '')}`));
  const from = ['the way k3s starts its kubelet', ...files.map((path) => view.named(path))].join(', ');
  return { args: found, from, remarks };
}

const socketUrl = (socket: string): string => (socket.includes('://') ? socket : `unix://${socket}`);

async function kindOfFolder(view: HostView, path: string): Promise<'folder' | null> {
  return readdir(await view.at(path)).then(
    () => 'folder' as const,
    () => null,
  );
}

/** The configuration file and its drop-ins, where they are read. */
async function k3sFiles(view: HostView): Promise<string[]> {
  const main = await view.at(K3S_CONFIG);
  const folder = await view.at(`${K3S_CONFIG}.d`);
  const names = (await readdir(folder).catch((): string[] => [])).filter((name) => /\.ya?ml$/.test(name)).sort();
  return [main, ...names.slice(0, FILES_MAX).map((name) => `${folder}/${name}`)];
}

async function yamlOptions(path: string, remarks: string[]): Promise<[string, string[]][]> {
  try {
    const doc: unknown = parse((await readRegular(path, { bytesMax: FILE_BYTES_MAX })).toString('utf8'), { maxAliasCount: 0 });
    if (!isRecord(doc)) return [];
    return Object.entries(doc).map(([name, value]) => [
      name.replace(/\+$/, ''),
      (Array.isArray(value) ? value : [value]).filter((v) => ['string', 'number', 'boolean'].includes(typeof v)).map(String),
    ]);
  } catch (error) {
    // The parser quotes the file, which may hold the cluster's token.
    if (codeOf(error) !== 'ENOENT')
      remarks.push(`${path} cannot be read${codeOf(error) === '' ? ': it is no YAML' : `: ${messageOf(error)}`}`);
    return [];
  }
}

/** `--name value` and `--name=value`. */
function wordOptions(words: readonly string[]): [string, string[]][] {
  return words.flatMap((word, i): [string, string[]][] => {
    const m = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
    return m === null ? [] : [[m[1] ?? '', [m[2] ?? words[i + 1] ?? '']]];
  });
}

async function k3sUnitWords(view: HostView, remarks: string[]): Promise<string[]> {
  for (const name of ['k3s.service', 'k3s-agent.service']) {
    try {
      const unit = await readUnit(view.root, name);
      if (unit === null || unit === 'masked') continue;
      const words = unit.commands.find(([program = '']) => basename(program) === 'k3s');
      if (words === undefined) continue;
      const quiet = { read() {}, missing() {}, bad: (path: string, why: string) => void remarks.push(`${path} cannot be read: ${why}`) };
      const variables = await variablesOf(unit, view.root, quiet);
      return unit.expands ? expandedWords(words.slice(1), variables) : words.slice(1);
    } catch (error) {
      remarks.push(`the unit ${name} cannot be read: ${messageOf(error)}`);
    }
  }
  return [];
}

/** One flag a line, with variables of the snap. */
async function microk8sArgs({ args }: KubeletProcess, view: HostView): Promise<KubeletArgs> {
  const path = args.find((arg) => arg.startsWith('--kubelet-args-file='))?.slice('--kubelet-args-file='.length) ?? '';
  if (path === '')
    return { args: [], from: 'nothing', remarks: ['kubelite has no --kubelet-args-file: the flags of its kubelet are not known'] };
  try {
    const text = (await readRegular(await view.at(path), { bytesMax: FILE_BYTES_MAX })).toString('utf8');
    const data = path.replace(/\/args\/[^/]*$/, '');
    const variables = new Map([
      ['SNAP_DATA', data],
      ['SNAP_COMMON', data.replace(/\/[^/]*$/, '/common')],
      ['SNAP', data.replace(/^\/var/, '')],
    ]);
    const lines = text.split('\n').filter((line) => !/^\s*(?:#|$)/.test(line));
    return { args: lines.flatMap((line) => expandedWords(wordsOf(line, 'plain').words, variables)), from: path, remarks: [] };
  } catch (error) {
    return { args: [], from: path, remarks: [`${path} cannot be read: ${messageOf(error)}; the flags of the kubelet are not known`] };
  }
}
