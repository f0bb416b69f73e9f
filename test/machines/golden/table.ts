/** A table of named decisions whose outcomes are a golden file: a row is made once, and compared with what is written down. */
import { afterAll, describe, expect, it } from 'vitest';
import { plain, readGolden, updating, writeGolden } from './golden.ts';

/** `undefined` cannot be read back: it is written as null. */
const told = (value: unknown): unknown => plain(value === undefined ? null : value);

/** Rows of data, each with what is decided of it. */
export function deciding<T>(rows: Readonly<Record<string, T>>, decide: (row: T) => unknown): Record<string, () => unknown> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, () => decide(row)]));
}

/** @param file Name of the golden file, without its ending. */
export function goldenTable(title: string, file: string, rows: Readonly<Record<string, () => unknown>>): void {
  describe(title, () => {
    const golden = updating ? {} : readGolden(file);
    it.each(Object.entries(rows))('%s', async (name, decide) => {
      const result = told(await decide());
      if (updating) golden[name] = result;
      expect(result).toEqual(golden[name]);
    });
    it('has a row for each decision that is written down, and no other', () => {
      if (!updating) expect(Object.keys(golden).sort()).toEqual(Object.keys(rows).sort());
    });
    afterAll(() => {
      if (updating) writeGolden(file, golden);
    });
  });
}
