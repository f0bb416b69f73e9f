/** What every command is given, and how it prints. */

import { type AdminClient, CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { parseGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import { cutLine, printable } from '@actorlet/kubelet/machines/text/table.ts';
import { stringify } from 'yaml';
import type { CtlIo } from './io.ts';
import { paint } from './render.ts';

const FORMATS = ['text', 'wide', 'json', 'yaml', 'name'] as const;
export type Format = (typeof FORMATS)[number];

export interface Asked {
  io: CtlIo;
  client: AdminClient;
  format: Format;
  /** Only pods of this namespace; '' for all. */
  namespace: string;
  /** Whether a pod is of the namespace, and has the labels, that the options name. */
  chooses(pod: { namespace: string; labels?: Readonly<Record<string, string>> }): boolean;
  /** Titles stand above the columns of a table. */
  headers: boolean;
}
/** Gives the exit code. */
export type Command = (asked: Asked) => Promise<number>;

/** Lines for people. `widthMax`: cut to so many columns, 0: never; a line's colour is that of the whole line. */
export function print({ io }: Pick<Asked, 'io'>, lines: readonly string[], widthMax = 0): void {
  const colour = io.columns > 0 && (io.env.NO_COLOR ?? '') === '';
  io.out(lines.map((line) => `${paint(line, cutLine(line, widthMax), colour)}\n`).join(''));
}

/** A table, whose first line is its titles. Columns before the one called `last` are never cut: a terminal breaks such lines. */
export function printTable(asked: Asked, lines: readonly string[], last: string): void {
  const width = widthOf(asked);
  const least = lines[0]?.indexOf(` ${last}`) ?? 0;
  print(asked, asked.headers ? lines : lines.slice(1), width === 0 ? 0 : Math.max(width, least));
}

/** Names alone, as kubectl writes them: `pod/web`. */
export function printNames({ io }: Pick<Asked, 'io'>, kind: string, names: readonly string[]): void {
  io.out(names.map((name) => `${kind}/${printable(name)}\n`).join(''));
}

/** Whether the answer is wanted as data. */
export function wantsData(format: Format): boolean {
  return format === 'json' || format === 'yaml';
}

/** An answer as JSON or YAML. */
export function printData({ io, format }: Pick<Asked, 'io' | 'format'>, value: unknown): void {
  io.out(format === 'yaml' ? stringify(value, { aliasDuplicateObjects: false }) : `${JSON.stringify(value, null, 2)}\n`);
}

/** Columns of the terminal, to cut lines to; 0: never, as for `-o wide`. */
export function widthOf({ io, format }: Pick<Asked, 'io' | 'format'>): number {
  return format === 'wide' ? 0 : io.columns;
}

/** Below this width long states are cut. */
const NARROW_COLUMNS = 110;
export function isNarrow(asked: Pick<Asked, 'io' | 'format'>): boolean {
  const width = widthOf(asked);
  return width > 0 && width < NARROW_COLUMNS;
}

/** Options that every command takes. */
export interface Common {
  socket?: string | undefined;
  server?: string | undefined;
  'token-file'?: string | undefined;
  node?: string | undefined;
  json: boolean;
  output?: string | undefined;
  headers?: boolean | undefined;
  namespace?: string | undefined;
  'all-namespaces'?: boolean | undefined;
  selector?: string | undefined;
  recording?: string | undefined;
  at?: string | undefined;
}
/** What the definitions of commands are given to run them. */
export interface Runner {
  io: CtlIo;
  /** Runs a command against the daemon, or the recording, that the options name. */
  run(command: Command): (args: Common) => Promise<void>;
  /** Sets the exit code of a command that needs no daemon. */
  setCode(code: number): void;
}

/** Milliseconds of `--since`; without it: for ever. */
export function sinceMs(text: string | undefined): number {
  if (text === undefined || text === '') return Number.POSITIVE_INFINITY;
  const ms = parseGoDuration(text);
  if (ms === undefined || ms < 0) throw new CtlError(EXIT.usage, `--since ${printable(text)}: give a duration like 90s, 10m or 1h30m.`);
  return ms;
}
