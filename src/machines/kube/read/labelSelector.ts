/** kubectl's label selectors. Pure. */

type Labels = Readonly<Record<string, string>>;
export type Selector = (labels: Labels) => boolean;

const KEY = '[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?';
const VALUE = '([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?';
const EQUALITY = new RegExp(`^(?<key>${KEY})\\s*(?<not>!)?==?\\s*(?<value>${VALUE})$`);
const SET = new RegExp(`^(?<key>${KEY})\\s+(?<not>not)?in\\s*\\((?<values>[^()]*)\\)$`);
const EXISTS = new RegExp(`^(?<not>!)?\\s*(?<key>${KEY})$`);

/** `app=web,tier!=db,canary,!old,zone in (a,b)`: all of it must hold. '' fits everything. A part that is none: that part. */
export function parseLabelSelector(text: string): Selector | string {
  if (text.trim() === '') return () => true;
  const fits: Selector[] = [];
  for (const part of partsOf(text)) {
    const one = requirement(part.trim());
    if (one === undefined) return part.trim();
    fits.push(one);
  }
  return (labels) => fits.every((of) => of(labels));
}

/** Between commas outside of parentheses. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '(') inside = true;
    else if (char === ')') inside = false;
    else if (char === ',' && !inside) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(text.slice(from));
  return parts;
}

function requirement(part: string): Selector | undefined {
  const equality = EQUALITY.exec(part)?.groups;
  if (equality !== undefined) {
    const { key = '', value = '', not } = equality;
    return (labels) => (labels[key] === value) === (not === undefined);
  }
  const set = SET.exec(part)?.groups;
  if (set !== undefined) {
    const { key = '', values = '', not } = set;
    const named = new Set(values.split(',').map((v) => v.trim()));
    return (labels) => (Object.hasOwn(labels, key) && named.has(labels[key] ?? '')) === (not === undefined);
  }
  const exists = EXISTS.exec(part)?.groups;
  if (exists !== undefined) {
    const { key = '', not } = exists;
    return (labels) => Object.hasOwn(labels, key) === (not === undefined);
  }
  return undefined;
}
