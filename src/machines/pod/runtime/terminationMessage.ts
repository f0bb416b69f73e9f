/** What a container said at its end: which source is read and how much of it counts (pod lifecycle 5.15). Reading is the caller's. */
import type { PodStatus } from '../../kube/types.ts';
import type { RuntimeContainer } from './seen.ts';

/** How much of the end of the termination log file counts. */
export const TERMINATION_LOG_BYTES_MAX = 4096;
/** How much of the end of the container's own log counts, where that stands in. */
export const FALLBACK_LOG_BYTES_MAX = 2048;
const FALLBACK_LOG_LINES_MAX = 80;
/** All messages of a pod's status together. */
const STATUS_MESSAGES_BYTES_MAX = 12_288;

/** The container's log stands in: it failed, wrote no message, and asked for it. */
function wantsLogFallback(container: RuntimeContainer, fileText: string): boolean {
  return (
    container.terminationMessagePolicy === 'FallbackToLogsOnError' &&
    container.exitCode !== 0 &&
    container.reason !== 'ContainerCannotRun' &&
    fileText === ''
  );
}

/** CRI log lines to plain text: the content of each, fragments of one line joined. A line in another form is kept as it is. */
function plainLogText(criText: string): string {
  let text = '';
  for (const line of criText.split('\n')) {
    if (line === '') continue;
    const match = /^\S+ (?:stdout|stderr) (\S+) (.*)$/s.exec(line);
    if (match === null) {
      text += `${line}\n`;
      continue;
    }
    text += match[1]?.startsWith('P') === true ? (match[2] ?? '') : `${match[2] ?? ''}\n`;
  }
  return text;
}

/** The last lines and bytes of a CRI log, as plain text. A last line that the container did not end stays without a line break. */
export function fallbackText(criText: string): string {
  const lines = plainLogText(criText).split('\n');
  const linesMax = FALLBACK_LOG_LINES_MAX + (lines.at(-1) === '' ? 1 : 0);
  return tailBytes(lines.slice(-linesMax).join('\n'), FALLBACK_LOG_BYTES_MAX);
}

function joinMessages(criMessage: string, text: string): string {
  return criMessage !== '' && text !== '' ? `${criMessage}: ${text}` : criMessage + text;
}

/**
 * The whole rule for one exited container. `fileText`: the tail of the termination log, null when there is none, or the text of the error
 * that reading it gave (which then is the message, and the log is not asked). `readLog` gives the last bytes of the container's log as
 * written, null when there is none; more is read than shown, because the CRI prefix of each line does not count.
 */
export async function chooseTerminationMessage(
  container: RuntimeContainer,
  fileText: string | null,
  readLog: (bytesMax: number) => Promise<string | null>,
): Promise<string> {
  if (container.state !== 'exited') return container.message;
  const text = container.terminationMessagePath === '' ? '' : tailBytes(fileText ?? '', TERMINATION_LOG_BYTES_MAX);
  if (!wantsLogFallback(container, text)) return joinMessages(container.message, text);
  const log = await readLog(FALLBACK_LOG_BYTES_MAX + FALLBACK_LOG_LINES_MAX * 64);
  return joinMessages(container.message, log === null ? '' : fallbackText(log));
}

/** The last bytes of a text, cut between characters. */
function tailBytes(text: string, bytesMax: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= bytesMax) return text;
  let from = bytes.length - bytesMax;
  while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from));
}

/** The first bytes of a text, cut between characters. */
export function headBytes(text: string, bytesMax: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= bytesMax) return text;
  let to = bytesMax;
  while (to > 0 && ((bytes[to] ?? 0) & 0xc0) === 0x80) to -= 1;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, to));
}

/** Bytes that each message of this status may have. */
export function messageBytesMax(status: PodStatus): number {
  const count =
    (status.containerStatuses?.length ?? 0) +
    (status.initContainerStatuses?.length ?? 0) +
    (status.ephemeralContainerStatuses?.length ?? 0);
  return Math.floor(STATUS_MESSAGES_BYTES_MAX / Math.max(1, count));
}
