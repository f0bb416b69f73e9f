/**
 * Hides what looks like a secret in texts that programs wrote, beside those that are known: nobody told the node of a password
 * that a program reads from its own file and logs. Pure, and linear in the text.
 */
import { MASKED } from '@actorlet/kubelet/machines/text/shownUrl.ts';

/** `Bearer abc`, `Basic abc`: what a header carries. */
const SCHEMES = /\b(Bearer|Basic|Digest|Token)(\s{1,4})[\w+/.=~-]{6,}/gi;
/** A header that may hold a key, up to its line's end. */
const HEADERS =
  /\b((?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,40}(?:token|key|secret|auth)[\w-]{0,40})(["']?\s{0,4}[:=]\s{0,4}["']?)([^\s"'][^"'\r\n]*)/gi;
const WORDS = 'passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?';
/** `password=abc`, `"db_apiKey": "abc"`. */
const FIELDS = new RegExp(`(${WORDS})(["']?\\s{0,4}(?:=>|[:=])\\s{0,4})("[^"\\r\\n]*"|'[^'\\r\\n]*'|[^\\s"',;&)}\\]]+)`, 'gi');
/** `--db-token abc`. */
const OPTIONS = new RegExp(`(${WORDS})(?<=(?:^|\\s)--?[\\w-]{1,60})(\\s{1,4})([^\\s-]\\S*)`, 'gim');
/** A key, or what a cut has left of one. */
const PEM = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g;
const PEM_END = /^[\s\S]{0,8192}?-----END [A-Z ]{0,40}PRIVATE KEY-----/;
/** Keys of clouds and forges, which their makers made easy to find. */
const KEYS = /\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|sk-[\w-]{20,}|AIza[\w-]{30,})/g;

export function redacted(text: string): string {
  let shown = text;
  if (shown.includes('PRIVATE KEY-----')) shown = withoutKeys(shown);
  shown = shown.replace(HEADERS, (_, name: string, between: string) => `${name}${between}${MASKED}`);
  shown = shown.replace(SCHEMES, (_, scheme: string, blank: string) => `${scheme}${blank}${MASKED}`);
  shown = shown.replace(FIELDS, (_, name: string, between: string, value: string) => {
    const quote = /^["']/.exec(value)?.[0] ?? '';
    return `${name}${between}${quote}${MASKED}${quote}`;
  });
  shown = shown.replace(OPTIONS, (_, name: string, blank: string) => `${name}${blank}${MASKED}`);
  return shown.replace(KEYS, MASKED);
}

function withoutKeys(text: string): string {
  const begin = text.indexOf('-----BEGIN ');
  const end = text.search(/-----END [A-Z ]{0,40}PRIVATE KEY-----/);
  // The text begins in the middle of one.
  const whole = end >= 0 && (begin < 0 || end < begin) ? text.replace(PEM_END, MASKED) : text;
  return whole.replace(PEM, MASKED);
}
