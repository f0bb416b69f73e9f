/** actorlet(8), from the table of flags. */
import { DESCRIPTION, flagGroups } from '../../src/boot/flags/help.ts';
import { bold, entry, head, page, plain } from './roff.ts';

const FILES = {
  '/etc/actorlet/config.yaml': 'The configuration that actorlet.service of the Debian package reads, a KubeletConfiguration.',
  '/etc/default/actorlet': 'ACTORLET_ARGS: further flags of that service.',
  '/var/lib/kubelet': 'State of pods (--root-dir). Its actorlet.sock is what actorctl asks.',
};

export function daemonPage(): string {
  return page([
    head('actorlet', 8),
    '.SH NAME',
    'actorlet \\- Kubernetes node agent (kubelet) built as a supervision tree',
    '.SH SYNOPSIS',
    '.B actorlet\n.RI [ flags ]',
    '.SH DESCRIPTION',
    plain(DESCRIPTION),
    ...flagGroups().flatMap(({ title, flags }) => [
      `.SH ${title.toUpperCase()}`,
      ...flags.flatMap(({ names, text }) => entry(names.map((name) => bold(name.length > 1 ? `--${name}` : `-${name}`)).join(', '), text)),
    ]),
    '.SH FILES',
    ...Object.entries(FILES).flatMap(([file, text]) => entry(`.I ${plain(file)}`, text)),
    '.SH SEE ALSO',
    '.BR actorctl (1)',
  ]);
}
