/** Secrets to plant in a node, and the ways in which programs write them. */
import { seeded } from '../../src/border.ts';

export interface Planted {
  readonly bytes: Uint8Array;
  /** As UTF-8; null: they are none. */
  readonly text: string | null;
  readonly kind: string;
}

const SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 40, 100, 333, 1_024, 4_096];
const encoder = new TextEncoder();

function lettersOf(alphabet: readonly string[]) {
  return (size: number, random: () => number): Uint8Array => {
    let text = '';
    for (let left = size; left > 0; ) {
      const fitting = alphabet.filter((c) => encoder.encode(c).length <= left);
      const letter = fitting[Math.floor(random() * fitting.length)] ?? 'x';
      text += letter;
      left -= encoder.encode(letter).length;
    }
    return encoder.encode(text);
  };
}

const ASCII = [...'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!?.,:;/\\|@#%^&*()[]{}<>=+-_~'];
const KINDS: Readonly<Record<string, (size: number, random: () => number) => Uint8Array>> = {
  ascii: lettersOf(ASCII),
  utf8: lettersOf([...'äößéñДжщ密码学パス🔑🗝x7Q']),
  quotes: lettersOf([...`"'\`\\"abcXYZ789`]),
  lines: lettersOf([...'\n\r\tabcXYZ789 =']),
  base64(size, random) {
    const inner = lettersOf(ASCII)(size, random);
    const twice = btoa(btoa(String.fromCharCode(...inner)));
    return encoder.encode(twice.slice(0, Math.max(4, size - (size % 4))));
  },
  binary: (size, random) =>
    Uint8Array.from({ length: size }, (_, i) => (i % 3 === 0 ? 128 + Math.floor(random() * 128) : Math.floor(random() * 256))),
};

/** The same each time. */
export function planted(): Planted[] {
  const random = seeded(52);
  return SIZES.flatMap((size) =>
    Object.entries(KINDS).map(([kind, make]) => {
      const bytes = make(size, random);
      return { bytes, text: textOf(bytes), kind };
    }),
  );
}

function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Shorter ones are in any file by chance: they are looked for at their place alone. */
const ANYWHERE_MIN = 6;

/** In which of these ways it is in a file; none is as it should be. */
export function foundIn(file: string, { bytes, text }: Planted): string[] {
  return Object.entries(writings(bytes, text)).flatMap(([way, written]) =>
    written.length >= ANYWHERE_MIN && bytes.length >= 4 && file.includes(written) ? [way] : [],
  );
}

function writings(bytes: Uint8Array, text: string | null): Record<string, string> {
  const buffer = Buffer.from(bytes);
  const encoded = {
    base64: buffer.toString('base64').replace(/=+$/, ''),
    base64url: buffer.toString('base64url'),
    base64twice: btoa(buffer.toString('base64')).replace(/=+$/, ''),
    hex: buffer.toString('hex'),
    HEX: buffer.toString('hex').toUpperCase(),
    latin1: buffer.toString('latin1'),
  };
  if (text === null) return encoded;
  const json = JSON.stringify(text).slice(1, -1);
  return {
    ...encoded,
    plain: text,
    json,
    jsonTwice: JSON.stringify(json).slice(1, -1),
    go: json.replace(/\\u00([0-9a-f]{2})/g, '\\x$1'),
    url: encodeURIComponent(text),
    form: encodeURIComponent(text).replaceAll('%20', '+'),
  };
}
