/**
 * Who makes room for a critical pod (pod lifecycle 2.6, resources 12.3): a row for each rule of choosing. Of each row the
 * names of those that have to go, in order, or what is missing.
 */
import { expect, it } from 'vitest';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { requestOf, shortages } from '../../../../src/machines/pod/resources/requests.ts';
import { choosePreempted, lateOf, leavingMs, seenLeaving } from '../../../../src/machines/pods/admission/preemption.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { deciding, goldenTable } from '../table.ts';

const CRITICAL = 2_000_000_000;
const ALLOCATABLE = { cpu: '4', memory: '4Gi' };

type Amounts = Record<string, string>;

function named(name: string, requests: Amounts, more: { limits?: Amounts; priority?: number; source?: 'api' | 'file' } = {}): Pod {
  const { limits, priority, source = 'api' } = more;
  const resources = { requests, ...(limits === undefined ? {} : { limits }) };
  const made = pod({ containers: [container('c', { resources })], ...(priority === undefined ? {} : { priority }) }, { source });
  return { ...made, metadata: { ...made.metadata, name, uid: `uid-${name}` } };
}
const critical = (requests: Amounts): Pod => named('critical', requests, { priority: CRITICAL });
const burstable = (name: string, requests: Amounts): Pod => named(name, requests);
const guaranteed = (name: string, requests: Amounts): Pod => named(name, requests, { limits: requests });
/** Asks for storage only, which makes it no better than one that asks for nothing. */
const bestEffort = (name: string): Pod => named(name, {});

const ROWS: Record<string, { pod: Pod; others: Pod[]; podsMax?: number }> = {
  'one is enough: the nearest to what is short': {
    pod: critical({ cpu: '1' }),
    others: [burstable('a', { cpu: '2' }), burstable('b', { cpu: '1' }), burstable('c', { cpu: '1' })],
  },
  'one large rather than two small': {
    pod: critical({ cpu: '2' }),
    others: [burstable('small1', { cpu: '1' }), burstable('small2', { cpu: '1' }), burstable('large', { cpu: '2' })],
  },
  'of those that are enough, the one that asks for less memory': {
    pod: critical({ cpu: '1' }),
    others: [burstable('a', { cpu: '2', memory: '2Gi' }), burstable('b', { cpu: '2', memory: '1Gi' })],
  },
  'and then the one that asks for less cpu': {
    pod: critical({ cpu: '1' }),
    others: [burstable('a', { cpu: '2500m' }), burstable('b', { cpu: '1500m' })],
  },
  'burstable ones before guaranteed ones': {
    pod: critical({ cpu: '1' }),
    others: [guaranteed('g', { cpu: '1', memory: '1Gi' }), burstable('b', { cpu: '3' })],
  },
  'guaranteed ones for what the others cannot give': {
    pod: critical({ cpu: '3' }),
    others: [guaranteed('g1', { cpu: '1', memory: '1Gi' }), guaranteed('g2', { cpu: '2', memory: '1Gi' }), burstable('b', { cpu: '1' })],
  },
  'no burstable one for what a guaranteed one gives anyway': {
    pod: critical({ cpu: '3' }),
    others: [guaranteed('g', { cpu: '3', memory: '1Gi' }), burstable('b', { cpu: '1' })],
  },
  'places: those that ask for nothing first': {
    pod: critical({}),
    others: [burstable('b', { cpu: '1' }), bestEffort('e1'), bestEffort('e2')],
    podsMax: 3,
  },
  'two resources are weighed alike': {
    pod: critical({ cpu: '2', memory: '2Gi' }),
    others: [burstable('cpu', { cpu: '2' }), burstable('memory', { memory: '2Gi' }), burstable('both', { cpu: '2', memory: '2Gi' })],
  },
  'two resources, of two pods': {
    pod: critical({ cpu: '4', memory: '4Gi' }),
    others: [burstable('cpu', { cpu: '4' }), burstable('memory', { memory: '4Gi' }), bestEffort('e')],
  },
  'critical pods give way to none': {
    pod: critical({ cpu: '4' }),
    others: [named('other', { cpu: '2' }, { priority: CRITICAL })],
  },
  'static pods give way to none': {
    pod: critical({ cpu: '4' }),
    others: [named('static', { cpu: '2' }, { source: 'file' })],
  },
  'a static pod drives out one of the API': {
    pod: named('static', { cpu: '3' }, { source: 'file' }),
    others: [burstable('b', { cpu: '2' })],
  },
  'a higher priority drives out a critical pod': {
    pod: named('higher', { cpu: '4' }, { priority: CRITICAL + 1_000 }),
    others: [named('other', { cpu: '2' }, { priority: CRITICAL })],
  },
  'all together are not enough': {
    pod: critical({ cpu: '8', memory: '5Gi' }),
    others: [burstable('a', { cpu: '1', memory: '1Gi' }), guaranteed('g', { cpu: '1', memory: '1Gi' })],
  },
};

goldenTable(
  'room for a critical pod is made as recorded',
  'admission/preemption',
  deciding(ROWS, (row) => {
    const short = shortages(row.pod, { others: row.others, podsMax: row.podsMax ?? 110, allocatable: ALLOCATABLE });
    expect(short).not.toEqual([]);
    const choice = choosePreempted(row.pod, { pods: row.others, short, requests: requestOf });
    return choice.ok ? { go: choice.pods.map((p) => p.metadata.name) } : { missing: choice.missing };
  }),
);

it('one that is on its way is waited for half as much again as its grace, and 10 s at least', () => {
  const withGrace = (seconds: number | undefined) => pod(seconds === undefined ? {} : { terminationGracePeriodSeconds: seconds });
  expect([0, 5, 7, 30, undefined].map((s) => leavingMs(withGrace(s)))).toEqual([10_000, 10_000, 10_500, 45_000, 45_000]);
  let since: ReadonlyMap<string, number> = new Map();
  const late = (going: Pod[], nowMs: number) => {
    since = seenLeaving(since, going, nowMs);
    return lateOf(since, going, nowMs);
  };
  const [short, long] = [burstable('short', {}), burstable('long', {})].map((p, i) => ({
    ...p,
    spec: { ...p.spec, terminationGracePeriodSeconds: i * 100 },
  })) as [Pod, Pod];
  expect(late([short, long], 1_000)).toEqual([]);
  expect(late([short, long], 11_000)).toEqual([short]);
  // One that was gone in between begins anew.
  expect(late([long], 12_000)).toEqual([]);
  expect(late([short, long], 13_000)).toEqual([]);
  expect(late([short, long], 151_000)).toEqual([short, long]);
});
