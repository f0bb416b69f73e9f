/** What `actorlet --check` says, as text and as JSON. */
import { oneLine } from '@actorlet/kubelet/machines/text/oneLine.ts';

type Level = 'error' | 'warning' | 'note';

export interface Finding {
  level: Level;
  /** A flag, a configuration field, a file, or a part of the host. */
  where: string;
  what: string;
  /** '' where there is nothing to do. */
  todo: string;
}

/** 0: at most notes; 1: warnings; 2: errors, the node would not start or not run pods. */
export function exitCodeOf(findings: readonly Finding[]): 0 | 1 | 2 {
  if (findings.some((f) => f.level === 'error')) return 2;
  return findings.some((f) => f.level === 'warning') ? 1 : 0;
}

const ORDER: readonly Level[] = ['error', 'warning', 'note'];

function sorted(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
}

export function textOf(findings: readonly Finding[]): string {
  const lines = sorted(findings).map(
    ({ level, where, what, todo }) =>
      `${level.padEnd(7)}  ${inOneLine(where)}: ${inOneLine(what)}${todo === '' ? '' : `\n         ${inOneLine(todo)}`}`,
  );
  const count = (level: Level): string => {
    const n = findings.filter((f) => f.level === level).length;
    return `${n} ${level}${n === 1 ? '' : 's'}`;
  };
  return `${[...lines, ORDER.map(count).join(', ')].join('\n')}\n`;
}

export function jsonOf(findings: readonly Finding[]): string {
  return `${JSON.stringify({ exitCode: exitCodeOf(findings), findings: sorted(findings) }, null, 2)}\n`;
}

/** Files and runtimes may put anything into what they say. */
function inOneLine(text: string): string {
  return oneLine(text.replace(/\s+/g, ' ').trim());
}
