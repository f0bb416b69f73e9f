/** The only way in which calls of grpc-js are cancelled here. */

/**
 * Cancels a call at the end of this turn of the event loop. Up to 1.14, grpc-js forgets a cancellation that comes in the turn in
 * which the call was made on a connected channel, and sends the call afterwards. Its answer is never read, so that a stream
 * keeps its place at the server for good: containerd hands each event to all readers of events, and stands once such a one is full.
 */
export function cancelCall(call: { cancel(): void }): void {
  setImmediate(() => call.cancel());
}
