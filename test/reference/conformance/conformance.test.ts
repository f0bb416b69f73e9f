/** What specs of Kubernetes come to over several slices: kept outcomes, second tries, the table. */
import { describe, expect, it } from 'vitest';
import { groupOf, inOrder } from '../../../bench/conformance/groups.ts';
import { focusOf, listed, markdownOf, merged, outcomesOf, tableOf, toRun, unlisted } from '../../../bench/conformance/outcomes.ts';

const spec = (text: string) => `[It] [sig-node] ${text} [NodeConformance] [sig-node, NodeConformance]`;
const [runs, flakes, fails, lacks, waits] = ['runs', 'flakes "at & <first>"', 'fails', 'lacks an image', 'waits'].map(spec) as [
  string,
  string,
  string,
  string,
  string,
];
const all = [runs, flakes, fails, lacks, waits];

/** As ginkgo writes it. */
function junit(cases: readonly [name: string, status: string, message?: string, more?: string][]): string {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&#34;');
  const tag = { failed: 'failure', skipped: 'skipped' } as Record<string, string>;
  return cases
    .map(([name, status, message = '', more = '']) => {
      const body = message === '' ? '' : `<${tag[status]} message="${escaped(message)}" type="x">${escaped(message)}</${tag[status]}>`;
      return `<testcase name="${escaped(name)}" classname="Kubernetes e2e suite" status="${status}" time="1">${body}<system-err>${more}</system-err></testcase>`;
    })
    .join('\n');
}
const noImage = (name: string) =>
  outcomesOf(junit([[name, 'failed', 'timed out', 'Failed to pull image &#34;x/perl:5&#34;']]), ['x/perl:5']);

describe('outcomes', () => {
  it('are those of specs that ran to their end', () => {
    const report = junit([
      [runs, 'passed'],
      [flakes, 'failed', 'expected 1\nto equal 2'],
      [fails, 'skipped', 'skipped - needs two nodes'],
      [lacks, 'skipped', 'skipped'],
      [spec('comes later'), 'skipped', 'skipped - Spec skipped because an earlier spec in an ordered container failed'],
      [waits, 'interrupted'],
      ['[BeforeSuite]', 'passed'],
    ]);
    expect(outcomesOf(report, [])).toEqual({
      [runs]: { result: 'passed', why: '', image: '', tries: 1 },
      [flakes]: { result: 'failed', why: 'expected 1', image: '', tries: 1 },
      [fails]: { result: 'skipped', why: 'skipped - needs two nodes', image: '', tries: 1 },
    });
    expect(noImage(lacks)[lacks]).toMatchObject({ result: 'failed', image: 'x/perl:5' });
  });

  it('of slices add up: what never ran comes first, what failed comes once more, alone', () => {
    const first = outcomesOf(
      junit([
        [runs, 'passed'],
        [flakes, 'failed', 'x'],
        [fails, 'failed', 'x'],
      ]),
      [],
    );
    expect(toRun(all, first)).toEqual({ first: [lacks, waits], alone: [flakes, fails] });
    const known = { ...first, ...noImage(lacks) };
    const second = merged(
      known,
      outcomesOf(
        junit([
          [flakes, 'passed'],
          [fails, 'failed', 'y'],
        ]),
        [],
      ),
    );
    expect(second).toMatchObject({ [flakes]: { result: 'passed', tries: 2 }, [fails]: { why: 'y', tries: 2 }, [runs]: { tries: 1 } });
    expect(toRun(all, second)).toEqual({ first: [waits], alone: [] });
  });
});

it('a focus chooses these specs and no other', () => {
  const pattern = new RegExp(focusOf([runs, flakes]));
  const text = (name: string) => `Kubernetes e2e suite ${name.slice('[It] '.length, name.lastIndexOf(' ['))}`;
  expect(all.filter((name) => pattern.test(text(name)))).toEqual([runs, flakes]);
  expect(pattern.test(`${text(runs)} twice`)).toBe(false);
  const newer = new RegExp(focusOf(['[It] [sig-node] [DRA] runs [KubeletMinVersion:1.34] [sig-node, DRA] [kubelet: [>=1.34]]']));
  expect(newer.test('Kubernetes e2e suite [sig-node] [DRA] runs [KubeletMinVersion:1.34]')).toBe(true);
});

it('groups take each spec once, the conformance of nodes first', () => {
  const serial = '[It] [sig-node] Kubelet [Serial] does it [sig-node, Serial]';
  const cloud = '[It] [sig-storage] In-tree Volumes [Driver: azure-disk] does it [sig-storage]';
  expect([runs, serial, cloud].map(groupOf)).toEqual(['node conformance', 'node, serial and slow', undefined]);
  expect([runs, serial].map((name) => groupOf(`e2e_node: ${name}`))).toEqual(['e2e_node', 'e2e_node, serial']);
  const ordered = inOrder([serial, cloud, ...all], []);
  expect([ordered.slice(0, -1).sort(), ordered.at(-1)]).toEqual([[...all].sort(), serial]);
  expect(inOrder([...all].reverse(), [])).toEqual(ordered.slice(0, -1));
  expect(inOrder([serial, ...all], ['node, serial and slow'])).toEqual([serial]);
});

it('a table counts what both ran, names what one of them failed, and a later run goes on from it', () => {
  const outcomes = {
    actorlet: merged(
      merged(
        { ...noImage(lacks) },
        outcomesOf(
          junit([
            [runs, 'passed'],
            [flakes, 'failed', 'late'],
            [fails, 'failed', 'own'],
          ]),
          [],
        ),
      ),
      outcomesOf(junit([[flakes, 'passed']]), []),
    ),
    kubelet: {
      ...outcomesOf(
        junit([
          [runs, 'passed'],
          [flakes, 'passed'],
          [fails, 'passed'],
        ]),
        [],
      ),
      ...noImage(lacks),
    },
  };
  const { rows, failed, notRunnable } = tableOf(all, outcomes);
  expect(rows).toEqual([
    {
      ...{ group: 'node conformance', specs: 3, passed: { actorlet: 2, kubelet: 3 }, secondTry: { actorlet: 1, kubelet: 0 } },
      ...{ failedByAll: 0, notRunnable: 1, left: 1 },
    },
  ]);
  expect(failed).toEqual([{ name: fails, why: { actorlet: 'own' } }]);
  expect(notRunnable).toEqual({ 'no image x/perl:5': 1 });
  expect(markdownOf(rows, ['actorlet', 'kubelet']).split('\n').at(-1)).toBe(
    '| node conformance | 3 | 2 (1 at the second try) | 3 | 0 | 1 | 1 |',
  );
  const both = { ...outcomes, kubelet: { ...outcomes.kubelet, ...outcomesOf(junit([[waits, 'skipped', 'skipped - no GPU']]), []) } };
  expect(unlisted(listed(both), ['actorlet', 'kubelet'])).toEqual(both);
  expect(listed(both).passed).toEqual([runs]);
});
