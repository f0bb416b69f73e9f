/** Completion of the daemon's flags, from their table. */

import type { Shell } from '@actorlet/ctl/src/commands/completion.ts';
import { FLAGS } from '../../src/boot/flags/table.ts';

/** Inside single quotes, in all three shells. */
const quoted = (text: string) => text.replaceAll("'", '’');
/** What the first sentence says. */
const brief = (text: string) => quoted(text.split(/(?<=\.) |\n/)[0] ?? '');

export function daemonCompletion(shell: Shell): string {
  const flags = FLAGS.filter(({ removed }) => removed === undefined);
  const switches = (type: string) => type === 'bool' || type === 'version';
  switch (shell) {
    case 'bash':
      return `_actorlet() {
  COMPREPLY=($(compgen -W '${flags.map(({ name, type }) => `--${name}${switches(type) ? '' : '='}`).join(' ')}' -- "\${COMP_WORDS[COMP_CWORD]}"))
  [[ \${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}
complete -o default -F _actorlet actorlet
`;
    case 'zsh':
      return `#compdef actorlet
_arguments \\
${flags.map(({ name, type, help }) => `  '--${name}${switches(type) ? '' : '='}[${brief(help).replaceAll(/[[\]:\\]/g, '\\$&')}]${switches(type) ? '' : ':value:_files'}'`).join(' \\\n')}
`;
    case 'fish':
      return `${flags.map(({ name, type, help }) => `complete -c actorlet -l ${name}${switches(type) ? '' : ' -r'} -d '${brief(help).replaceAll('\\', '\\\\')}'`).join('\n')}\n`;
  }
}
