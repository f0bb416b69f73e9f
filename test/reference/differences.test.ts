/** How two tellings of one node are compared. */
import { expect, it } from 'vitest';
import { differences, families, flat, onlyInOne, plainly } from './differences.ts';

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
