/** The summary of `npm test`: what counts as failed, and what a second run of a file changes. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eachFolder } from '../../eachFolder.ts';

const project = join(import.meta.dirname, '..', '..', '..');
type Status = 'passed' | 'failed' | 'skipped';
let folder = '';
eachFolder((made) => (folder = made));

/** A report as vitest writes it, reduced to what the summary reads. */
function report(name: string, files: Record<string, Status[]>, code: number): void {
  const testResults = Object.entries(files).map(([file, states]) => ({
    name: join(project, file),
    status: states.includes('failed') ? 'failed' : 'passed',
    assertionResults: states.map((status, i) => ({ fullName: `test ${i}`, status, failureMessages: status === 'failed' ? ['boom'] : [] })),
  }));
  writeFileSync(join(folder, name), JSON.stringify({ testResults }));
  writeFileSync(join(folder, name.endsWith('.again') ? `${name}-code` : name.replace(/json$/, 'code')), `${code}\n`);
}
function summary(...args: string[]): { lines: string[]; code: number } {
  try {
    return { lines: run(args), code: 0 };
  } catch (error) {
    const { stdout, status } = error as { stdout: string; status: number };
    return { lines: stdout.trim().split('\n'), code: status };
  }
}
function run(args: string[]): string[] {
  const given = args.length > 0 ? args : [folder, 'true'];
  return execFileSync(process.execPath, [join(project, 'scripts/tests/summary.mjs'), ...given], { cwd: project, encoding: 'utf8' })
    .trim()
    .split('\n');
}

it('counts what passed and names what failed', () => {
  report('unit.json', { 'test/a.test.ts': ['passed', 'failed'], 'test/b.test.ts': ['passed'] }, 1);
  const { lines, code } = summary();
  expect(lines).toEqual(['npm test: unit: test/a.test.ts: test 1: boom', '2 passed, 1 failed']);
  expect(code).toBe(1);
  expect(run(['--failed-files', folder, 'unit'])).toEqual(['test/a.test.ts']);
});

it('takes a file that passes alone as passed, and names it as flaky', () => {
  report('e2e.json', { 'test/a.test.ts': ['failed', 'skipped'], 'test/b.test.ts': ['passed'] }, 1);
  report('e2e.again', { 'test/a.test.ts': ['passed', 'passed'] }, 0);
  const { lines, code } = summary();
  expect(lines).toEqual(['npm test: e2e: FLAKY, passed when run again alone: test/a.test.ts: test 0: boom', '3 passed, 0 failed']);
  expect(code).toBe(0);
});

it('fails for a file that fails twice', () => {
  report('e2e.json', { 'test/a.test.ts': ['failed'] }, 1);
  report('e2e.again', { 'test/a.test.ts': ['failed'] }, 1);
  expect(summary()).toEqual({ lines: ['npm test: e2e: test/a.test.ts: test 0: boom', '0 passed, 1 failed'], code: 1 });
});

it('fails for an exit code that no test explains, in the first run and in the second', () => {
  report('unit.json', { 'test/a.test.ts': ['passed'] }, 1);
  expect(summary().lines.at(-1)).toBe('1 passed, 1 failed');
  report('unit.json', { 'test/a.test.ts': ['failed'] }, 1);
  report('unit.again', { 'test/a.test.ts': ['passed'] }, 1);
  expect(summary().lines.at(-1)).toBe('1 passed, 1 failed');
});

it('under CI a skipped test is a failure', () => {
  report('unit.json', { 'test/a.test.ts': ['passed', 'skipped'] }, 0);
  expect(summary()).toEqual({
    lines: ['npm test: unit: 1 skipped, which is a failure under CI', '1 passed, 1 failed'],
    code: 1,
  });
  expect(summary(folder, 'no').code).toBe(0);
});

it('runs nothing again where many files failed', () => {
  report('unit.json', Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`test/${i}.test.ts`, ['failed'] as Status[]])), 1);
  expect(run(['--failed-files', folder, 'unit'])).toEqual(['']);
});
