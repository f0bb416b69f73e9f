/** `actorctl pods` where there is nothing to show, and where there is little room. */

import { renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { expect, it } from 'vitest';
import { printTable } from '../src/asked.ts';
import { renderPods } from '../src/render.ts';

it('says in which namespace there is no pod', () => {
  expect(renderPods([], { namespace: 'shop' })).toEqual(['No pods in namespace shop on this node.']);
  expect(renderPods([])).toEqual(['No pods on this node.']);
  expect(renderPods([], { of: 3 })).toEqual(['None of the 3 pods of this node has these labels.']);
});

it('has the status of kubectl within 80 columns', () => {
  const pod: PodSummary = {
    ...{ uid: 'u', namespace: 'default', name: 'web-79778c975-x7m86', source: 'api', phase: 'Running', status: 'CrashLoopBackOff' },
    ...{ ready: 0, containers: 1, restarts: 12, worker: 'syncing', workerState: 'syncing.settled', podIP: '', ageMs: 60_000 },
    ...{ reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container', removed: false, rejected: false },
  };
  const [titles = '', line = ''] = renderPods([pod, { ...pod, name: 'job', phase: 'Failed', status: 'Error' }]).map((l) => l.slice(0, 80));
  expect(titles).toContain('STATUS');
  expect(line).toMatch(/web-79778c975-x7m86 +0\/1 +CrashLoopBackOff +12/);
});

it('cuts nothing before the worker in a terminal that is too narrow for it', () => {
  const out: string[] = [];
  const io = { columns: 40, env: { NO_COLOR: '1' }, out: (text: string) => void out.push(text) };
  const lines = renderTable(
    ['NAME', 'STATUS', 'WORKER'],
    [['a-name-of-more-than-forty-signs-in-all-of-it', 'CrashLoopBackOff', 'syncing']],
  );
  printTable({ io, headers: false, format: 'text' } as never, lines, 'WORKER');
  expect(out).toEqual(['a-name-of-more-than-forty-signs-in-all-of-it  CrashLoopBackOff…\n']);
});
