/** The port that switches the recording of inputs on and off. */
import type { InputsRecorded } from '@actorlet/shown/src/answers.ts';

export interface RecordingWanted {
  folder: string;
  maxMib: number;
  /** Labels, annotations, ConfigMaps and logs are left out, too. */
  isPrivate: boolean;
}

/** The recording of what comes in through the ports, for the administrator. */
export interface InputRecorder {
  /** Null: nothing is recorded. */
  now(): InputsRecorded | null;
  /**
   * From the next start of the node on, until {@link stop}, also over restarts. The node starts anew soon after: a replay begins
   * at a start. Rejects where the folder cannot be used, or where the command line of the daemon decides.
   */
  start(o: RecordingWanted): Promise<void>;
  /** The recording ends here; the node goes on. */
  stop(): Promise<void>;
}
