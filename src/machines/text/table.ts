/** Plain text tables, columns as wide as their content. Pure. */
import { escaped, unicode } from './oneLine.ts';

export interface TableOptions {
  /** Lines are cut to this width with an ellipsis; 0 = never. Default 0. */
  widthMax?: number;
}

/** A message may hold anything: what would move the reader's cursor or turn the direction of text around is shown escaped. */
export function printable(text: string): string {
  return escaped(text, (c) =>
    c === '\n' ? '\\n' : c === '\t' ? ' ' : c < '\u0100' ? `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}` : unicode(c),
  );
}

export function renderTable(head: readonly string[], rows: readonly (readonly string[])[], opts: TableOptions = {}): string[] {
  const all = [head, ...rows].map((row) => row.map(printable));
  const widths = head.map((_, i) => all.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0));
  return all.map((row) =>
    cutLine(
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)))
        .join('  ')
        .trimEnd(),
      opts.widthMax ?? 0,
    ),
  );
}

export function cutLine(line: string, widthMax: number): string {
  return widthMax > 0 && line.length > widthMax ? `${line.slice(0, Math.max(1, widthMax - 1))}…` : line;
}
