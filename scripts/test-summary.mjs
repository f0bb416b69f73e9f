/**
 * Sums up what scripts/test.sh ran: vitest's JSON reports and exit codes in a folder, plus the names of failed steps.
 * Names what failed, with its message. The last line is `N passed, N failed`; exit code 1 when anything failed. Under CI a
 * skipped or todo test is a failure.
 *
 * Usage: test-summary.mjs FOLDER true|no [FAILED-STEP...]
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Of what one failed test says. */
const MESSAGE_MAX_CHARS = 2_000;

const [folder = '.', ci, ...brokenSteps] = process.argv.slice(2);
let passed = 0;
let failed = brokenSteps.length;
const notes = brokenSteps.map((name) => `step failed: ${name}`);

for (const file of readdirSync(folder).filter((name) => name.endsWith('.code'))) {
  const project = file.slice(0, -'.code'.length);
  const code = Number(readFileSync(join(folder, file), 'utf8'));
  let report;
  try {
    report = JSON.parse(readFileSync(join(folder, `${project}.json`), 'utf8'));
  } catch (error) {
    failed += 1;
    notes.push(`${project}: vitest left no readable report (exit code ${code}): ${error.message}`);
    continue;
  }
  let here = report.numFailedTests;
  // Named here again with their messages: a log is often kept by its end alone.
  for (const { name, assertionResults } of report.testResults) {
    for (const test of assertionResults) {
      if (test.status !== 'failed') continue;
      const why = (test.failureMessages ?? []).join('\n').slice(0, MESSAGE_MAX_CHARS);
      notes.push(`${project}: ${relative(process.cwd(), name)}: ${test.fullName}: ${why}`);
    }
  }
  // A file that could not even be loaded has no failed test in it.
  for (const result of report.testResults) {
    if (result.status !== 'failed' || result.assertionResults.some((test) => test.status === 'failed')) continue;
    here += 1;
    notes.push(`${project}: ${result.name} failed as a whole`);
  }
  const skipped = report.numPendingTests + report.numTodoTests;
  if (skipped > 0) {
    notes.push(`${project}: ${skipped} skipped${ci === 'true' ? ', which is a failure under CI' : ''}`);
    if (ci === 'true') here += skipped;
  }
  // Errors outside any test (an unhandled rejection) show in the exit code only.
  if (code !== 0 && here === 0) {
    here = 1;
    notes.push(`${project}: vitest ended with exit code ${code} though no test failed`);
  }
  passed += report.numPassedTests;
  failed += here;
}
for (const note of notes) console.log(`npm test: ${note}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
