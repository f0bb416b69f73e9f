/** Answers of lower layers without the secrets that their calls carried. Pure. */
import { KnownSecrets } from '../../data/knownSecrets.ts';

/** Shorter values may be a part of any word: they are looked for between spaces and signs. */
const ANYWHERE_MIN = 8;

/** An error without the secrets that its call carried. */
export function withoutSecrets(error: string, secrets: readonly string[]): string {
  const known = new KnownSecrets();
  for (const secret of secrets) if (secret.length >= ANYWHERE_MIN) known.add(secret, MASK);
  const short = new Set(secrets.filter((s) => s !== '' && s.length < ANYWHERE_MIN));
  return [...short].sort((a, b) => b.length - a.length).reduce(withoutShort, known.without(error));
}
function withoutShort(text: string, secret: string): string {
  const parts = text.split(secret);
  const stands = (before = '', after = ''): boolean => EDGE.test(before.slice(-1)) && EDGE.test(after.slice(0, 1));
  return parts.map((part, i) => (i === 0 ? part : `${stands(parts[i - 1], part) ? MASK : secret}${part}`)).join('');
}
const MASK = '***';
const EDGE = /^$|[\s"'`:,;=()[\]{}<>]/;
