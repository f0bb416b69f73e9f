/** CDI spec files of drivers, as the OCI kind of the embedded runtime reads them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cdiEdits } from '../../src/oci/bundle/cdi.ts';

let root: string;
let dirs: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cdi-'));
  dirs = ['etc', 'run'].map((name) => join(root, name));
  for (const dir of dirs) mkdirSync(dir);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const put = (at: 0 | 1, name: string, spec: object | string) =>
  writeFileSync(join(dirs[at] ?? '', name), typeof spec === 'string' ? spec : JSON.stringify(spec));
const gpu = (containerEdits: object, more: object = {}) => ({
  cdiVersion: '0.6.0',
  kind: 'vendor.com/gpu',
  devices: [{ name: 'a', containerEdits }],
  ...more,
});

describe('CDI devices', () => {
  it('bring what the file and each device ask for, once', () => {
    const edits = { env: ['A=1'], additionalGids: [44], deviceNodes: [{ path: '/dev/gpu0', hostPath: '/dev/null', uid: 5 }] };
    const hooks = [{ hookName: 'createContainer', path: '/bin/true', args: ['true'], timeout: 3 }];
    const mounts = [{ hostPath: '/opt/lib', containerPath: '/lib/gpu', options: ['ro'] }];
    put(0, 'vendor.json', gpu(edits, { containerEdits: { env: ['ALL=1'], mounts, hooks } }));
    expect(cdiEdits(['vendor.com/gpu=a', 'vendor.com/gpu=a'], dirs)).toEqual({
      env: ['ALL=1', 'A=1'],
      devices: [{ path: '/dev/gpu0', hostPath: '/dev/null', uid: 5 }],
      mounts,
      hooks: { createContainer: [{ path: '/bin/true', args: ['true'], env: [], timeout: 3 }] },
      gids: [44],
    });
  });

  it('of the later folder count; YAML is read, and a file that is none brings nothing', () => {
    put(0, 'vendor.json', gpu({ env: ['FROM=etc'] }));
    put(1, 'vendor.yaml', 'kind: vendor.com/gpu\ndevices:\n- name: a\n  containerEdits:\n    env: [FROM=run]\n');
    put(1, 'broken.json', '{');
    put(1, 'list.json', '[1]');
    expect(cdiEdits(['vendor.com/gpu=a'], dirs).env).toEqual(['FROM=run']);
  });

  it.each([
    ['is not there', [], 'vendor.com/gpu=b', /^unresolvable CDI device vendor.com\/gpu=b: it is not in .*etc or .*run/],
    ['is in two files', [gpu({}), gpu({})], 'vendor.com/gpu=a', /CDI device vendor.com\/gpu=a is in .*1.json and in .*0.json/],
    [
      'has a hook of another kind',
      [gpu({ hooks: [{ hookName: 'later', path: '/x' }] })],
      'vendor.com/gpu=a',
      /hook later is not supported/,
    ],
    [
      'mounts a tmpfs',
      [gpu({ mounts: [{ hostPath: 'x', containerPath: '/x', type: 'tmpfs' }] })],
      'vendor.com/gpu=a',
      /mounts of type tmpfs/,
    ],
    ['wants RDT', [gpu({ intelRdt: {} })], 'vendor.com/gpu=a', /intelRdt is not supported/],
  ])('that %s is refused by name', (_, specs, name, why) => {
    for (const [i, spec] of specs.entries()) put(1, `${i}.json`, spec);
    expect(() => cdiEdits([name], dirs)).toThrow(why);
  });
});
