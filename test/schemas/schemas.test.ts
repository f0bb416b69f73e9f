/**
 * The JSON Schema files for editors: as the tables say, and of the same opinion as the daemon. A schema may accept what
 * the daemon refuses (rules about several values); it refuses nothing that the daemon takes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { schemaFiles } from '../../scripts/schemas/files.ts';
import { decodeScenario } from '../../src/machines/faults/decode.ts';
import { FAULT_KIND_NAMES, FAULT_KINDS } from '../../src/machines/faults/kinds.ts';
import { BEYOND_SHAPE, HEAD, NEEDED, REFUSED } from '../faults/refused.ts';
import { complaintsOf, examples, root, validator, variants } from './rig.ts';

describe('the files', () => {
  it('are what the tables say: npm run schemas', () => {
    const files = schemaFiles();
    expect(readdirSync(join(root, 'schemas')).sort()).toEqual(Object.keys(files).sort());
    for (const [name, text] of Object.entries(files)) expect(readFileSync(join(root, 'schemas', name), 'utf8'), name).toBe(text);
  });

  it('are named by the examples of scenarios, and accept them', () => {
    const all = examples().filter(({ doc }) => (doc as { kind?: unknown }).kind === 'FaultScenario');
    expect(all.length).toBeGreaterThan(3);
    for (const { file, doc, schema } of all) {
      if (schema === undefined) throw new Error(`${file}: its first line names no schema`);
      expect(complaintsOf(validator(schema), doc), file).toEqual([]);
    }
  });
});

describe('scenario.json', () => {
  const validate = validator('scenario.json');
  const complaints = (text: string) => complaintsOf(validate, parse(`${HEAD}  faults:\n${text}`));

  it('accepts every kind of fault, with each of its actions', () => {
    for (const kind of FAULT_KIND_NAMES) {
      for (const action of FAULT_KINDS[kind].actions ?? [undefined]) {
        const text = `  - {kind: ${kind}${action === undefined ? '' : `, action: ${action}`}${NEEDED[kind] ?? ''}}\n`;
        expect(complaints(text), text).toEqual([]);
      }
    }
  });

  it('refuses what the daemon refuses', () => {
    for (const [what, text] of REFUSED) {
      if (BEYOND_SHAPE.includes(what)) continue;
      expect(complaints(text), what).not.toEqual([]);
    }
  });

  it('refuses nothing that the daemon takes', () => {
    for (const { file, doc } of examples().filter((e) => e.schema === 'scenario.json')) {
      for (const variant of variants(doc)) {
        if (!decodeScenario(stringify(variant), 'simulation').ok) continue;
        expect(complaintsOf(validate, variant), `${file}\n${JSON.stringify(variant)}`).toEqual([]);
      }
    }
  });
});
