/** actorctl(1), from the help of each command. */
import { Readable } from 'node:stream';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { type Help, type Row, readHelp } from './helpText.ts';
import { bold, entry, head, page, plain } from './roff.ts';

const COLUMNS = 120;

async function helpOf(words: readonly string[]): Promise<Help> {
  let text = '';
  const code = await runCtl({
    argv: [...words, '--help'],
    env: {},
    out: (more) => {
      text += more;
    },
    err: (more) => {
      text += more;
    },
    exists: () => false,
    columns: COLUMNS,
    nowMs: () => 0,
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: new AbortController().signal,
  });
  if (code !== 0) throw new Error(`actorctl ${words.join(' ')} --help: ${text}`);
  return readHelp(text);
}

export async function ctlPage(): Promise<string> {
  const top = await helpOf([]);
  const everywhere = top.sections.Options ?? [];
  const lines = [
    head('actorctl', 1),
    '.SH NAME',
    'actorctl \\- asks a running actorlet what it does and why',
    '.SH SYNOPSIS',
    `.B actorctl\n.RI [ options ]\n.I command`,
    '.SH DESCRIPTION',
    plain(top.about),
    ...['.SH OPTIONS', ...everywhere.flatMap(rowLines)],
    '.SH COMMANDS',
    ...(await commandLines(top, [], new Set(everywhere.map(({ term }) => term)))),
    '.SH EXIT STATUS',
    ...top.epilogue.map((text) => plain(text.replace(/^Exit codes: /, ''))),
    ...['.SH ENVIRONMENT', ...entry(bold('ACTORLET_SOCKET'), 'The admin socket.'), ...entry(bold('NO_COLOR'), 'No colour.')],
    ...['.SH SEE ALSO', '.BR actorlet (8)'],
  ];
  return page(lines);
}

async function commandLines(help: Help, above: readonly string[], everywhere: ReadonlySet<string>): Promise<string[]> {
  const lines: string[] = [];
  for (const { term } of help.sections.Commands ?? []) {
    const words = term
      .split(' ')
      .slice(1)
      .filter((word) => /^[\w-]/.test(word));
    // The command itself, where it does something without a word after it.
    if (words.length === above.length) continue;
    const own = await helpOf(words);
    lines.push(`.SS "${plain(own.usage)}"`, plain(own.about));
    for (const name of ['Positionals', 'Options'])
      lines.push(...(own.sections[name] ?? []).filter(({ term: option }) => !everywhere.has(option)).flatMap(rowLines));
    for (const { term: example, text } of own.sections.Examples ?? [])
      lines.push('.PP', text === '' ? 'For example:' : `${plain(`${text}:`)}`, '.PP', '.RS', '.nf', bold(example), '.fi', '.RE');
    for (const text of own.epilogue) lines.push('.PP', plain(text));
    lines.push(...(await commandLines(own, words, everywhere)));
  }
  return lines;
}

function rowLines({ term, takes, text }: Row): string[] {
  return entry(takes === '' || !term.startsWith('-') ? bold(term) : `${bold(term)} \\fI${takes}\\fR`, text);
}
