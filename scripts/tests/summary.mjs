/**
 * Sums up what scripts/test.sh ran: vitest's JSON reports and exit codes in a folder, plus the names of failed steps.
 * Names what failed, with its message. The last line is `N passed, N failed`; exit code 1 when anything failed. Under CI a
 * skipped or todo test is a failure.
 *
 * A file that failed and then passed alone (`NAME.again`) counts as passed, and is named as flaky with its first failure.
 *
 * Usage: summary.mjs FOLDER true|no [FAILED-STEP...]
 *        summary.mjs --failed-files FOLDER PROJECT    prints the files of a project that failed, if they are few
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Of what one failed test says. */
const MESSAGE_MAX_CHARS = 2_000;
/** More failed files than these are no accident of a busy machine. */
const AGAIN_FILES_MAX = 8;

const readReport = (path) => JSON.parse(readFileSync(path, 'utf8'));
const failedTests = (file) => file.assertionResults.filter((test) => test.status === 'failed');
const isFailed = (file) => file.status === 'failed' || failedTests(file).length > 0;
const shown = (path) => relative(process.cwd(), path);

/** A line for each failure of one file; a file that could not even be loaded has no failed test in it. */
function failures(file) {
  const tests = failedTests(file).map(
    (test) => `${shown(file.name)}: ${test.fullName}: ${(test.failureMessages ?? []).join('\n').slice(0, MESSAGE_MAX_CHARS)}`,
  );
  if (tests.length > 0) return tests;
  return file.status === 'failed' ? [`${shown(file.name)} failed as a whole: ${(file.message ?? '').slice(0, MESSAGE_MAX_CHARS)}`] : [];
}

/** One project: `{passed, failed, notes}`. */
function projectResult(folder, project, ci) {
  const code = Number(readFileSync(join(folder, `${project}.code`), 'utf8'));
  let files;
  try {
    files = readReport(join(folder, `${project}.json`)).testResults;
  } catch (error) {
    return { passed: 0, failed: 1, notes: [`${project}: vitest left no readable report (exit code ${code}): ${error.message}`] };
  }
  const notes = [];
  let codeCounts = !files.some(isFailed);
  const second = join(folder, `${project}.again`);
  if (existsSync(second)) {
    const again = new Map(readReport(second).testResults.map((file) => [file.name, file]));
    codeCounts = ![...again.values()].some(isFailed);
    files = files.map((file) => {
      const other = again.get(file.name);
      if (other === undefined || isFailed(other)) return file;
      for (const why of failures(file)) notes.push(`${project}: FLAKY, passed when run again alone: ${why}`);
      return other;
    });
  }
  const wrong = files.flatMap(failures);
  notes.push(...wrong.map((why) => `${project}: ${why}`));
  let failed = wrong.length;
  const tests = files.flatMap((file) => file.assertionResults);
  const skipped = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed').length;
  if (skipped > 0) {
    notes.push(`${project}: ${skipped} skipped${ci ? ', which is a failure under CI' : ''}`);
    if (ci) failed += skipped;
  }
  // Errors outside any test (an unhandled rejection) show in the exit code only.
  const last = existsSync(`${second}-code`) ? Number(readFileSync(`${second}-code`, 'utf8')) : code;
  if (last !== 0 && failed === 0 && codeCounts) {
    failed = 1;
    notes.push(`${project}: vitest ended with exit code ${last} though no test failed`);
  }
  return { passed: tests.filter((test) => test.status === 'passed').length, failed, notes };
}

function printFailedFiles(folder, project) {
  const files = readReport(join(folder, `${project}.json`)).testResults.filter(isFailed);
  if (files.length <= AGAIN_FILES_MAX) for (const file of files) console.log(shown(file.name));
}

function summarise([folder = '.', ci, ...brokenSteps]) {
  const results = readdirSync(folder)
    .filter((name) => name.endsWith('.code'))
    .map((name) => projectResult(folder, name.slice(0, -'.code'.length), ci === 'true'));
  results.push({ passed: 0, failed: brokenSteps.length, notes: brokenSteps.map((name) => `step failed: ${name}`) });
  for (const note of results.flatMap((result) => result.notes)) console.log(`npm test: ${note}`);
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  console.log(`${sum('passed')} passed, ${sum('failed')} failed`);
  process.exitCode = sum('failed') === 0 ? 0 : 1;
}

const args = process.argv.slice(2);
if (args[0] === '--failed-files') printFailedFiles(args[1] ?? '.', args[2] ?? '');
else summarise(args);
