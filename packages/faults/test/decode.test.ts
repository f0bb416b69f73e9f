/** A scenario file: what it says, and what is said of one that is wrong, with line and field. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeScenario } from '../src/describe.ts';
import { FAULT_KIND_NAMES, FAULT_KINDS } from '../src/kinds.ts';
import { decodeScenario, SCENARIO_BYTES_MAX, type ScenarioTarget, scenarioErrorText } from '../src/read/decode.ts';
import type { ScenarioFault } from '../src/types.ts';
import { HEAD, NEEDED, REFUSED } from './refused.ts';

const root = join(import.meta.dirname, '../../..');

/** The table of kinds, in Markdown: what docs show. */
function kindsTable(): string[] {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const code = (words: readonly string[]) => words.map((w) => `\`${w}\``).join(', ');
  return [
    row(['kind', 'what', 'actions', 'fields', 'select', 'where']),
    row(['---', '---', '---', '---', '---', '---']),
    ...FAULT_KIND_NAMES.map((kind) => {
      const f = FAULT_KINDS[kind];
      return row([
        `\`${kind}\`${f.lasts ? '' : ' (instant)'}`,
        f.what,
        code(f.actions ?? []),
        code(Object.keys(f.fields)),
        code(f.select),
        f.where === 'both' ? 'both' : `simulation: ${f.whyNot ?? ''}`,
      ]);
    }),
  ];
}
function faults(text: string, target: ScenarioTarget = 'simulation'): readonly ScenarioFault[] {
  const decoded = decodeScenario(`${HEAD}  faults:\n${text}`, target);
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => scenarioErrorText('f', e)).join('\n'));
  return decoded.scenario.faults;
}
/** `line field: message`, with lines counted from the first below `faults:`. */
function complaints(text: string, target: ScenarioTarget = 'simulation'): string[] {
  return errorsOf(`${HEAD}  faults:\n${text}`, target).map(
    ({ line, field, message }) => `${line - 6} ${field.replace('spec.faults', '')}: ${message}`,
  );
}
function errorsOf(text: string, target: ScenarioTarget = 'simulation') {
  const decoded = decodeScenario(text, target);
  return decoded.ok ? [] : decoded.errors;
}

describe('a good scenario', () => {
  it('is read with its defaults', () => {
    expect(faults('  - {kind: runtime.down}\n')).toEqual([
      { kind: 'runtime.down', name: 'fault-1', line: 7, nodes: [], probability: 1, select: {}, atMs: 0, steps: 0 },
    ]);
  });

  it('is read with everything that it can say', () => {
    const [f, g] = faults(
      [
        '  - name: slow',
        '    kind: cri',
        '    action: delay',
        '    delay: 1m30s',
        '    select: {methods: [StartContainer], namespaces: kube-*, pods: [web-*], containers: c}',
        '    nodes: n1',
        '    probability: 0.25',
        '    times: 3',
        '    at: 10s',
        '    for: 500ms',
        '    every: 2s',
        '    count: 4',
        '    steps: 7',
        '  - {kind: actor.kill, select: {actors: pods/workers/*}, after: slow, pick: all}',
      ].join('\n'),
    );
    expect(f).toEqual({
      name: 'slow',
      line: 7,
      kind: 'cri',
      action: 'delay',
      delayMs: 90_000,
      code: 2,
      select: { methods: ['StartContainer'], namespaces: ['kube-*'], pods: ['web-*'], containers: ['c'] },
      nodes: ['n1'],
      probability: 0.25,
      times: 3,
      atMs: 10_000,
      forMs: 500,
      everyMs: 2_000,
      count: 4,
      steps: 7,
    });
    expect(g).toMatchObject({ select: { actors: ['node/pods/workers/*'] }, after: 'slow', pick: 'all' });
  });

  it('takes a gRPC code by name and by number', () => {
    const codes = faults(
      '  - {kind: cri, action: error, code: NotFound}\n  - {kind: cri, action: error, code: 8}\n  - {kind: cri, action: error}\n',
    );
    expect(codes.map((f) => (f.kind === 'cri' ? f.code : null))).toEqual([5, 8, 14]);
  });

  it('takes every kind there is, with each of its actions', () => {
    for (const kind of FAULT_KIND_NAMES) {
      for (const action of FAULT_KINDS[kind].actions ?? [undefined]) {
        const text = `  - {kind: ${kind}${action === undefined ? '' : `, action: ${action}`}${NEEDED[kind] ?? ''}}\n`;
        expect(faults(text)[0], text).toMatchObject({ kind, ...(action === undefined ? {} : { action }) });
      }
    }
  });

  it('is told in words, one line a fault', () => {
    const decoded = decodeScenario(
      `${HEAD}  faults:\n  - {name: a, kind: cri, action: error, code: NotFound, select: {methods: Status, pods: w-*}, probability: 0.5, at: 5s, for: 1s}\n`,
      'live',
    );
    expect(decoded.ok && describeScenario(decoded.scenario)).toEqual([
      'a: at 5s for 1s: cri error NotFound of Status; pods w-*; with probability 0.5',
    ]);
  });

  it('may hold pods of its own for the simulation, which a daemon does not mind', () => {
    const text = `${HEAD}  duration: 1m\n  simulation:\n    nodes: 2\n    workload:\n    - at: 1s\n      kind: pod.put\n      fate: ends\n      manifest: {metadata: {name: w}, spec: {containers: [{name: c, image: i}]}}\n    - {at: 2s, kind: pod.remove, name: w}\n`;
    for (const target of ['live', 'simulation'] as const) {
      const decoded = decodeScenario(text, target);
      expect(decoded.ok && decoded.scenario).toMatchObject({
        durationMs: 60_000,
        faults: [],
        simulation: {
          nodes: 2,
          workload: [
            { atMs: 1_000, kind: 'pod.put', name: 'w', fate: 'ends', source: 'file', manifest: { metadata: { name: 'w' } } },
            { atMs: 2_000, kind: 'pod.remove', name: 'w' },
          ],
        },
      });
    }
  });
});

