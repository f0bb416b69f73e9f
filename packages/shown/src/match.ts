/** Patterns of selectors. Pure. */
import { trimOf } from '@actorlet/kubelet/machines/text/trim.ts';

/** `*`: any text without a slash. `**`: any text. `?`: one character but a slash. Everything else is itself. */
export function globToRegExp(glob: string): RegExp {
  let out = '';
  for (let i = 0; i < glob.length; i++) {
    const c = glob.charAt(i);
    if (c === '*' && glob.charAt(i + 1) === '*') {
      out += '.*';
      i += 1;
    } else if (c === '*') out += '[^/]*';
    else if (c === '?') out += '[^/]';
    else out += c.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  }
  return new RegExp(`^${out}$`, 's');
}

/** An actor path as people write it, below `node` or with it: `pods/workers/*` is `node/pods/workers/*`. */
export function actorPattern(text: string): string {
  const trimmed = trimOf(text, '/');
  const path = trimmed === 'node' || trimmed.startsWith('node/') || trimmed.startsWith('**') ? trimmed : `node/${trimmed}`;
  return RENAMED.get(path) ?? path;
}
/** Actors of earlier versions, for scenarios that name them. */
const RENAMED: ReadonlyMap<string, string> = new Map([['node/pods/admission', 'node/pods/podManager']]);

/** Keeps compiled patterns; one per runner, since selectors are asked at every call and message. */
export interface Matcher {
  /** True when the list is absent or empty, or one of its patterns matches. An unknown value is matched by no pattern. */
  any(patterns: readonly string[] | undefined, value: string | undefined): boolean;
  /** As `any`, for lists of plain words. */
  one<T extends string>(words: readonly T[] | undefined, value: T): boolean;
}

export function createMatcher(): Matcher {
  const compiled = new Map<string, RegExp>();
  const matches = (pattern: string, value: string): boolean => {
    let re = compiled.get(pattern);
    if (re === undefined) {
      re = globToRegExp(pattern);
      compiled.set(pattern, re);
    }
    return re.test(value);
  };
  return {
    any(patterns, value) {
      if (patterns === undefined || patterns.length === 0) return true;
      return value !== undefined && patterns.some((p) => matches(p, value));
    },
    one: (words, value) => words === undefined || words.length === 0 || words.includes(value),
  };
}
