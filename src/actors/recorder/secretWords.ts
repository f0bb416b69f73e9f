/**
 * What of a node's messages is secret: words of commands, values of environments and credentials, as the runtime was given them.
 * A runtime repeats them in its errors. They are hidden where the flight recorder is written to a file.
 */
import { FOUND_ANYWHERE_MIN, KnownSecrets } from '../../machines/data/knownSecrets.ts';
import { AUTHORIZATION, MASKED, withShownUrls } from '../../machines/text/shownUrl.ts';
import type { CriMethod, CriRequest } from '../../machines/wire/criCalls.ts';

const TOKEN = /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/g;

/** Short values that are kept. Those that come later are not looked for. */
const SHORT_MAX = 10_000;
/** Of one Secret, or one container: 100,000 would take a second to learn. */
const WORDS_MAX = 2_000;

export class SecretWords {
  readonly #known: KnownSecrets;
  /** Values of Secrets that are too short to be hidden in any text. */
  readonly short = new Set<string>();

  /** As `KnownSecrets`. */
  constructor(o: { inAllWritings: boolean } = { inAllWritings: true }) {
    this.#known = new KnownSecrets(o);
  }

  /** A call of the runtime is made. Answers with what is secret of it. */
  note<M extends CriMethod>(method: M, request: CriRequest<M>): readonly string[] {
    const words = wordsOf(method, request);
    this.add(words);
    return words;
  }

  learn(values: readonly string[]): void {
    this.add(values);
    for (const value of values.slice(0, WORDS_MAX))
      if (value.length < FOUND_ANYWHERE_MIN && this.short.size < SHORT_MAX) this.short.add(value);
  }

  add(words: readonly string[]): void {
    for (const word of words.slice(0, WORDS_MAX)) if (this.#known.of(word) === null) this.#known.add(word, MASKED);
  }

  /** The text without them, and without what URLs and tokens hide. */
  hidden(text: string): string {
    let shown = withShownUrls(this.#known.without(text));
    if (shown.includes('eyJ')) shown = shown.replace(TOKEN, MASKED);
    return shown.replace(AUTHORIZATION, `$1$2${MASKED}`);
  }
}

function wordsOf(method: CriMethod, request: unknown): readonly string[] {
  switch (method) {
    case 'CreateContainer': {
      const { config, sandboxConfig } = request as CriRequest<'CreateContainer'>;
      // The pod may be told its own name: that is in every text about it.
      const { name, namespace, uid } = sandboxConfig?.metadata ?? {};
      const isSecret = (word: unknown): word is string => isText(word) && word !== name && word !== namespace && word !== uid;
      return [...(config.command ?? []), ...(config.args ?? []), ...(config.envs ?? []).map(({ value }) => value)].filter(isSecret);
    }
    case 'ExecSync':
    case 'Exec':
      return (request as CriRequest<'ExecSync'>).cmd;
    case 'PullImage':
      return Object.values((request as CriRequest<'PullImage'>).auth ?? {}).filter(isText);
    default:
      return [];
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
