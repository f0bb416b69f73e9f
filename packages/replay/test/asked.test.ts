/** What a person asks of a recording, and how `actorctl replay` answers what cannot be. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { recordSeed } from '@actorlet/ctl/src/commands/sim/record.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toldTo } from './toldTo.ts';

let dir: string;
let file: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-asked-'));
  await recordSeed(toldTo(), { seed: 8, minutes: 0.1, pods: 2 }, dir);
  file = join(dir, 'seed-8-n1-1.inputs.zst');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function ctl(...argv: string[]): Promise<{ code: number; text: string }> {
  const io = toldTo();
  const code = await runCtl({ ...io, argv });
  return { code, text: io.told() };
}

it('a state that no actor comes to is said, unless one of the files has it', async () => {
  const none = await ctl('replay', file, '--until', 'foundation state=nowhere');
  expect(none).toEqual({ code: 1, text: expect.stringContaining('--until foundation state=nowhere: no actor comes there.') });
  const some = await ctl('replay', dir, '--until', 'foundation state=running');
  expect(some).toEqual({ code: 0, text: expect.stringContaining('STOPPED at') });
});

it.each([
  ['a plain replay', []],
  ['cutting down', ['--minimize', '--pod', 'default/p0-n1', '--out', '/dev/null']],
  ['a what-if', ['--set', 'syncFrequency=1s']],
  ['the first run of the page', ['--ui']],
])('Ctrl-C ends %s', async (_, more) => {
  const io = toldTo();
  const interrupted = new AbortController();
  setTimeout(() => interrupted.abort(), 1);
  const code = await runCtl({ ...io, signal: interrupted.signal, argv: ['replay', file, ...more] });
  expect({ code, text: io.told() }).toEqual({ code: 130, text: expect.stringMatching(/interrupted\n$/) });
});

it.each([
  [['--pod', 'default/p0-n1'], '--pod: say it with --minimize or --to-test.'],
  [['--out', 'x'], '--out: say it with --minimize or --to-test.'],
  [['--until', 'foundation state=running', '--set', 'syncFrequency=1s'], '--until: say it without'],
  [['--port', '8080'], '--port, --open: say it with --ui.'],
  [['--minimize', '--out', 'x', '--set', 'syncFrequency=1s'], 'do not go together: say one of them.'],
])('%j would have no effect, and is refused', async (more, why) => {
  expect(await ctl('replay', file, ...more)).toEqual({ code: 2, text: expect.stringContaining(why) });
});
