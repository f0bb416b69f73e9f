/** A recording run without its order, and cut down: the same comes again with all of it, and the same end with little of it. */
import { beforeAll, expect } from 'vitest';
import { pod } from '../../../../test/integration/virtualNode.ts';
import { inTurn } from '../../../../test/rotation.ts';
import { entryOfLine } from '../../src/check.ts';
import { isInput } from '../../src/entries.ts';
import { minimize } from '../../src/keep/minimize.ts';
import { Edit } from '../../src/lenient/edit.ts';
import { runLeniently } from '../../src/lenient/run.ts';
import { Learner } from '../../src/lenient/script.ts';
import { replay } from '../../src/player/replay.ts';
import { AROUND, inputsOf, OWN, quickStart, recordedNode } from './quickStart.ts';

const it = inTurn('recordings cut down', 2);
let lines: string[];
beforeAll(async () => {
  lines = await quickStart(5);
});

/** What came in and what was done, without numbers of calls, which differ by those that no recording has. */
function shapes(of: readonly string[]): string[] {
  return of.slice(1).flatMap((line) => {
    const entry = entryOfLine(line);
    if (entry === null || entry[0] === 'body' || (entry[0] === 'ask' && /^(?:rng|entropy)\./.test(entry[1]))) return [];
    if (entry[0] === 'ask') return [`ask ${entry[1]} ${entry[4]}`];
    return [isInput(entry) ? `${entry[0]} ${entry[1]}` : entry[0] === 'answer' ? 'answer' : JSON.stringify(entry)];
  });
}

it('with nothing left out, each thing comes in the order of the recording', async () => {
  const { header, entries } = inputsOf(lines);
  const watch = new Learner();
  await replay({ header, next: entries(), own: OWN, entropy: AROUND.hashes, drain: () => AROUND.drain(), watch });
  const script = watch.script();
  const again: string[] = [];
  await runLeniently({
    ...{ header, script, edit: new Edit({}), own: OWN, hashes: AROUND.hashes, around: AROUND, endMs: script.endMs },
    line: (line) => void again.push(line),
  });
  expect(shapes(again).slice(0, shapes(lines).length - 1)).toEqual(shapes(lines).slice(0, -1));
});

const CUTS = [
  { pod: 'default/steady-n1', part: 10, end: /^syncing\.settled, Running, main running after 0 restarts$/ },
  {
    ...{ pod: 'default/crasher-n1', part: 5 },
    end: /^syncing\.settled, Running, main waiting \(CrashLoopBackOff\) after [3-9] restarts$/,
  },
];
for (const { pod, part, end } of CUTS)
  it(`${pod} ends the same with one of ${part} inputs, and without the other pods`, async () => {
    const small = await minimize({ ...inputsOf(lines), own: OWN, around: AROUND, pod, runsMax: 25 });
    expect(small).toMatchObject({ pods: { before: 5, after: 1 }, end: expect.stringMatching(end), remarks: [] });
    expect(small.inputs.after).toBeLessThanOrEqual(small.inputs.before / part);
    expect(small.lines.filter((line) => /"ask","fs\.readFile".*\/manifests\//.test(line))).toHaveLength(1);
    const { header, entries } = inputsOf(small.lines);
    const again = await replay({ header, next: entries(), own: OWN, entropy: AROUND.hashes, drain: () => AROUND.drain() });
    expect(again).toMatchObject({ divergence: null, failure: null, inputs: small.inputs.after });
  }, 240_000);

it('a container that starts again in a daemon that took it over ends the same without the other pods, though its worker slept', async () => {
  const own = await recordedNode({ manifests: { 'crasher.yaml': pod('crasher', { life: 'run=1s,exit=3' }) } }, async (h) => {
    for (const name of ['steady', 'graceful', 'second']) h.write(`${name}.yaml`, pod(name));
    await h.advance(50_000);
    await h.restart();
    await h.advance(50_000);
  });
  const of = { ...inputsOf(own), own: OWN, around: AROUND };
  const small = await minimize({ ...of, pod: 'default/crasher-n1', runsMax: 40 });
  const end = 'syncing.settled, Running, main waiting (CrashLoopBackOff) after 4 restarts';
  expect(small).toMatchObject({ pods: { before: 4, after: 1 }, end, remarks: [] });
}, 240_000);

it('a divergence in a pod stays with its life alone, and is gone where what was done then is what is done now', async () => {
  const [now, then] = ['["set",9960]', '["set",19960]'];
  const at = lines.indexOf(now);
  expect(at).toBeGreaterThan(0);
  const small = await minimize({ ...inputsOf(lines.with(at, then)), own: OWN, around: AROUND, runsMax: 60 });
  expect(small).toMatchObject({ pods: { before: 5, after: 1 }, divergence: { was: 'a timer of 19960 ms', now: 'a timer of 9960 ms' } });
  expect(small.inputs.after).toBeLessThanOrEqual(small.inputs.before / 8);
  const replayed = ({ header, entries }: ReturnType<typeof inputsOf>) =>
    replay({ header, next: entries(), own: OWN, entropy: AROUND.hashes, drain: () => AROUND.drain() });
  expect(await replayed(inputsOf(small.lines))).toMatchObject({ divergence: { was: 'a timer of 19960 ms', now: 'a timer of 9960 ms' } });
  expect(small.lines.filter((line) => line === then)).toHaveLength(1);
  const mended = small.lines.map((line) => (line === then ? now : line));
  expect(await replayed(inputsOf(mended))).toMatchObject({ divergence: null, failure: null, inputs: small.inputs.after });
}, 240_000);
