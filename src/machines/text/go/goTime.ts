/** Of the time that was asked for last: a burst asks for one second again and again, and statuses keep what they are given. */
const last = { second: Number.NaN, text: '' };

/** RFC 3339 in whole seconds, as the API keeps times. */
export function rfc3339(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== last.second) {
    // Joined, it is one text; put together otherwise, it would keep its parts alive, which are three times as much.
    last.text = [new Date(ms).toISOString().slice(0, 19), 'Z'].join('');
    last.second = second;
  }
  return last.text;
}
