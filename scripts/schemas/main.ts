/** Writes the JSON Schema files of `schemas/` from the tables in `src/machines`: `npm run schemas`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { schemaFiles } from './files.ts';

const folder = join(import.meta.dirname, '../../schemas');
mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(schemaFiles())) {
  writeFileSync(join(folder, name), text);
  console.log(`schemas/${name}: ${text.length} bytes`);
}
