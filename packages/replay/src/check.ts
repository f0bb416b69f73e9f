/** Lines of a recording as somebody may have changed them: checked before anything is made of them. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { type Entry, FORMAT, FORMAT_BEFORE, type Header } from './entries.ts';

type Kind = 'number' | 'finite' | 'string' | 'any' | 'now' | 'numbers';
/** What follows the code; `numbers` may be missing. */
const SHAPES: Readonly<Record<string, readonly Kind[]>> = {
  settled: ['number', 'number', 'any'],
  failed: ['number', 'number', 'any'],
  called: ['number', 'number', 'any'],
  timer: ['number', 'number'],
  turn: ['number', 'number'],
  aborted: ['number', 'number'],
  told: ['number', 'string'],
  asked: ['number', 'string', 'string', 'any', 'any'],
  sent: ['number', 'string', 'any'],
  killed: ['number', 'string'],
  tapped: ['number', 'any'],
  untapped: ['number'],
  ask: ['string', 'string', 'now', 'string', 'numbers'],
  inside: ['number', 'any'],
  answer: ['number', 'string', 'numbers'],
  set: ['finite'],
  step: ['string', 'string', 'string', 'string', 'string'],
  shown: ['string', 'string', 'string', 'numbers'],
  clock: ['number', 'number'],
  wall: ['number'],
  end: ['string'],
  by: ['string', 'string'],
  said: ['string', 'any'],
  open: [],
};

/** Of any entry but a body. Null: this is no line of a recording. */
function entryOf(value: unknown): Entry | null {
  if (!Array.isArray(value)) return null;
  const [code, ...rest] = value as unknown[];
  const shape = typeof code === 'string' && Object.hasOwn(SHAPES, code) ? SHAPES[code] : undefined;
  if (shape === undefined) return null;
  const least = shape.at(-1) === 'numbers' ? shape.length - 1 : shape.length;
  if (rest.length !== shape.length && rest.length !== least) return null;
  return rest.every((one, i) => fits(one, shape[i] ?? 'any')) ? (value as unknown as Entry) : null;
}

function fits(value: unknown, kind: Kind): boolean {
  if (kind === 'any') return true;
  if (kind === 'number') return typeof value === 'number' && Number.isSafeInteger(value);
  if (kind === 'finite') return typeof value === 'number';
  if (kind === 'string') return typeof value === 'string';
  if (kind === 'numbers') return Array.isArray(value) && value.every((one) => fits(one, 'number'));
  if (typeof value === 'string') return value === 'nothing' || value === 'later' || value === 'same';
  return isRecord(value) && (Object.hasOwn(value, 'value') || Object.hasOwn(value, 'thrown'));
}

const BODY = '["body",';

/** Bodies stay text: most are used later, or never. Null: this is no line of a recording. @throws SyntaxError where it is no JSON. */
export function entryOfLine(line: string): Entry | null {
  if (line.startsWith(BODY)) return ['body', line.slice(BODY.length, -1)];
  return entryOf(JSON.parse(line));
}

export function lineOf(entry: Entry): string {
  return entry[0] === 'body' ? `${BODY}${entry[1]}]` : JSON.stringify(entry);
}

/** What is wrong with the first line, in words; null: it is a header that this program reads. */
export function headerProblem(value: unknown): string | null {
  if (!isRecord(value) || typeof value.format !== 'number') return 'it is no recording of inputs';
  if (value.format !== FORMAT && value.format !== FORMAT_BEFORE)
    return `it has format ${value.format}, and this program reads the formats ${FORMAT_BEFORE} and ${FORMAT}`;
  const { actorlet, node, monoMs, wallMs, seed, config, ports, digests } = value as Partial<Record<keyof Header, unknown>>;
  const numbers = [monoMs, wallMs, seed].every((n) => typeof n === 'number' && Number.isFinite(n));
  if (!numbers || typeof actorlet !== 'string' || typeof node !== 'string') return 'its first line is damaged';
  if (digests !== undefined && !(isRecord(digests) && Object.values(digests).every((one) => typeof one === 'string')))
    return 'its first line is damaged: digests';
  if (!isRecord(ports) || !isRecord(config) || !isRecord(config.flags) || !isRecord(config.config) || !Array.isArray(config.gates))
    return 'its first line is damaged: ports or configuration are missing';
  return null;
}
