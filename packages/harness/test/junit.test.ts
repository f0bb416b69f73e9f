/** JUnit XML of `actorctl try`. */

import { junitXml } from '@actorlet/ctl/src/commands/junit.ts';
import { expect, it } from 'vitest';

it('has a case for each expectation, and the whole reason of one that did not hold', () => {
  const held = { pod: 'web', expectation: 'web restarts<1', held: true, afterMs: 30_000, why: '' };
  const lost = { pod: 'a"b', expectation: 'ready', held: false, afterMs: 1_234, why: 'waited & <seen>\n  \u001b[31mred\ud800' };
  expect(junitXml({ beganMs: 0, outcomes: [held, lost], trouble: '' })).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="actorctl try" tests="2" failures="1" errors="0" skipped="0" time="30.000" timestamp="1970-01-01T00:00:00.000Z">
    <testcase classname="web" name="web restarts&lt;1" time="30.000"/>
    <testcase classname="a&quot;b" name="ready" time="1.234">
      <failure message="waited &amp; &lt;seen&gt;">waited &amp; &lt;seen&gt;
  \ufffd[31mred\ufffd</failure>
    </testcase>
  </testsuite>
</testsuites>
`);
});

it('is an error where nothing could be tried', () => {
  expect(junitXml({ beganMs: 0, outcomes: [], trouble: 'no node' })).toContain(
    '<testcase classname="actorctl" name="try">\n      <error message="no node">no node</error>',
  );
});
