/** The command line of `--check`: its own flags, and those of the node, which a kubeadm node has in files. */

import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Finding } from './findings.ts';
import { agentWords, readUnit, type ServiceUnit, variablesOf } from './unit.ts';
import { expandedWords } from './unitWords.ts';

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
  /** Flags by kubeadm, then by the person: Debian's place for these, and that of rpm packages. */
  env: string;
  extra: readonly [string, string];
}

/** Where kubeadm puts them, below a prefix. */
export function kubeadmFiles(prefix: string): KubeadmFiles {
  return {
    kubeconfig: `${prefix}/etc/kubernetes/kubelet.conf`,
    bootstrapKubeconfig: `${prefix}/etc/kubernetes/bootstrap-kubelet.conf`,
    config: `${prefix}/var/lib/kubelet/config.yaml`,
    env: `${prefix}/var/lib/kubelet/kubeadm-flags.env`,
    extra: [`${prefix}/etc/default/kubelet`, `${prefix}/etc/sysconfig/kubelet`],
  };
}

/**
 * `--kubeadm` or `--kubeadm=PREFIX`: the flags that the kubelet's unit gives it come before those of the command line.
 */
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
  return { json, argv: [...(await unitArgs(prefix, findings)), ...rest], findings };
}

/** Flags of the unit of this node; where there is none, those of the drop-in that kubeadm's packages bring. */
async function unitArgs(prefix: string, findings: Finding[]): Promise<string[]> {
  const unit = (await unitOf(prefix, findings)) ?? kubeadmUnit();
  const variables = await variablesOf(unit, prefix, {
    read: (path, names) =>
      findings.push({ level: 'note', where: path, what: `the kubelet's unit takes ${names.join(', ') || 'nothing'} from it`, todo: '' }),
    missing(path, optional) {
      const what = optional
        ? 'it is not there: the kubelet gets no flags from it'
        : 'it is not there: the kubelet does not start without it';
      findings.push({ level: optional ? 'note' : 'error', where: path, what, todo: '' });
    },
    bad: (path, why) => findings.push({ level: 'error', where: path, what: why, todo: 'Mend the file: its flags were not read.' }),
  });
  const given = agentWords(unit).slice(1);
  const words = unit.expands ? expandedWords(given, variables) : given;
  return prefix === '' ? words : words.map((word) => word.replace(KUBEADM_FILE, `$1${prefix}$2`));
}

/** Files of kubeadm and of the configuration, which `--kubeadm=PREFIX` finds below its folder. */
const KUBEADM_FILE = /^(--(?:config|config-dir|kubeconfig|bootstrap-kubeconfig)=)(\/.*)$/s;

async function unitOf(prefix: string, findings: Finding[]): Promise<ServiceUnit | null> {
  let unit: Awaited<ReturnType<typeof readUnit>>;
  try {
    unit = await readUnit(prefix);
  } catch (error) {
    findings.push({
      level: 'error',
      where: 'kubelet.service',
      what: messageOf(error),
      todo: 'Mend the file: the flags of the unit were not read.',
    });
    return null;
  }
  if (unit === null) return null;
  if (unit === 'masked') {
    const what = 'the unit is masked: systemd does not start the kubelet';
    findings.push({ level: 'note', where: 'kubelet.service', what, todo: '' });
    return null;
  }
  for (const { where, why } of unit.ignored)
    findings.push({ level: 'warning', where, what: `systemd leaves a line out: ${why}`, todo: 'Mend the line.' });
  const where = unit.files.join(', ');
  const { commands, type } = unit;
  if (commands.length === 0) return null;
  if (commands.length > 1 && type !== 'oneshot') {
    const what = 'the unit has more than one ExecStart=: systemd does not start it';
    findings.push({ level: 'error', where, what, todo: 'Begin the drop-in with an empty ExecStart=.' });
  }
  if (agentWords(unit).length > 0) {
    findings.push({ level: 'note', where, what: 'the flags of the kubelet are those of this unit', todo: '' });
    return unit;
  }
  const what = `the unit starts ${commands[0]?.[0] ?? ''}, not the kubelet: which flags that gives is not known`;
  findings.push({ level: 'warning', where, what, todo: 'Give the flags to --check as well. Those of kubeadm are taken.' });
  return null;
}

/** What 10-kubeadm.conf says. */
function kubeadmUnit(): ServiceUnit {
  const files = kubeadmFiles('');
  const unit = [`--bootstrap-kubeconfig=${files.bootstrapKubeconfig}`, `--kubeconfig=${files.kubeconfig}`, `--config=${files.config}`];
  return {
    files: [],
    commands: [['kubelet', ...unit, '$KUBELET_KUBEADM_ARGS', '$KUBELET_EXTRA_ARGS']],
    ...{ expands: true, type: '', ignored: [] },
    environment: new Map(),
    environmentFiles: [files.env, ...files.extra].map((path) => ({ path, optional: true })),
  };
}