describe('what only the simulation can do', () => {
  const only = FAULT_KIND_NAMES.filter((k) => FAULT_KINDS[k].where === 'simulation');

  it('is refused by a running daemon, with the reason', () => {
    expect(only).toEqual([
      'iptables',
      'iptables.flush',
      'sysctl',
      'clock.jump',
      'node.kill',
      'node.stop',
      'container.exit',
      'container.remove',
      'sandbox.stop',
    ]);
    for (const kind of only) {
      const [found, ...rest] = complaints(`  - {kind: ${kind}}\n`, 'live');
      expect(found).toBe(`1 [0].kind: ${kind} is only possible in the simulation: ${FAULT_KINDS[kind].whyNot}`);
      expect(rest).toEqual([]);
    }
    expect(complaints('  - {kind: disk.full, steps: 3}\n', 'live')).toEqual(['1 [0].steps: is only possible in the simulation']);
  });
});

describe('what is wrong is said with line, field and the nearest name', () => {
  for (const [what, text, expected] of REFUSED) it(what, () => expect(complaints(text)).toEqual(expected));

  it('the head', () => {
    const text = 'apiVersion: v1\nkind: Scenario\nmetadata:\n  name: Big Name\nspce: {}\n';
    expect(errorsOf(text).map((e) => scenarioErrorText('s.yaml', e))).toEqual([
      's.yaml:1: apiVersion: must be actorlet.dev/v1alpha1, is v1',
      's.yaml:1: spec: is missing',
      's.yaml:2: kind: must be FaultScenario, is Scenario',
      's.yaml:4: metadata.name: must be lower-case letters, digits, "-" and ".", at most 63 characters',
      's.yaml:5: spce: unknown field (did you mean spec?)',
    ]);
  });

  it('text that is no scenario at all', () => {
    const first = (text: string) => scenarioErrorText('f', errorsOf(text)[0] ?? { line: -1, field: '', message: 'taken' });
    expect(first('')).toMatch(/^f: is empty; it must begin with apiVersion/);
    expect(first('# only a comment\n')).toMatch(/^f: is empty/);
    expect(first('- a\n')).toBe('f:1: must be a mapping of kind FaultScenario');
    expect(first(`${HEAD}  faults: [\n`)).toMatch(/^f:\d+: is not valid YAML: /);
    expect(first('a: 1\na: 2\n')).toMatch(/^f:2: is not valid YAML: Map keys must be unique/);
    expect(first('x'.repeat(SCENARIO_BYTES_MAX + 1))).toBe(`f: is longer than ${SCENARIO_BYTES_MAX} bytes`);
    expect(errorsOf(`${HEAD}  faults: []\n---\na: 1\n`).map((e) => e.message)).toEqual([
      'holds more than one document; one file is one FaultScenario',
    ]);
    expect(errorsOf(HEAD).map((e) => `${e.field} ${e.message}`)).toEqual(['spec must be a mapping, is empty']);
  });

  it('pods that the simulation could not tell from broken ones', () => {
    const text = `${HEAD}  simulation:\n    pods: 3\n    workload:\n    - kind: pod.put\n      fate: dies\n      manifest: {metadata: {}, spec: {}}\n    - kind: pod.put\n      manifest: {metadata: {name: a}, spec: {containers: [{name: c}]}}\n    - kind: pod.remove\n`;
    expect(errorsOf(text).map((e) => `${e.line} ${e.field.replace('spec.simulation', '')}: ${e.message}`)).toEqual([
      '10 .workload[0].fate: must be one of steady, ends, loops; is "dies"',
      '11 .workload[0].manifest.metadata: must hold the name of the pod: metadata.name',
      '13 .workload[1].manifest.spec.containers[0].image: is missing',
      '14 .workload[2].name: is missing: which pod',
    ]);
  });

  it('never throws, whatever the text', () => {
    const good = readFileSync(join(root, 'examples/scenarios/full-disk.yaml'), 'utf8');
    for (let cut = 0; cut < good.length; cut += 7) {
      for (const text of [good.slice(0, cut), good.slice(cut), good.slice(0, cut) + good.slice(cut + 5)]) {
        expect(() => decodeScenario(text, 'simulation'), text).not.toThrow();
      }
    }
  });
});

describe('what is documented', () => {
  it('is the table of kinds as it is', () => {
    const docs = readFileSync(join(root, 'docs/simulation.md'), 'utf8');
    expect(docs.split('\n')).toEqual(expect.arrayContaining(kindsTable()));
  });

  it('is in the examples, and each example is documented', () => {
    const docs = readFileSync(join(root, 'docs/simulation.md'), 'utf8');
    const files = readdirSync(join(root, 'examples/scenarios')).filter((f) => f.endsWith('.yaml'));
    expect(files.length).toBeGreaterThanOrEqual(3);
    for (const file of files) {
      const decoded = decodeScenario(readFileSync(join(root, 'examples/scenarios', file), 'utf8'), 'simulation');
      expect(decoded, file).toMatchObject({ ok: true });
      expect(docs).toContain(`examples/scenarios/${file}`);
    }
  });
});
