/** Lines of a recording in words, for a person who looks for what differs. */
import type { Outcome } from '../entries.ts';

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
    case 'shown':
      return outcome[3] === '' ? `the ${outcome[1]} ${outcome[2]} gone` : `the ${outcome[1]} ${outcome[2]}`;
  }
}

const FRAMES_MAX = 8;
/** Between the place and the replay stand the frames of xstate, of supervision, and of the ports. */
const FRAMES_LOOKED_AT = 100;
const PLUMBING = new RegExp(
  [
    ...[
      '/packages/(?:replay|ctl|sim|world|process)/',
      '/src/actors/recorder/',
      '/src/actors/supervision/',
      '/src/machines/xstate/',
      '/node_modules/',
      '/injector/interceptors/',
    ],
    ...[
      '/src/ports/handling\\.ts',
      '/src/actors/node\\.ts',
      '/allocation/cgroups/measured\\.ts',
      'node:',
      'processTicksAndRejections',
      '<anonymous>\\)?$',
    ],
  ].join('|'),
);

/** A place in the sources, below the folder of the checkout. */
const OURS = /\/((?:packages\/[^/]+\/)?src\/(?!.*\/src\/).+)$/;

/** The places in the sources that ask now, innermost first. */
export function stackOf(): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES_LOOKED_AT;
  const { stack = '' } = new Error('now');
  Error.stackTraceLimit = limit;
  return placesIn(stack);
}

/** Of a stack of V8. */
function placesIn(stack: string): string {
  return stack
    .split('\n')
    .slice(1)
    .filter((line) => !PLUMBING.test(line))
    .map(placeOf)
    .filter((place) => place !== '')
    .slice(0, FRAMES_MAX)
    .join('\n');
}

/** `src/actors/pods/workers/effects.ts:12:3 (stop)`. */
function placeOf(line: string): string {
  const [, fn = '', place = ''] = /^\s*at (?:async )?(?:(.+?) \()?(?:file:\/\/)?(\S+:\d+:\d+)\)?$/.exec(line) ?? [];
  if (place === '') return line.trim();
  return `${OURS.exec(place)?.[1] ?? place}${fn === '' ? '' : ` (${fn})`}`;
}
