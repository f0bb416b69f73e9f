/** A condition on an object, in CEL, as in admission policies of Kubernetes. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { type ASTNode, Environment } from '@marcbachmann/cel-js';
import { RE2JS } from 're2js';

/** `matches` of CEL is that of RE2, which takes no longer than the text is long. The library has the one of JavaScript. */
const MATCHES = 're2Matches';
const CEL = new Environment({ enableOptionalTypes: true }).registerVariable('object', 'dyn');

const PATTERNS_MAX = 100;
const PATTERN_CHARS_MAX = 1_024;

/** Patterns of one condition. Objects may have patterns, too. */
class Patterns {
  readonly #compiled = new Map<string, RE2JS>();

  /** @throws Error where it is none, or longer than 1,024 characters. */
  of(pattern: string): RE2JS {
    const known = this.#compiled.get(pattern);
    if (known !== undefined) return known;
    if (pattern.length > PATTERN_CHARS_MAX) throw new Error(`matches: a pattern has at most ${PATTERN_CHARS_MAX} characters`);
    const made = RE2JS.compile(pattern);
    if (this.#compiled.size >= PATTERNS_MAX) this.#compiled.clear();
    this.#compiled.set(pattern, made);
    return made;
  }
}

export type Where = (object: object) => boolean;

/** What misses a field that the condition reads does not fit. @throws Error that says what is wrong with the text. */
export function where(text: string): Where {
  const holds = parsed(text);
  return (object) => {
    try {
      return holds({ object: withIntegers(object) }) === true;
    } catch {
      return false;
    }
  };
}

function parsed(text: string) {
  try {
    const patterns = new Patterns();
    const matches = (of: string, pattern: string): boolean => patterns.of(pattern).matcher(of).find();
    const expression = CEL.clone().registerFunction(`string.${MATCHES}(string): bool`, matches).parse(text);
    withLinearMatches(expression.ast, patterns);
    const { valid, type, error } = expression.check();
    if (!valid) throw error ?? new Error('is no expression');
    if (type !== 'bool' && type !== 'dyn') throw new Error(`gives ${type}, and must be true or false`);
    return expression;
  } catch (error) {
    // The lines below point into the text.
    throw new Error(messageOf(error).split('\n')[0]?.replaceAll(MATCHES, 'matches') ?? '');
  }
}

/** A pattern that is written out is looked at now. @throws Error where it is none. */
function withLinearMatches(node: ASTNode, patterns: Patterns): void {
  if (node.op === 'rcall' && node.args[0] === 'matches') {
    node.args[0] = MATCHES;
    const [pattern] = node.args[2];
    if (pattern?.op === 'value' && typeof pattern.args === 'string') patterns.of(pattern.args);
  }
  for (const child of [node.args].flat(3)) if (isNode(child)) withLinearMatches(child, patterns);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}

/** CEL counts in integers where JSON knows numbers alone. */
function withIntegers(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(withIntegers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, withIntegers(of)]));
}
