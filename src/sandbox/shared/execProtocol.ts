/**
 * `actorlet-exec.v1`: one command over an upgraded HTTP connection. Frames both ways: one byte channel, four bytes
 * length (big endian), payload. Used by the process runtime and by `actorctl exec`; described in docs/embedded-runtime.md.
 */

export const EXEC_PROTOCOL = 'actorlet-exec.v1';
/** `stdin`: client to server, an empty frame is its end. `status`: last frame, JSON `{exitCode}` or `{error}`. */
export const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3 } as const;
/** A larger frame is refused. */
export const FRAME_BYTES_MAX = 1024 * 1024;

export function frame(channel: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(channel, 0);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

/** Calls `onFrame` for each complete frame; throws on one that is too large. */
export function frameReader(onFrame: (channel: number, payload: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      const bytes = rest.readUInt32BE(1);
      if (bytes > FRAME_BYTES_MAX) throw new Error(`frame of ${bytes} bytes exceeds ${FRAME_BYTES_MAX}`);
      if (rest.length < 5 + bytes) return;
      const payload = rest.subarray(5, 5 + bytes);
      const channel = rest.readUInt8(0);
      rest = rest.subarray(5 + bytes);
      onFrame(channel, payload);
    }
  };
}

/** Socket path and HTTP path of a URL that Exec answered: `http+unix://<percent-encoded path>/exec/<token>`; null for another kind. */
export function parseExecUrl(url: string): { socketPath: string; path: string } | null {
  const m = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  return m?.[1] === undefined || m[2] === undefined ? null : { socketPath: decodeURIComponent(m[1]), path: m[2] };
}
