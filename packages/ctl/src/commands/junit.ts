/** What `actorctl try` found, as the JUnit XML that CI services read. */

export interface Checked {
  pod: string;
  expectation: string;
  held: boolean;
  /** Milliseconds until it was known. */
  afterMs: number;
  /** Why it did not hold. */
  why: string;
}
export interface JunitRun {
  beganMs: number;
  outcomes: readonly Checked[];
  /** Why nothing could be tried; '' if it could. */
  trouble: string;
}

export function junitXml({ beganMs, outcomes, trouble }: JunitRun): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(3);
  const cases = outcomes.map(({ pod, expectation, held, afterMs, why }) => {
    const test = `    <testcase classname="${attribute(pod)}" name="${attribute(expectation)}" time="${seconds(afterMs)}"`;
    return held ? `${test}/>` : `${test}>\n      ${problem('failure', why)}\n    </testcase>`;
  });
  if (trouble !== '') cases.push(`    <testcase classname="actorctl" name="try">\n      ${problem('error', trouble)}\n    </testcase>`);
  const failures = outcomes.filter(({ held }) => !held).length;
  const time = seconds(Math.max(0, ...outcomes.map(({ afterMs }) => afterMs)));
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<testsuites>',
    `  <testsuite name="actorctl try" tests="${cases.length}" failures="${failures}" errors="${trouble === '' ? 0 : 1}" skipped="0" time="${time}" timestamp="${new Date(beganMs).toISOString()}">`,
    ...cases,
    '  </testsuite>',
    '</testsuites>\n',
  ].join('\n');
}

function problem(kind: 'failure' | 'error', why: string): string {
  return `<${kind} message="${attribute(why.split('\n', 1)[0] ?? '')}">${escaped(why)}</${kind}>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** XML 1.0 has no way to write most control characters, nor half a surrogate pair. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll(/[&<>"]/g, (c) => ENTITIES[c] ?? c);
}

function attribute(text: string): string {
  return escaped(text).replaceAll(/[\t\n\r]/g, ' ');
}
