/** Golden files: what was decided for each named case, as JSON beside the test. `UPDATE_GOLDEN=1` rewrites them; format after. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

function path(name: string): string {
  return fileURLToPath(new URL(`./${name}.json`, import.meta.url));
}

export const updating = process.env.UPDATE_GOLDEN === '1';

export function readGolden(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path(name), 'utf8')) as Record<string, unknown>;
}

export function writeGolden(name: string, content: Record<string, unknown>): void {
  writeFileSync(path(name), `${JSON.stringify(content, null, 2)}\n`);
}

/** As it would be read back. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
