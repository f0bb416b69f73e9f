/** `actorctl replay`: runs the node of this checkout on a recording of inputs. */
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { GIT_VERSION } from '@actorlet/kubelet/machines/version.ts';
import { whoActs } from '@actorlet/process/src/acting.ts';
import { type Replayed, replay } from '@actorlet/replay/src/player/replay.ts';
import { silentLogger, silentMetrics } from '@actorlet/replay/src/player/silent.ts';
import { type Divergence, type Doer, touchesSecrets } from '@actorlet/replay/src/told/divergence.ts';
import type { CtlIo } from '../../io.ts';
import { debuggerAt } from './debuggerAt.ts';
import { damageOf, inputFiles, openInputs } from './file.ts';
import { surroundings } from './surroundings.ts';
import { stopAt, stopLines } from './until.ts';

export interface ReplayOptions {
  path: string;
  json: boolean;
  /** `PATH state=STATE`; absent: it runs to the end. */
  until?: string | undefined;
  /** `[HOST:]PORT` of the debugger that is opened there. */
  inspectBrk?: string | undefined;
}

/** Kinds of divergences that are told in full. */
const TOLD_MAX = 8;

/** At the step itself the debugger shows the stack below which the actor moves. */
function stopWith(until: string, inspectBrk: string | undefined): ReturnType<typeof stopAt> {
  const isThere = stopAt(until);
  if (inspectBrk === undefined) return isThere;
  const debug = debuggerAt(inspectBrk);
  return (step, node) => {
    if (!isThere(step, node)) return false;
    debug();
    return true;
  };
}

export async function runReplay(io: CtlIo, o: ReplayOptions): Promise<number> {
  if (o.inspectBrk !== undefined && o.until === undefined) throw new CtlError(EXIT.usage, '--inspect-brk: say with --until where.');
  let worst: number = EXIT.ok;
  let stopped = false;
  for (const file of await inputFiles(o.path)) {
    const one = await replayFile(io, file, o);
    worst = Math.max(worst, one.code);
    stopped ||= one.stopped;
  }
  if (o.until !== undefined && !stopped) throw new CtlError(EXIT.no, `--until ${o.until}: no actor comes there.`);
  return worst;
}

async function replayFile(io: CtlIo, file: string, o: ReplayOptions): Promise<{ code: number; stopped: boolean }> {
  const opened = await openInputs(file);
  const { header, next, more, cut } = opened;
  const remarks = [];
  if (header.actorlet !== GIT_VERSION)
    remarks.push(`it was recorded by ${header.actorlet}, and this is ${GIT_VERSION}: differences may be changes between them`);
  if (header.node !== process.version) remarks.push(`it was recorded on Node ${header.node}, and this is Node ${process.version}`);
  const around = surroundings(io);
  const began = performance.now();
  const run = replay({
    ...{ header, next, more },
    own: { log: silentLogger, metrics: silentMetrics },
    entropy: around.hashes,
    drain: () => around.drain(),
    extensions: around.extensions,
    goesOn: true,
    who: whoActs(),
    ...(o.until === undefined ? {} : { stopAt: stopWith(o.until, o.inspectBrk) }),
  });
  const result = await run.catch(async (error: unknown) => {
    if (error instanceof CtlError) throw error;
    const damage = await damageOf(opened);
    const why = damage === null ? '' : ` THE FILE IS DAMAGED: ${damage}`;
    throw new CtlError(EXIT.no, `${file}: it cannot be replayed: ${messageOf(error)}.${why}`);
  });
  const tookMs = performance.now() - began;
  if (cut()) remarks.push('it ends in the middle: its daemon was killed, or the file was cut');
  // A damaged byte may show first as something else that was done. The checksum stands at the end of the file.
  const damage = result.divergence === null && result.failure === null ? null : await damageOf(opened);
  if (damage !== null) remarks.push(`THE FILE IS DAMAGED: what differs may come of that. ${damage}`);
  if (result.parted !== null && touchesSecrets(result.parted, result.divergence?.fields ?? [])) remarks.push(SECRET_IN_IT);
  const same = result.divergence === null && result.failure === null;
  if (o.json)
    io.out(
      `${JSON.stringify({ file, startedAt: header.startedAt, same, remarks, tookMs: Math.round(tookMs), ...result, parted: undefined, stopped: shownStop(result) }, null, 2)}\n`,
    );
  else io.out(shown(file, { result, remarks, tookMs, startedAt: header.startedAt }));
  return { code: same ? EXIT.ok : EXIT.no, stopped: result.stopped !== null };
}

