/** Puts a recording of inputs between a node and its ports, where the flag asks for one. */

import { whoActs } from '@actorlet/process/src/acting.ts';
import { FULL } from '@actorlet/replay/src/lines.ts';
import type { OutsideNode } from '@actorlet/replay/src/outside.ts';
import { InputRecording } from '@actorlet/replay/src/record.ts';
import type { NodeConfig } from '../../machines/config/config.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { InputsRecorded } from '../../ports/machine/inputRecorder.ts';
import type { Ports } from '../../ports/ports.ts';
import { GIT_VERSION } from '../version.ts';
import { InputFile } from './inputFile.ts';

const MIB = 1024 * 1024;
/** A folder that is full sooner is too small: the recording ends, and the node is left alone. */
const FULL_AFTER_MS_MIN = 600_000;

/** A reaction of it is a microtask, and costs a fifth of what `queueMicrotask` makes. */
const SETTLED = Promise.resolve();

export interface RecordedNode {
  ports: Ports;
  options: unknown;
  /** The node as its outside gets it. */
  around<N extends OutsideNode>(node: N): N;
  /** Of `actorctl record`. */
  now(): InputsRecorded;
  /** Does not reject. */
  end(why: string): Promise<void>;
}

export interface RecordingOptions {
  /** What the node is given besides its ports. */
  options: object;
  folder: string;
  maxMib: number;
  isPrivate: boolean;
  /** Called once there is no room for more, unless the folder is far too small. */
  full(): void;
}

/** Rejects where the folder cannot be used. */
export async function recordInputs(config: NodeConfig, ports: Ports, o: RecordingOptions): Promise<RecordedNode> {
  const { folder: dir, maxMib, isPrivate, options } = o;
  const { log, clock } = ports;
  const name = new Date(clock.wallMs()).toISOString().replaceAll(':', '-');
  const beganMs = clock.monoMs();
  let recording: InputRecording | null = null;
  let ended = '';
  const file = await InputFile.open({ dir, name, bytesMax: maxMib * MIB, onBroken: (why) => recording?.end(why) });
  const who = whoActs();
  recording = new InputRecording(ports, {
    who,
    isPrivate,
    ...{ config, options, versions: { actorlet: GIT_VERSION, node: process.version } },
    afterMicrotasks: (fn) => void SETTLED.then(() => process.nextTick(fn)),
    write: (line) => file.write(line),
    ended(why) {
      ended = why;
      log.warn({ file: file.path, why }, 'the recording of inputs ended; the node goes on');
      if (why !== FULL) return;
      void file.end(JSON.stringify(['end', why]));
      if (clock.monoMs() - beganMs >= FULL_AFTER_MS_MIN) o.full();
    },
  });
  const { ports: behind, options: given } = recording;
  log.info({ file: file.path, maxMiB: maxMib }, 'inputs are recorded: actorctl replay runs them again');
  return {
    ports: behind,
    options: { ...(given as object), acting: who.acting },
    around: (node) => recording.around(node),
    now: () => ({ file: file.path, bytes: file.bytes, maxMib, ended }),
    async end(why) {
      try {
        recording.end(why);
        await file.end();
      } catch (error) {
        log.warn({ file: file.path, err: messageOf(error) }, 'the end of the recording could not be written');
      }
    },
  };
}
