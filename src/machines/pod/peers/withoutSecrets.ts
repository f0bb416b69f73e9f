/** Answers of lower layers without the secrets that their calls carried. Pure. */
import { KnownSecrets } from '../../data/knownSecrets.ts';

/** Shorter values may be a part of any word: they are looked for as words of their own. */
const ANYWHERE_MIN = 8;

/** An error without the secrets that its call carried. */
export function withoutSecrets(error: string, secrets: readonly string[]): string {
  const known = new KnownSecrets();
  for (const secret of secrets) if (secret.length >= ANYWHERE_MIN) known.add(secret, MASK);
  const short = new Set(secrets.filter((s) => s !== '' && s.length < ANYWHERE_MIN));
  const long = known.without(error);
  return short.size === 0 ? long : long.replace(WORD, (word) => (short.has(word) ? MASK : word));
}
const MASK = '***';
const WORD = /[^\s"'`:,;=()[\]{}<>]+/g;
