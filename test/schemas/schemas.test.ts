/**
 * The JSON Schema files for editors: as the tables say, and of the same opinion as the daemon. A schema may accept what
 * the daemon refuses (rules about several values); it refuses nothing that the daemon takes.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { schemaFiles } from '../../scripts/schemas/files.ts';
import { decodeConfigFile } from '../../src/boot/config/decode.ts';
import { applyDefaults } from '../../src/boot/config/merge.ts';
import { validate as problemsOf } from '../../src/boot/config/validate.ts';
import { defaultKubeletConfiguration, defaultKubeletFlags } from '../../src/machines/config/defaults.ts';
import { createFeatureGates } from '../../src/machines/config/gates.ts';
import { toV1beta1 } from '../../src/machines/config/v1beta1.ts';
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

  it('are named by the examples, and accept them', () => {
    const all = examples().filter(({ doc }) => (doc as { kind?: unknown }).kind !== 'Pod');
    expect(all.length).toBeGreaterThan(6);
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

describe('kubelet-configuration.json', () => {
  const validate = validator('kubelet-configuration.json');
  const takes = (doc: unknown): boolean => {
    const { values, errors, warnings } = decodeConfigFile('/config.yaml', stringify(doc, { version: '1.1' }));
    if (errors.length > 0 || warnings.length > 0) return false;
    const config = applyDefaults(values);
    const { gates, errors: badGates } = createFeatureGates(config.featureGates);
    const problems = problemsOf({ flags: defaultKubeletFlags(), config, gates, origins: new Map(), given: new Map() });
    return badGates.length === 0 && problems.length === 0;
  };

  it('refuses what the daemon warns of or refuses', () => {
    for (const [what, text] of Object.entries({
      'an unknown field': 'maxPod: 3',
      'an unknown field of an object': 'logging: {formt: json}',
      'a wrong type': 'maxPods: many',
      'a number for a duration': 'syncFrequency: 60',
      'an unknown word': 'cgroupDriver: systmd',
      'an unknown signal': 'evictionHard: {memory.avail: 1Gi}',
      'an unknown gate': 'featureGates: {NoSuchGate: true}',
      'a locked gate': 'featureGates: {CPUManagerPolicyOptions: false}',
      'a port out of range': 'port: 70000',
      'another version': 'apiVersion: v1',
    })) {
      const doc: unknown = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...(parse(text) as object) };
      expect(takes(doc), what).toBe(false);
      expect(complaintsOf(validate, doc), what).not.toEqual([]);
    }
  });

  it('accepts all defaults, as /configz shows them', () => {
    const doc = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...toV1beta1(defaultKubeletConfiguration()) };
    expect(complaintsOf(validate, doc)).toEqual([]);
  });

  it('refuses nothing that the daemon takes', () => {
    const all = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...toV1beta1(defaultKubeletConfiguration()) };
    const docs = examples().filter((e) => e.schema === 'kubelet-configuration.json');
    let taken = 0;
    for (const { file, doc } of [...docs, { file: 'all defaults', doc: all }]) {
      for (const variant of variants(doc)) {
        if (!takes(variant)) continue;
        taken += 1;
        expect(complaintsOf(validate, variant), `${file}\n${JSON.stringify(variant)}`).toEqual([]);
      }
    }
    expect(taken).toBeGreaterThan(300);
  });
});
