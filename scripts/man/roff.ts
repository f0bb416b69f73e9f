/** Text as man(7) wants it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Escapes what roff would take for a request or an escape; a hyphen stays one that can be copied. */
export function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('`', '\\(ga')
    .replaceAll('^', '\\(ha')
    .replaceAll('~', '\\(ti')
    .replaceAll(/^([.'])/gm, '\\&$1');
}

export function bold(text: string): string {
  return `\\fB${plain(text)}\\fR`;
}

/** Man's `.TH`: no date, so that the same sources give the same page. */
export function head(name: string, section: number): string {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string };
  return `.TH ${name.toUpperCase()} ${section} "" "actorlet ${version}" "actorlet"`;
}

/** A term with what it means below it, indented. */
export function entry(term: string, text: string): string[] {
  return ['.TP', term, text === '' ? '\\&' : plain(text.trim()).replaceAll('\n', '\n.br\n')];
}

export function page(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
