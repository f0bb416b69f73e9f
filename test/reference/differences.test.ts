/** How two tellings of one node are compared. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rowDifferences } from './classes.ts';
import { differences, families, flat, onlyInOne, plainly } from './differences.ts';
import { isRecorded, RECORDING, type Recording } from './recording.ts';
import { rowsOfPages } from './rows.ts';

it('what is new each time counts for nothing', () => {
  const id = 'a'.repeat(64);
  expect(plainly(`containerd://${id} at 2026-11-26T02:10:32Z on 10.1.2.3 for 12.5s`)).toBe(
    'containerd://ID at TIME on ADDRESS for DURATION',
  );
  expect(plainly('kube-api-access-x7k2p of 3a1ee0c066d98dd783e6b4f608017434')).toBe('kube-api-access of UID');
});

it('values are told by path, members of lists by their type or name', () => {
  const conditions = [{ type: 'Ready', status: 'True' }, { type: 'Initialized' }];
  expect([...flat({ phase: 'Running', conditions, ips: ['x'], none: [], empty: {} }).keys()]).toEqual([
    '.phase',
    '.conditions[Ready].type',
    '.conditions[Ready].status',
    '.conditions[Initialized].type',
    '.ips[0]',
    '.none',
    '.empty',
  ]);
});

it('a difference has both sides; what one of them lacks is a dash', () => {
  const [theirs, ours] = [
    { phase: 'Failed', reason: 'AppArmor' },
    { phase: 'Pending', hostIP: '127.0.0.1' },
  ];
  expect(differences('pod ', theirs, ours)).toEqual([
    ['pod .hostIP', '-', '127.0.0.1'],
    ['pod .phase', 'Failed', 'Pending'],
    ['pod .reason', 'AppArmor', '-'],
  ]);
  expect(differences('', theirs, theirs)).toEqual([]);
  expect(onlyInOne('event', ['same', 'theirs after 2s'], ['same', 'ours'])).toEqual([
    ['event', 'theirs after DURATION', '-'],
    ['event', '-', 'ours'],
  ]);
});

it('families of metrics have their type and labels, those of histograms too', () => {
  const text = [
    '# TYPE a counter',
    'a{x="1",y="2"} 3',
    '# TYPE h histogram',
    'h_bucket{le="1",z="0"} 1',
    'h_sum 2',
    '# TYPE none gauge',
    '',
  ];
  expect(families(text.join('\n'))).toEqual(['a counter x,y', 'h histogram le,z', 'none gauge']);
});

const page = (text: string, type = 'text/plain') => ({ status: 200, type, text });

it('rows of metrics are series, of objects paths; two that cannot be told apart are one with two values', () => {
  const id = (digit: string) => digit.repeat(64);
  const text = `# TYPE a gauge\na{id="/k8s.io/${id('a')}"} 2\na{id="/k8s.io/${id('b')}"} 1\n`;
  const summary = JSON.stringify({ pods: [{ podRef: { name: 'web', namespace: 'ns' }, containers: [{ name: 'main', cpu: { n: 5 } }] }] });
  const rows = rowsOfPages({ '/metrics/x': page(text), '/stats/summary': page(summary, 'application/json') });
  expect(rows.get('/metrics/x a{id="/k8s.io/ID"}')).toEqual(['1', '2']);
  expect(rows.get('/metrics/x family a')).toEqual(['gauge']);
  expect(rows.get('page /stats/summary .pods.ns/web.containers[main].cpu.n')).toEqual(['5']);
});

it('values are exact, near, or of any size; a row that is missing always counts', () => {
  const limit = '/metrics/cadvisor container_spec_memory_limit_bytes{pod="x"}';
  const used = '/metrics/cadvisor container_memory_usage_bytes{pod="x"}';
  const seen = '/metrics/cadvisor container_last_seen{pod="x"}';
  const rows = (values: Record<string, string>) => new Map(Object.entries(values).map(([where, value]) => [where, [value]]));
  const reference = rows({ [limit]: '64', [used]: '10000000', [seen]: '1' });
  const told = (values: Record<string, string>) => rowDifferences(reference, rows(values), () => false).map(([where]) => where);
  expect(told({ [limit]: '64', [used]: '29000000', [seen]: '9' })).toEqual([]);
  expect(told({ [limit]: '65', [used]: '31000000' })).toEqual([seen, used, limit]);
});

it('the recording has each row of the reference that is not known to differ, and none that is', () => {
  const rows = Object.keys(JSON.parse(readFileSync(RECORDING, 'utf8')) as Recording);
  expect(rows.length).toBeGreaterThan(500);
  expect(rows.filter((where) => !isRecorded(where))).toEqual([]);
});
