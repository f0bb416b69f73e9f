/** `actorctl replay`: runs the node of this checkout on a recording of inputs. */
import { CtlError, EXIT } from '../../../admin/client.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { printable } from '../../../machines/text/table.ts';
import { GIT_VERSION } from '../../../machines/version.ts';
import { silentLogger, silentMetrics } from '../../../replay/player/silent.ts';
import { type Replayed, replay } from '../../../replay/replay.ts';
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
    ...(o.until === undefined ? {} : { stopAt: stopWith(o.until, o.inspectBrk) }),
  });
  const result = await run.catch((error: unknown) => {
    throw error instanceof CtlError ? error : new CtlError(EXIT.no, `${file}: it cannot be replayed: ${messageOf(error)}.`);
  });
  const tookMs = performance.now() - began;
  if (cut()) remarks.push('it ends in the middle: its daemon was killed, or the file was cut');
  // A damaged byte may show first as something else that was done. The checksum stands at the end of the file.
  const damage = result.divergence === null ? null : await damageOf(opened);
  if (damage !== null) remarks.push(`THE FILE IS DAMAGED: the divergence may come of that. ${damage}`);
  const same = result.divergence === null && result.failure === null;
  if (o.json)
    io.out(
      `${JSON.stringify({ file, startedAt: header.startedAt, same, remarks, tookMs: Math.round(tookMs), ...result, parted: undefined, stopped: shownStop(result) }, null, 2)}\n`,
    );
  else io.out(shown(file, { result, remarks, tookMs, startedAt: header.startedAt }));
  return { code: same ? EXIT.ok : EXIT.no, stopped: result.stopped !== null };
}

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
  lines.push(
    `  DIVERGENCE after input ${divergence.input} (${divergence.inputIs}), at ${new Date(divergence.wallMs).toISOString()}`,
    `    then: ${divergence.was}`,
    `    now:  ${divergence.now}`,
  );
  if (divergence.stack !== '') lines.push('  Asked now', ...divergence.stack.split('\n').map((line) => `    ${line}`));
  lines.push('  The last steps of the node', ...result.steps.map((line) => `    ${line}`));
  return textOf(lines);
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
