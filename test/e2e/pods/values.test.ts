/** Values of pages of figures, beside what the reference kubelet 1.36.2 told of the same pods on cgroup v1 (test/reference/compare.ts). */
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rowDifferences } from '../../reference/classes.ts';
import { isKnown } from '../../reference/known.ts';
import { isRecorded, RECORDED, RECORDED_PAGES, RECORDING, type Recording, rowsOfRecording } from '../../reference/recording.ts';
import { rowsOfPages } from '../../reference/rows.ts';
import type { Daemon } from '../daemon.ts';
import { until } from '../lab/ports.ts';
import { manifest } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';

/** The kernel counts other things there. */
const CGROUP_V2 = existsSync('/sys/fs/cgroup/cgroup.controllers');
/** The pod `writes` has written by then. */
const SETTLED = { timeoutMs: 60_000, everyMs: 1_000 };

let daemon: Daemon;
onContainerd((made) => ({ daemon } = made), { flags: ['--node-ip=127.0.0.1'] });

async function told() {
  const pages: Record<string, { status: number; type: string; text: string }> = {};
  for (const path of RECORDED_PAGES) {
    const answer = await fetch(`${daemon.readOnlyUrl}${path}`);
    pages[path] = { status: answer.status, type: answer.headers.get('content-type') ?? '', text: await answer.text() };
  }
  return new Map([...rowsOfPages(pages)].filter(([where]) => isRecorded(where)));
}

it.skipIf(CGROUP_V2)(
  'has the rows and values of the reference for the same pods',
  async () => {
    const recording = JSON.parse(readFileSync(RECORDING, 'utf8')) as Recording;
    for (const [name, spec] of Object.entries(RECORDED)) daemon.put(`${name}.json`, manifest(name, spec.containers, { spec }));
    for (const name of Object.keys(RECORDED)) await daemon.phase(name, 'Running', 60_000);
    let last: unknown[] = [];
    const alike = async () => {
      const rows = await told();
      last = rowDifferences(rowsOfRecording(recording, rows), rows, isKnown);
      return last.length === 0;
    };
    await until('the same rows', alike, SETTLED).catch(() => expect(last).toEqual([]));
  },
  180_000,
);
