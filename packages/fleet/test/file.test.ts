/** The fleet file: what it means, and what is said of one that is wrong. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decodeFleet } from '../src/file.ts';

const HEAD = 'apiVersion: actorlet.dev/v1alpha1\nkind: Fleet\nmetadata: { name: demo }\n';
const wrong = (spec: string): string[] => {
  const read = decodeFleet(`${HEAD}spec:\n${spec}`);
  return read.ok ? [] : read.errors.map((e) => `${e.line} ${e.field}: ${e.message}`);
};

describe('a fleet file', () => {
  it('is groups of nodes, steps in the order of their times, and expectations', () => {
    const read = decodeFleet(`${HEAD}spec:
  seed: 5
  groups:
    - name: a
      count: 2
      nodeName: zone-a-{index}
      labels: { zone: a }
      taints: ['gpu=yes:NoSchedule', 'quiet:PreferNoSchedule']
      capacity: { cpu: 4, memory: 8Gi, pods: 20 }
      runtime: { sandbox: 200ms, pull: { from: 1s, to: 5s } }
    - { name: b, count: 3 }
  steps:
    - { at: 2m, do: restart }
    - { at: 30s, do: inject, scenario: slow.yaml, nodes: { groups: [b], share: 0.1 } }
  expect:
    - { nodesReady: 5, within: 60s }
`);
    expect(read).toEqual({
      ok: true,
      value: {
        name: 'demo',
        seed: 5,
        groups: [
          {
            name: 'a',
            count: 2,
            nodeName: 'zone-a-{index}',
            labels: { zone: 'a' },
            taints: [
              { key: 'gpu', value: 'yes', effect: 'NoSchedule' },
              { key: 'quiet', value: '', effect: 'PreferNoSchedule' },
            ],
            cpus: 4,
            memoryBytes: 8 * 2 ** 30,
            pods: 20,
            storageBytes: null,
            hugePages: {},
            extended: {},
            reserved: { cpuMilli: 0, memoryBytes: 0, storageBytes: 0 },
            nodes: [],
            unschedulable: false,
            providerID: '',
            machine: {},
            clock: null,
            devices: [],
            version: '',
            runtimeHandlers: [],
            delays: { sandbox: { fromMs: 200, toMs: 200 }, pull: { fromMs: 1_000, toMs: 5_000 }, start: { fromMs: 0, toMs: 0 } },
            bytesPerSecond: null,
          },
          expect.objectContaining({ name: 'b', count: 3, nodeName: 'b-{index}', cpus: 8, pods: 110 }),
        ],
        steps: [
          { atMs: 30_000, nodes: { share: 0.1, groups: ['b'] }, do: 'inject', scenario: 'slow.yaml' },
          { atMs: 120_000, nodes: { share: 1 }, do: 'restart' },
        ],
        expect: [
          { name: 'at least 5 nodes Ready', measure: { what: 'nodesReady' }, atLeast: 5, afterMs: 0, withinMs: 60_000, holds: 'once' },
        ],
        ...{ adopt: [], storage: [], images: [], pods: [], stages: [], heartbeatMs: null, trouble: null },
      },
    });
  });

  it('is what the examples are', () => {
    const dir = join(import.meta.dirname, '..', '..', '..', 'examples', 'fleet');
    const files = readdirSync(dir).filter((name) => name.endsWith('.yaml'));
    const wrong = files.filter((name) => !decodeFleet(readFileSync(join(dir, name), 'utf8')).ok);
    expect(wrong).toEqual([]);
  });

  it.each([
    ['  seed: 1\n', ['5 spec.groups: is missing; a fleet needs a group of nodes']],
    [
      '  groups:\n    - { name: A, count: 1 }\n',
      ['6 spec.groups[0].name: must be lower-case letters, digits, "-" and ".", at most 63 characters'],
    ],
    ['  groups:\n    - { name: a, count: 0 }\n', ['6 spec.groups[0].count: is 0, and nothing adopts or adds nodes: there would be none']],
    [
      '  groups:\n    - { name: a, count: 1, nodeName: same }\n',
      ['6 spec.groups[0].nodeName: must contain {index}, which counts the nodes of the group'],
    ],
    [
      '  groups:\n    - { name: a, count: 19999 }\n    - { name: a, count: 2 }\n',
      [
        '6 spec.groups[0].count: the groups have 20001 nodes together, at most 20000 are allowed',
        '7 spec.groups[1].name: is the same as that of groups[0]',
        '7 spec.groups[1].nodeName: is the same as that of groups[0]',
      ],
    ],
    [
      '  groups:\n    - name: a\n      count: 1\n      labels: { "bad key!": v, zone: "v v", ok: "" }\n      taints: ["no key=v:NoExecute"]\n',
      [
        `8 spec.groups[0].labels.bad key!: "bad key!" must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`,
        `8 spec.groups[0].labels.zone: "v v" must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`,
        `9 spec.groups[0].taints: "no key=v:NoExecute": "no key" must be letters, digits, '-', '_' and '.', beginning and ending with a letter or digit`,
      ],
    ],
    [
      '  groups:\n    - { name: a, count: 1, taints: [gpu] }\n',
      ['6 spec.groups[0].taints: "gpu" must be KEY=VALUE:EFFECT, the effect one of NoSchedule, PreferNoSchedule, NoExecute'],
    ],
    [
      '  groups:\n    - { name: a, count: 1, runtime: { pull: { from: 5s, to: 1s } } }\n',
      ['6 spec.groups[0].runtime.pull.to: must not be less than from'],
    ],
    ['  groups:\n    - { name: a, count: 1, runtime: { pull: { p50: 5s } } }\n', ['6 spec.groups[0].runtime.pull.p99: is missing']],
    [
      '  groups:\n    - { name: a, count: 1 }\n  steps:\n    - { at: 1s, do: inject, nodes: { groups: [c] } }\n',
      [
        '8 spec.steps[0].nodes.groups[0]: must be one of a; is "c" (did you mean a?)',
        '8 spec.steps[0].scenario: is missing; inject needs the file of a fault scenario, clock, volumes, or api',
      ],
    ],
    [
      '  groups:\n    - { name: a, count: 1 }\n  expect:\n    - { within: 1s }\n',
      ['8 spec.expect[0]: needs one of nodesReady, podsReady, seconds, calls, leftBehind, objects, events, requests'],
    ],
    [
      '  groups:\n    - { name: a, count: 1 }\n  expect:\n    - { seconds: podReady, atMost: 3 }\n',
      ['7 spec.expect: does not say how long the run lasts; add `within` to an expectation, or add a step'],
    ],
  ])('that is wrong is told by line and field: %s', (spec, errors) => {
    expect(wrong(spec)).toEqual(errors);
  });

  it.each([
    [
      "calls: 'FOO bar'",
      [
        'calls: the verb must be one of GET, POST, PUT, PATCH, DELETE, WATCH, *; is FOO',
        'calls: no node asks for bar; known: pods, pods/status,',
      ],
    ],
    ["calls: 'WACH pods'", ['calls: the verb must be one of GET, POST, PUT, PATCH, DELETE, WATCH, *; is WACH (did you mean WATCH?)']],
    ['calls: PATCH', ['calls: must be VERB RESOURCE, such as PATCH pods/status or * leases; is "PATCH"']],
    ["calls: 'PATCH pod/status'", ['calls: no node asks for pod/status (did you mean pods/status?)']],
    ['calls: GET pods, atLeast: 5', ['atMost: must not be less than the lower bound']],
    ['podsReady: 4, within: 1s', ['atMost: must not be less than the lower bound']],
    ['podsReady: 0, atLeast: 1, within: 1s', ['atLeast: stands beside podsReady, which says at least how many']],
  ])('says of an expectation what is wrong with it: %s', (expected, errors) => {
    const before = '  groups:\n    - { name: a, count: 1 }\n  expect:\n    - { nodesReady: 1, within: 1s }\n';
    expect(wrong(`${before}    - { ${expected}, atMost: 3 }\n`)).toEqual(
      errors.map((error) => expect.stringContaining(`9 spec.expect[1].${error}`)),
    );
  });
});
