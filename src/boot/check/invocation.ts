/** The command line of `--check`: its own flags, and those of the node, which a kubeadm node has in files. */

import { codeOf, messageOf } from '../../machines/text/errors.ts';
import { readRegular } from '../../process/regularFile.ts';
import type { Finding } from './findings.ts';

/** A kubeadm file of arguments is one line. */
const ENV_BYTES_MAX = 64 * 1024;

export interface Invocation {
  json: boolean;
  /** Arguments of the node itself. */
  argv: readonly string[];
  findings: readonly Finding[];
}

export interface KubeadmFiles {
  kubeconfig: string;
  bootstrapKubeconfig: string;
  config: string;
  env: string;
}

/** Where kubeadm puts them, below a prefix. */
export function kubeadmFiles(prefix: string): KubeadmFiles {
  return {
    kubeconfig: `${prefix}/etc/kubernetes/kubelet.conf`,
    bootstrapKubeconfig: `${prefix}/etc/kubernetes/bootstrap-kubelet.conf`,
    config: `${prefix}/var/lib/kubelet/config.yaml`,
    env: `${prefix}/var/lib/kubelet/kubeadm-flags.env`,
  };
}

/** `--kubeadm` or `--kubeadm=PREFIX`: the flags that kubeadm's unit gives the kubelet come before those of the command line. */
export async function readInvocation(argv: readonly string[]): Promise<Invocation> {
  const rest: string[] = [];
  const findings: Finding[] = [];
  let json = false;
  let prefix: string | null = null;
  for (let i = 0; i < argv.length; i++) {
    const arg = argv[i] ?? '';
    const output = /^(?:-o=?|--output=)(.+)$/.exec(arg)?.[1] ?? (arg === '-o' || arg === '--output' ? (argv[++i] ?? '') : null);
    if (arg === '--check' || arg === '--check=true') continue;
    if (arg === '--kubeadm') prefix = '';
    else if (arg.startsWith('--kubeadm=')) prefix = arg.slice('--kubeadm='.length).replace(/\/+$/, '');
    else if (output !== null) {
      json ||= output === 'json';
      if (output !== 'json' && output !== 'text')
        findings.push({ level: 'error', where: '-o', what: `${JSON.stringify(output)} is not a format`, todo: 'Use text or json.' });
    } else rest.push(arg);
  }
  if (prefix === null) return { json, argv: rest, findings };
  const files = kubeadmFiles(prefix);
  const given = await kubeadmArgs(files.env, findings);
  const unit = [`--bootstrap-kubeconfig=${files.bootstrapKubeconfig}`, `--kubeconfig=${files.kubeconfig}`, `--config=${files.config}`];
  return { json, argv: [...unit, ...given, ...rest], findings };
}

async function kubeadmArgs(path: string, findings: Finding[]): Promise<string[]> {
  try {
    return envArgs((await readRegular(path, { bytesMax: ENV_BYTES_MAX })).toString('utf8'));
  } catch (error) {
    const missing = codeOf(error) === 'ENOENT';
    findings.push({
      level: missing ? 'note' : 'error',
      where: path,
      what: missing ? 'it is not there: kubeadm gave the kubelet no flags of its own' : messageOf(error),
      todo: '',
    });
    return [];
  }
}

/** Words of KUBELET_KUBEADM_ARGS, as systemd splits the value of an environment file. */
export function envArgs(text: string): string[] {
  const line = text.split('\n').find((l) => /^\s*KUBELET_KUBEADM_ARGS\s*=/.test(l));
  if (line === undefined) throw new Error('it has no line KUBELET_KUBEADM_ARGS=');
  const value = line.slice(line.indexOf('=') + 1).trim();
  const quote = value[0] === '"' || value[0] === "'" ? value[0] : '';
  if (quote !== '' && (value.length < 2 || !value.endsWith(quote)))
    throw new Error('the value of KUBELET_KUBEADM_ARGS has no closing quote');
  const inner = quote === '' ? value : value.slice(1, -1);
  return inner.split(/\s+/).filter((word) => word !== '');
}
