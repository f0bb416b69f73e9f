/** What a thrown value says. */

/** Of a text that is no JSON, V8 quotes the place: it may be a secret. */
const QUOTED = /(?:, )?(?:\.\.\.)?".*"(?:\.\.\.)?(?= is not valid JSON$)/s;

export function messageOf(thrown: unknown): string {
  if (thrown instanceof SyntaxError) return thrown.message.replace(QUOTED, '');
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Node's error code (`ENOENT`), or ''. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
}
