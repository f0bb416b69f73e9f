/** `actorctl --recording FILE`: a daemon's recording in the place of the daemon. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { type AdminClient, CtlError, EXIT, refusal } from '@actorlet/admin/src/client.ts';
import { RecordedAnswers } from '@actorlet/inspect/src/recording/answers.ts';
import { beginsLikeRecording } from '@actorlet/inspect/src/recording/format.ts';
import { Recording } from '@actorlet/inspect/src/recording/recording.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { parseGoDuration } from '@actorlet/kubelet/machines/text/go/goDuration.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';

/** A recording is read into memory; the daemon writes at most 1 GiB. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024;

export interface Opened {
  client: AdminClient;
  recording: Recording;
  /** Its files, oldest first. */
  segments: readonly Uint8Array[];
  /** The moment that is shown. */
  atMs: number;
  /** What a person has to know of the recording. */
  remarks: string[];
}

/** `at`: '' for the end, a time, or how long before the end. */
export async function openRecording(file: string, at: string): Promise<Opened> {
  const segments = [await segment(`${file}.1`), await segment(file)].filter((s) => s !== null);
  if (segments.length === 0) throw new CtlError(EXIT.no, `no recording: ${file} does not exist.`);
  const recording = new Recording(segments);
  const { otherVersion } = recording.figures;
  if (recording.runs.length === 0 && otherVersion !== null) {
    throw new CtlError(EXIT.no, `${file} is a recording of format ${otherVersion}: read it with the actorctl of the daemon that wrote it.`);
  }
  if (recording.runs.length === 0) throw new CtlError(EXIT.no, `${file} holds no whole frame of a recording.`);
  const atMs = momentOf(at, recording);
  const answers = new RecordedAnswers(recording, atMs);
  return { client: recordedClient(file, answers), recording, segments, atMs, remarks: remarksOf(recording, atMs) };
}

/** Null: there is none. */
async function segment(path: string): Promise<Uint8Array | null> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    // A named pipe must not hold us up.
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (code === 'EACCES')
      throw new CtlError(EXIT.noPermission, `no permission for ${path}: a recording belongs to the user of the daemon.`);
    throw new CtlError(EXIT.failed, `${path} cannot be read: ${message}`);
  }
  try {
    const info = await handle.stat();
    if (!info.isFile()) throw new CtlError(EXIT.no, `${path} is no file.`);
    if (info.size > FILE_BYTES_MAX)
      throw new CtlError(EXIT.no, `${path} has ${info.size} bytes; a recording has at most ${FILE_BYTES_MAX}.`);
    const bytes = await handle.readFile();
    if (!beginsLikeRecording(bytes)) throw new CtlError(EXIT.no, `${path} is no recording of actorlet.`);
    return bytes;
  } finally {
    await handle.close();
  }
}

function momentOf(at: string, recording: Recording): number {
  if (at === '') return recording.toMs;
  const before = parseGoDuration(at.replace(/^-/, ''));
  const time = before === undefined ? Date.parse(at) : recording.toMs - before;
  if (Number.isNaN(time)) {
    throw new CtlError(EXIT.usage, `--at ${printable(at)}: give a time like 2026-01-31T12:00:00Z, or how long before the end, like 30s.`);
  }
  return Math.min(Math.max(time, recording.fromMs), recording.toMs);
}

function remarksOf(recording: Recording, atMs: number): string[] {
  const { figures, runs, toMs } = recording;
  const last = runs.at(-1);
  const before = toMs - atMs < 1 ? 'its end' : `${shortDuration(toMs - atMs)} before its end`;
  const ended = last?.stopped === true ? 'its daemon stopped in order' : 'its daemon was killed, crashed, or still runs';
  return [
    `Recording of ${printable(last?.node ?? '')} at ${new Date(atMs).toISOString()}, ${before}; ${ended}.`,
    ...(figures.lost > 0 ? [`${figures.lost} entries are missing: the disk was too slow for them.`] : []),
    ...(figures.damagedBytes > 0 ? [`${figures.damagedBytes} bytes belong to no whole frame and were skipped.`] : []),
    ...(figures.gaveUp ? ['So much of it is damaged that the search for whole frames was given up.'] : []),
  ];
}

function recordedClient(file: string, answers: RecordedAnswers): AdminClient {
  const refuse = (): never => {
    throw new CtlError(EXIT.no, 'a recording is of the past: nothing can be run in it or done to it.');
  };
  const get: AdminClient['get'] = (path, query = {}) => Promise.resolve(answers.get(path, query));
  return {
    socketPath: file,
    get,
    send: async (method, path) => (method === 'GET' ? answers.get(path, {}) : refuse()),
    post: async () => refuse(),
    json: async (path, query) => {
      const answer = await get(path, query);
      if (answer.status !== 200) throw refusal(answer);
      return JSON.parse(answer.body) as unknown;
    },
  };
}