const SECRET_IN_IT =
  'What differs has a secret in it, of which the recording has a stand-in: a decision by the content of the secret is another one here.';

function shown(file: string, o: { result: Replayed; remarks: readonly string[]; tookMs: number; startedAt: string }): string {
  const { result, tookMs } = o;
  const { divergence, failure } = result;
  const speed = Math.round(result.ms / Math.max(1, tookMs));
  const lines = [
    `${file}: ${result.inputs} inputs since ${o.startedAt}, ${seconds(result.ms)} of the node in ${seconds(tookMs)} (${speed} times as fast)`,
  ];
  lines.push(...o.remarks.map((remark) => `  ${remark}`));
  if (failure !== null) lines.push(`  The node failed, which it did not then: ${failure}`);
  if (result.stopped !== null) return textOf([...lines, ...stopLines(result.stopped)]);
  if (divergence === null) {
    if (failure === null) lines.push('  No divergence: this checkout does what the node did then.');
    return textOf(lines);
  }
  const { divergences } = result;
  const told = divergences.slice(0, TOLD_MAX);
  for (const [i, one] of told.entries()) lines.push(...divergenceLines(one, i === 0));
  const left = divergences.length - told.length;
  if (left > 0) lines.push(`  ${left} more kinds of divergences: --json has all`);
  lines.push('  The last steps of the node', ...result.steps.map((line) => `    ${line}`));
  return textOf(lines);
}

/** The first one is what to look at: those after it may follow from it. */
function divergenceLines(one: Divergence, isFirst: boolean): string[] {
  const times = one.more === 0 ? '' : `, and ${one.more} more like it`;
  const lines = [
    `  ${isFirst ? 'DIVERGENCE' : 'after it:'} after input ${one.input} (${one.inputIs}), at ${new Date(one.wallMs).toISOString()}${times}`,
  ];
  const [was, now] = [doerWords(one.wasBy), doerWords(one.nowBy)];
  if (was === now || one.wasBy === null || one.nowBy === null) {
    if ((was || now) !== '') lines.push(`    by:   ${was || now}`);
    lines.push(`    then: ${sideWords(one.was, one.wasSaid)}`, `    now:  ${sideWords(one.now, one.nowSaid)}`);
  } else {
    const by = (words: string): string => (words === '' ? '' : `, by ${words}`);
    lines.push(`    then: ${sideWords(one.was, one.wasSaid)}${by(was)}`, `    now:  ${sideWords(one.now, one.nowSaid)}${by(now)}`);
  }
  for (const { field, was: before, now: after } of one.fields)
    lines.push(`    differs: ${field || 'the text'}: then ${before}, now ${after}`);
  const code = isFirst ? codeOf(one.nowBy ?? one.wasBy) : '';
  if (code !== '') lines.push(`    its code: ${code}`);
  if (isFirst && one.stack !== '') lines.push('  Asked now', ...one.stack.split('\n').map((line) => `    ${line}`));
  return lines;
}

/** A path names the folder, or the beginning of the file's name: where the actor decides, and where it acts. */
function codeOf(by: Doer | null): string {
  const place = (by?.actor ?? '').replace(/^node\//, '').replace(/^(pods\/workers|api\/podWriters)\/.*/, '$1');
  return place === '' || place === 'node' ? '' : `src/machines/${place} decides, src/actors/${place} acts`;
}

function doerWords(by: Doer | null): string {
  if (by === null) return '';
  const { actor, pod, state, event } = by;
  return [actor, pod === '' ? '' : `of pod ${pod}`, state === '' ? '' : `in ${state}`, event === '' ? '' : `on ${event}`]
    .filter((word) => word !== '')
    .join(' ');
}

/** What was said shows more than names and paths alone. */
function sideWords(did: string, said: string): string {
  const [name = ''] = did.split(' ', 1);
  return said === '' ? did : `${name} ${said}`;
}

/** A recording may hold any text: none of it commands the terminal. */
function textOf(lines: readonly string[]): string {
  return `${lines.map(printable).join('\n')}\n`;
}

function shownStop({ stopped }: Replayed): object | null {
  return stopped === null ? null : { path: stopped.path, state: stopped.to, at: new Date(stopped.wallMs).toISOString() };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
