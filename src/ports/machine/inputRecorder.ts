/** The port that switches the recording of inputs on and off. */

/** A recording that is being written, or that ended while its daemon goes on. */
export interface InputsRecorded {
  readonly file: string;
  readonly bytes: number;
  /** Of its folder. */
  readonly maxMib: number;
  /** '' while it is written. */
  readonly ended: string;
}

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
