/**
 * Stand-ins for what containers say at their end. The tree joins, cuts and compares these texts, and meets the result again in the
 * pod's status. So a text gets its stand-in part by part, and one that is a part of another gets that part of the other's.
 */

/** Between colons and ends of lines, without the white space around it. */
const PART = /[^\s:](?:[^\n:]*[^\s:])?/g;
/** The tree joins two messages with it (`machines/pod/runtime/terminationMessage.ts`). */
const JOINT = ': ';
/** Joints of a message that are looked at. */
const JOINTS_MAX = 16;
/** What is cut is longer: the messages of a pod have 12 KiB together. */
const CUT_CHARS_MIN = 64;
/** Texts that are remembered: those of some hundred containers. */
const TEXTS_MAX = 300;
const PARTS_MAX = 20_000;
/** The time, the stream and whether it is whole. */
const LOG_HEAD = /^\S+ (?:stdout|stderr) (\S+) /;

interface LastWordsOptions {
  /** Of as many characters and bytes; not one that is taken. */
  standIn(part: string, isTaken: (made: string) => boolean): string;
  /** Hears of each line: what is said of it elsewhere is found there by it. */
  learn(line: string, made: string): void;
}

export class LastWords {
  readonly #o: LastWordsOptions;
  readonly #texts = new Map<string, string>();
  readonly #parts = new Map<string, string>();
  readonly #taken = new Set<string>();

  constructor(o: LastWordsOptions) {
    this.#o = o;
  }

  of(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const made = this.#withOthers(
      text,
      text.replace(PART, (part) => this.#part(part)),
    );
    if (this.#texts.size >= TEXTS_MAX) this.#texts.delete(this.#texts.keys().next().value ?? '');
    this.#texts.set(text, made);
    const likes = made.split('\n');
    for (const [i, line] of text.split('\n').entries()) if (line !== '') this.#o.learn(line, likes[i] ?? line);
    return made;
  }

  /** Of a log as the runtime writes it: what stands before each line stays, and pieces of one line are one text. */
  ofLog(text: string): string {
    const lines = text.split('\n').map((line) => {
      const [head = '', tag = ''] = LOG_HEAD.exec(line) ?? [];
      return { head, content: line.slice(head.length), isPiece: tag.startsWith('P') };
    });
    const plain = lines.map(({ head, content, isPiece }) => (isPiece || head + content === '' ? content : `${content}\n`)).join('');
    const made = this.of(plain);
    let at = 0;
    const like = ({ head, content, isPiece }: (typeof lines)[number]): string => {
      const from = at;
      at += content.length + (isPiece || head + content === '' ? 0 : 1);
      return head + made.slice(from, from + content.length);
    };
    return lines.map(like).join('\n');
  }

  #part(part: string): string {
    const known = this.#parts.get(part);
    if (known !== undefined) return known;
    const made = this.#o.standIn(part, (one) => this.#taken.has(one));
    if (this.#parts.size >= PARTS_MAX) {
      this.#parts.clear();
      this.#taken.clear();
    }
    this.#parts.set(part, made);
    this.#taken.add(made);
    return made;
  }

  /** Where one of both is cut off another, or joined from others, the last one that was seen says how. */
  #withOthers(text: string, made: string): string {
    if (text.length < CUT_CHARS_MIN) return made;
    for (const [other, otherMade] of [...this.#texts].reverse()) {
      const same = other.length < CUT_CHARS_MIN ? null : sameIn(text, other);
      if (same === null) continue;
      const { from, at, length } = same;
      return made.slice(0, from) + otherMade.slice(at, at + length) + made.slice(from + length);
    }
    return made;
  }
}

/** The longest that both have: all of one, or all from a joint on. Null: there is none. */
function sameIn(text: string, other: string): { from: number; at: number; length: number } | null {
  let found: { from: number; at: number; length: number } | null = null;
  const better = (length: number): boolean => length > (found?.length ?? 0);
  for (const from of joined(text)) {
    const at = better(text.length - from) ? other.indexOf(text.slice(from)) : -1;
    if (at >= 0) found = { from, at, length: text.length - from };
  }
  for (const at of joined(other)) {
    const from = better(other.length - at) ? text.indexOf(other.slice(at)) : -1;
    if (from >= 0) found = { from, at, length: other.length - at };
  }
  return found;
}

/** Where what was joined may begin. */
function* joined(text: string): Generator<number> {
  yield 0;
  let at = text.indexOf(JOINT);
  for (let i = 0; i < JOINTS_MAX && at >= 0 && text.length - at - JOINT.length >= CUT_CHARS_MIN; i++) {
    yield at + JOINT.length;
    at = text.indexOf(JOINT, at + 1);
  }
}
