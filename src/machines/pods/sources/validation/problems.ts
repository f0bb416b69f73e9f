import { ErrorList, quoted } from '../../../text/errorList.ts';

/** The list in which validation collects what is wrong: `path: what`. Every violation counts, not just the first. */
export class Problems {
  readonly found = new ErrorList();

  add(path: string, what: string): void {
    this.found.add(`${path}: ${what}`);
  }
  /** Adds what a check of {@link file://./names.ts} gave. */
  check(path: string, wrong: string | null): void {
    if (wrong !== null) this.add(path, wrong);
  }
  required(path: string, value: string | undefined): void {
    if (value === undefined || value === '') this.add(path, 'required');
  }
  oneOf(path: string, value: string | undefined, allowed: readonly string[]): void {
    if (value !== undefined && !allowed.includes(value)) this.add(path, `${quoted(value)} must be one of ${allowed.join(', ')}`);
  }
  range(path: string, value: number | undefined, bounds: { min: number; max?: number }): void {
    if (value === undefined) return;
    const { min, max } = bounds;
    if (value >= min && (max === undefined || value <= max)) return;
    this.add(path, max === undefined ? `${value} must be at least ${min}` : `${value} must be between ${min} and ${max}`);
  }
  unique(path: string, value: string, seen: Set<string>): void {
    if (seen.has(value)) this.add(path, `duplicate value ${quoted(value)}`);
    seen.add(value);
  }
}
