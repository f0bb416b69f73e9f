/** Trimming in linear time: `/x+$/` looks at a run of n characters n times where something else follows the run. Pure. */

/** The text without the characters of `set` at its end. */
export function trimEndOf(text: string, set: string): string {
  let end = text.length;
  while (end > 0 && set.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The text without the characters of `set` at its beginning. */
export function trimStartOf(text: string, set: string): string {
  let start = 0;
  while (start < text.length && set.includes(text.charAt(start))) start += 1;
  return text.slice(start);
}

/** The text without the characters of `set` at either end. */
export function trimOf(text: string, set: string): string {
  return trimEndOf(trimStartOf(text, set), set);
}
