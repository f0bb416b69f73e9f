/** Man pages and completion scripts: everything that `--help` lists is in them. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ctlPage } from '../../../scripts/man/ctlPage.ts';
import { daemonCompletion } from '../../../scripts/man/daemonCompletion.ts';
import { daemonPage } from '../../../scripts/man/daemonPage.ts';
import { readHelp } from '../../../scripts/man/helpText.ts';
import { FLAGS } from '../../../src/boot/flags/table.ts';

/** The text of a page, without what is for roff. */
const said = (page: string) => page.replaceAll('\\-', '-').replaceAll(/\\f[BIR]/g, '');

it('actorlet(8) has every flag with its meaning', () => {
  const page = said(daemonPage());
  for (const { name, help, removed } of FLAGS) {
    expect(page).toMatch(new RegExp(`^(-\\w, )?--?${name}$`, 'm'));
    if (removed === undefined) expect(page).toContain(help.split(/[`~^\\\n]/)[0]);
  }
});

it('actorctl(1) has the commands below commands, their options once, examples and exit codes', async () => {
  const page = said(await ctlPage());
  for (const command of ['tree', 'try', 'inject kill <target..>', 'node drain', 'image load <file>', 'completion <shell>'])
    expect(page).toContain(`\n.SS "actorctl ${command}"\n`);
  expect(page).toContain('\n.TP\n--timeout number\nseconds for all of it [default: 600]\n');
  expect(page.match(/^-n, --namespace string$/gm)).toHaveLength(1);
  expect(page).toContain('actorctl inject kill pod web\n');
  expect(page).toContain('5 the daemon cannot answer now, 130 Ctrl-C.');
});

it('reads a description that goes on below its line', () => {
  const help = readHelp(`actorctl x <y>

does x

Options:
      --socket          admin socket; default a, else b if it
                        is there, else c          [string]
  -w, --watch  again    [boolean] [default: false]

Works always.
Exit codes: 0.
`);
  expect(help).toEqual({
    usage: 'actorctl x <y>',
    about: 'does x',
    sections: {
      Options: [
        { term: '--socket', takes: 'string', text: 'admin socket; default a, else b if it is there, else c' },
        { term: '-w, --watch', takes: '', text: 'again' },
      ],
    },
    epilogue: ['Works always.', 'Exit codes: 0.'],
  });
});

it('bash completes flags of the daemon', () => {
  const ask = `${daemonCompletion('bash')} COMP_WORDS=(actorlet --container-runtime-e) COMP_CWORD=1; _actorlet 2>/dev/null; echo "\${COMPREPLY[@]}"`;
  expect(execFileSync('bash', ['-c', ask], { encoding: 'utf8' })).toBe('--container-runtime-endpoint=\n');
});
