/** One connection to the page's server, as the feeds see it. */

/** Bytes that may wait for one viewer before frames for it are dropped. */
export const BACKLOG_BYTES_MAX = 1024 * 1024;
/** A viewer that does not catch up for so long is disconnected. */
export const LAG_MAX_MS = 30_000;
export const VIEWERS_MAX = 16;

/** `send` must not wait. */
export interface Viewer {
  /** Bytes that were sent and have not left. */
  backlogBytes(): number;
  send(text: string): void;
  close(why: string): void;
}
export interface Joined {
  message(text: string): void;
  leave(): void;
}
