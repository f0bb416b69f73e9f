/** Lines of a recording in words, for a person who looks for what differs. */
import type { Input, Outcome } from '../entries.ts';

export function outcomeWords(outcome: Outcome): string {
  switch (outcome[0]) {
    case 'ask':
      return `${outcome[1]} ${outcome[4] ?? ''}`.trim();
    case 'set':
      return `a timer of ${outcome[1]} ms`;
    case 'step':
      return `${outcome[1]}: ${outcome[2]} -> ${outcome[3]} on ${outcome[4]}${outcome[5] === '' ? '' : ` (${outcome[5]})`}`;
    case 'answer':
      return `an answer to call ${outcome[1]} of the outside (${outcome[2]})`;
    case 'inside':
      return `a call back of function ${outcome[1]}`;
  }
}

export function inputWords(input: Input): string {
  const [kind, , what] = input;
  return what === undefined ? kind : `${kind} ${String(what)}`;
}

const FRAMES_MAX = 8;
/** Where the tree asks, without what replays it. */
export function stackOf(error: Error): string {
  const lines = (error.stack ?? '').split('\n').slice(1);
  return lines
    .filter((line) => !/\/replay\/|node:internal|processTicksAndRejections/.test(line))
    .slice(0, FRAMES_MAX)
    .map((line) => line.trim())
    .join('\n');
}
