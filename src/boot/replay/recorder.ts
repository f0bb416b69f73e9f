/**
 * The real InputRecorder port: `actorctl record`. A replay needs the node's state from its beginning, which no port can be asked for.
 * So a recording begins with a start: the daemon ends in order, becomes the same program anew in the same process, and the fresh
 * node asks runtime, API server, disk and mounts for the world, as after any restart. Those answers are the checkpoint.
 */
import { access, constants, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { isRecord } from '../../machines/shape/conform.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { ifThere } from '../../ports/ifThere.ts';
import type { InputRecorder, RecordingWanted } from '../../ports/machine/inputRecorder.ts';
import { type BootContext, need } from '../steps/context.ts';

/** By then the answer to the command that asked has left the socket. */
const ANSWER_GOES_OUT_MS = 250;
const FILE_BYTES_MAX = 16 * 1024;

/** The flag's folder, else what `actorctl record start` left; null: nothing is to be recorded. */
export async function wantedInputs({ flags }: Pick<NodeConfig, 'flags'>): Promise<RecordingWanted | null> {
  if (flags.recordInputs !== '')
    return { folder: flags.recordInputs, maxMib: flags.recordInputsMaxMib, isPrivate: flags.recordInputsPrivate };
  try {
    const value: unknown = JSON.parse((await readRegular(fileOf(flags.rootDir), { own: true, bytesMax: FILE_BYTES_MAX })).toString());
    if (!isRecord(value) || typeof value.folder !== 'string' || typeof value.maxMib !== 'number') return null;
    return { folder: value.folder, maxMib: value.maxMib, isPrivate: value.isPrivate === true };
  } catch {
    return null;
  }
}

const fileOf = (rootDir: string): string => `${rootDir}/actorlet/record-inputs.json`;

/** The daemon ends as on SIGTERM and becomes the same program anew. */
export function startAnew(ctx: Pick<BootContext, 'argv' | 'state' | 'ending'>, why: string): void {
  if (ctx.ending.signal.aborted) return;
  ctx.state.again = ctx.argv;
  ctx.state.log?.info({ why }, 'the daemon starts anew; containers are left running');
  ctx.ending.abort(new Error(why));
}

export function createInputRecorder(ctx: BootContext): InputRecorder {
  const { flags } = need(ctx, 'loaded');
  const file = fileOf(flags.rootDir);
  return {
    now: () => ctx.state.inputs?.now() ?? null,
    async start({ folder, maxMib, isPrivate }) {
      if (flags.recordInputs !== '') throw new Error(`this daemon records to ${flags.recordInputs}, as --actorlet-record-inputs says`);
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await access(folder, constants.W_OK);
      } catch (error) {
        throw new Error(`the folder cannot be used: ${messageOf(error)}`);
      }
      await writeFile(`${file}.new`, JSON.stringify({ folder, maxMib, isPrivate } satisfies RecordingWanted), { mode: 0o600 });
      await rename(`${file}.new`, file);
      setTimeout(() => startAnew(ctx, 'actorctl record start'), ANSWER_GOES_OUT_MS).unref();
    },
    async stop() {
      await ifThere(rm(file));
      await ctx.state.inputs?.end('actorctl record stop');
    },
  };
}
