/** Writes what came in to the daemons of a seed as recordings, which `actorctl replay` runs. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';
import { CtlError, EXIT } from '@actorlet/admin/src/client.ts';
import type { Node } from '@actorlet/kubelet/actors/node.ts';
import type { NodeConfig } from '@actorlet/kubelet/machines/config/config.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { GIT_VERSION } from '@actorlet/kubelet/machines/version.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';
import { whoActs } from '@actorlet/process/src/acting.ts';
import { InputRecording } from '@actorlet/replay/src/record.ts';
import { runSim, type SimOptions, type SimResult } from '@actorlet/sim/src/index.ts';
import type { CtlIo } from '../../io.ts';

/** One daemon's recording: the lines of its file. */
interface RecordedDaemon {
  /** `n1-2`: the second daemon of node n1. */
  readonly name: string;
  readonly lines: readonly string[];
}

/** Runs the seed with a recording of each of its daemons. */
async function recordedRun(o: SimOptions): Promise<{ result: SimResult; daemons: readonly RecordedDaemon[] }> {
  const daemons: { name: string; lines: string[] }[] = [];
  const result = await runSim({
    ...o,
    between({ name }: { name: string }, config: NodeConfig, ports: Ports) {
      const lines: string[] = [];
      daemons.push({ name: `${name}-${daemons.filter((d) => d.name.startsWith(`${name}-`)).length + 1}`, lines });
      const who = whoActs();
      const recording = new InputRecording(ports, {
        who,
        ...{ config, options: {}, versions: { actorlet: GIT_VERSION, node: process.version } },
        afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
        write: (line) => lines.push(line) > 0,
        ended() {},
      });
      return { ports: recording.ports, acting: who.acting, wrap: (made: Node) => recording.around(made) };
    },
  });
  return { result, daemons };
}

/** Writes a file for each daemon of the seed, and says what is in them. */
export async function recordSeed(io: CtlIo, o: SimOptions, dir: string): Promise<void> {
  const { result, daemons } = await recordedRun(o);
  const { violation } = result;
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const { name, lines } of daemons) {
      const file = join(dir, `seed-${o.seed}-${name}.inputs.zst`);
      await writeFile(file, zstdCompressSync(`${lines.join('\n')}\n`, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }), { mode: 0o600 });
      io.out(`${file}: ${lines.length} lines\n`);
    }
  } catch (error) {
    throw new CtlError(EXIT.failed, `the recording of seed ${o.seed} cannot be written to ${dir}: ${messageOf(error)}`);
  }
  io.out(`  ${violation === null ? 'every invariant held while it was recorded' : `${violation.invariant}: ${violation.what}`}\n`);
}
