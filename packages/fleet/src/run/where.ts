/** A condition on an object, in CEL, as in admission policies of Kubernetes. */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { Environment } from '@marcbachmann/cel-js';

const CEL = new Environment({ enableOptionalTypes: true }).registerVariable('object', 'dyn');

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
    const expression = CEL.parse(text);
    const { valid, type, error } = expression.check();
    if (!valid) throw error ?? new Error('is no expression');
    if (type !== 'bool' && type !== 'dyn') throw new Error(`gives ${type}, and must be true or false`);
    return expression;
  } catch (error) {
    // The lines below point into the text.
    throw new Error(messageOf(error).split('\n')[0] ?? '');
  }
}

/** CEL counts in integers where JSON knows numbers alone. */
function withIntegers(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(withIntegers);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, withIntegers(of)]));
}
