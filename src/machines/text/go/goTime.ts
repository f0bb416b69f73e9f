/** RFC 3339 in whole seconds, as the API keeps times. */
export function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
