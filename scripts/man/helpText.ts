/** Reads the text of a command's `--help`, as yargs lays it out. */

export interface Row {
  /** `-o, --output`, `actorctl tree`, an example's command line. */
  term: string;
  text: string;
  /** Of an option or argument: what its value is; '' if it takes none. */
  takes: string;
}
export interface Help {
  usage: string;
  /** What the command does. */
  about: string;
  /** By heading: Commands, Positionals, Options, Examples. */
  sections: Readonly<Record<string, readonly Row[]>>;
  /** Paragraphs at the end. */
  epilogue: readonly string[];
}

const HEADING = /^([A-Z]\w+):$/;
/** A row begins left of here; a description that goes on, right of it. */
const TERM_COLUMN_MAX = 8;

export function readHelp(text: string): Help {
  const [usage = '', ...lines] = text.trimEnd().split('\n');
  const sections: Record<string, Row[]> = {};
  const about: string[] = [];
  const epilogue: string[] = [];
  let rows: Row[] | null = null;
  let begun = false;
  for (const line of lines) {
    const heading = HEADING.exec(line)?.[1];
    if (heading !== undefined) {
      rows = [];
      begun = true;
      sections[heading] = rows;
    } else if (line === '') rows = null;
    else if (rows !== null) addRow(rows, line);
    else (begun ? epilogue : about).push(line);
  }
  return { usage, about: about.join(' '), sections, epilogue: paragraphs(epilogue) };
}

function addRow(rows: Row[], line: string): void {
  const indent = line.length - line.trimStart().length;
  const last = rows.at(-1);
  const goesOn = indent > TERM_COLUMN_MAX && last !== undefined;
  const [, term = '', text = ''] = goesOn ? ['', last.term, `${last.text} ${line}`] : (/^\s*(\S.*?)(?:\s{2,}(.*))?$/.exec(line) ?? []);
  const takes = /\[(string|number|array)\]/.exec(text)?.[1] ?? (/\[choices:/.test(text) ? 'word' : goesOn ? last.takes : '');
  const about = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?\[(string|number|array|boolean|required|default: (false|""|\[\]))\]/g, '')
    .trim();
  if (goesOn) rows.pop();
  rows.push({ term, takes, text: about });
}

/** A paragraph that says `Name: ...` begins a new one, as `Exit codes: ...` does. */
function paragraphs(lines: readonly string[]): string[] {
  const found: string[] = [];
  for (const line of lines) {
    if (found.length === 0 || /^[A-Z][\w ]*: /.test(line)) found.push(line);
    else found.push(`${found.pop() ?? ''} ${line}`);
  }
  return found;
}
