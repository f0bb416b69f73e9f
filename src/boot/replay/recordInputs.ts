/** Puts a recording of inputs between a node and its ports, where the flag asks for one. */

import type { NodeConfig } from '../../machines/config/config.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Ports } from '../../ports/ports.ts';
import type { OutsideNode } from '../../replay/outside.ts';
import { InputRecording } from '../../replay/record.ts';
import { GIT_VERSION } from '../version.ts';
import { InputFile } from './inputFile.ts';

const MIB = 1024 * 1024;

export interface RecordedNode {
  ports: Ports;
  options: unknown;
  /** The node as its outside gets it. */
  around<N extends OutsideNode>(node: N): N;
  end(): Promise<void>;
}

/** Rejects where the folder cannot be used. */
export async function recordInputs(config: NodeConfig, ports: Ports, options: object): Promise<RecordedNode> {
  const { recordInputs: dir, recordInputsMaxMib } = config.flags;
  const { log, clock } = ports;
  const name = new Date(clock.wallMs()).toISOString().replaceAll(':', '-');
  let recording: InputRecording | null = null;
  const file = await InputFile.open({ dir, name, bytesMax: recordInputsMaxMib * MIB, onBroken: (why) => recording?.end(why) });
  recording = new InputRecording(ports, {
    ...{ config, options, versions: { actorlet: GIT_VERSION, node: process.version } },
    afterMicrotasks: (fn) => queueMicrotask(() => process.nextTick(fn)),
    write: (line) => file.write(line),
    ended: (why) => {
      log.warn({ flag: '--actorlet-record-inputs', file: file.path, why }, 'the recording of inputs ended; the node goes on');
    },
  });
  const { ports: behind, options: given } = recording;
  log.info({ file: file.path, maxMiB: recordInputsMaxMib }, 'inputs are recorded: actorctl replay runs them again');
  return {
    ports: behind,
    options: given,
    around: (node) => recording.around(node),
    async end() {
      try {
        recording.end('the daemon ended');
        await file.end();
      } catch (error) {
        log.warn({ file: file.path, err: messageOf(error) }, 'the end of the recording could not be written');
      }
    },
  };
}
