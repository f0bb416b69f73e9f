/** Why a program ended, by the end of its log. Pure. */

const WORDS_MAX = 400;
/** A line that says why: klog's fatal lines and errors, `Error: ...` of a command, the fatal levels of etcd. */
const CAUSES = [/^F\d{4} /, /^(?:Error|panic|fatal error): /, /"level":"(?:fatal|panic)"/, /^E\d{4} .*"command failed"/, /exec: .*: /];
/** Usage texts and stacks stand behind what matters. */
const KLOG = /^[FEWI]\d{4} \S+\s+\d+ [^\]]*\] /;

/** @param tail The end of its log. */
export function lastWords(tail: string): string {
  const lines = tail.split('\n').filter((line) => line.trim() !== '');
  const at = lines.findLast((line) => CAUSES.some((cause) => cause.test(line))) ?? lines.at(-1) ?? '';
  const words = fromJson(at) ?? at.replace(KLOG, '');
  return words.length > WORDS_MAX ? `${words.slice(0, WORDS_MAX)}...` : words;
}

/** As etcd writes it. */
function fromJson(line: string): string | null {
  if (!line.startsWith('{')) return null;
  try {
    const { msg, error } = JSON.parse(line) as { msg?: unknown; error?: unknown };
    return [msg, error].filter((part) => typeof part === 'string').join(': ');
  } catch {
    return null;
  }
}

/** Another program has the port that it was given. */
export function isPortTaken(words: string): boolean {
  return /address already in use/.test(words);
}
