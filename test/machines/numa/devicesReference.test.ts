/** The same hints and devices as the kubelet of 1.36, whose answers are recorded in `devices136.json`: one sequence for each plugin. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  allocationOrder,
  byNode,
  chooseDevices,
  deviceRequests,
  planAllocation,
  reusable,
} from '../../../src/machines/allocation/devices/allocate.ts';
import { deviceHints, nearFirst } from '../../../src/machines/allocation/devices/hints.ts';
import type { DeviceLedger } from '../../../src/machines/allocation/devices/types.ts';
import type { ResourceHints } from '../../../src/machines/allocation/messages.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { podOf } from './pods.ts';

const RESOURCE = 'example.com/dev';
/** What a plugin answers to GetPreferredAllocation; `none`: it is not asked. */
type Prefers = 'none' | 'last' | 'one' | 'junk';
/** A pod (`p`, each container `c`, `i`nit or `s`idecar with its number of devices; `m`: NUMA nodes chosen), its release (`r`), or which devices are sick now (`u`). */
interface Step {
  p?: string[];
  m?: number[];
  r?: number;
  u?: string[];
  /** Hints for the pod, for each container, and where all got theirs both once more. */
  h?: string[];
  /** Devices by container. */
  a?: string[];
  /** Questions to the plugin: available/must include/size. */
  q?: string[];
  e?: string;
}
interface Case {
  nodes: number[];
  devices: Record<string, number[]>;
  prefers: Prefers;
  ops: Step[];
}
const CASES = JSON.parse(readFileSync(new URL('../../reference/recorded/allocation/devices136.json', import.meta.url), 'utf8')) as Case[];

const ANSWERS: Record<Prefers, (available: readonly string[], must: readonly string[], size: number) => readonly string[]> = {
  none: () => [],
  last: (available, must, size) =>
    [...must, ...[...available].reverse().filter((id) => !must.includes(id))].slice(0, Math.max(size, must.length)),
  one: (available) => available.slice(-1),
  junk: () => ['nobody', 'd00', 'd01', 'd02', 'd03'],
};

const amountsOf = (count: string): Record<string, string> => (count === '0' ? {} : { [RESOURCE]: count });

function hintText([first]: readonly ResourceHints[]): string {
  if (first === undefined) return '-';
  return first.hints === null ? 'any' : first.hints.map((h) => `${h.nodes.join('+')}${h.preferred ? '!' : ''}`).join(' ');
}

function ledgerOf({ devices }: Case, sick: readonly string[]): DeviceLedger {
  const ids = Object.keys(devices).sort();
  const numa = new Map(Object.entries(devices).filter(([, nodes]) => nodes.length > 0));
  const [healthy, unhealthy] = [ids.filter((id) => !sick.includes(id)), ids.filter((id) => sick.includes(id))];
  const state = { healthy: new Set(healthy), unhealthy: new Set(unhealthy), numa, returning: false };
  return { gone: new Set(), allocations: [], resources: new Map([[RESOURCE, state]]) };
}

/** What becomes of one pod. Where the reference takes any of several devices, its own are taken from then on. */
function admit(ledger: DeviceLedger, of: Pod, { c, step }: { c: Case; step: Step }) {
  let now = ledger;
  const q: string[] = [];
  const a: string[] = [];
  const hints = (name: string | null) => hintText(deviceHints(now, of, { container: name, nodes: c.nodes, reserved: new Map() }));
  const h = [hints(null)];
  const state = now.resources.get(RESOURCE);
  for (const [i, { container: one }] of allocationOrder(of).entries()) {
    h.push(hints(one.name));
    const [request] = deviceRequests(one);
    if (request === undefined) {
      a.push('');
      continue;
    }
    const plan = planAllocation(now, { ...request, pod: of, container: one.name, running: false, reserved: new Set() });
    if (plan.kind !== 'choose') return { ledger, got: { h, q, e: plan.kind === 'refused' ? plan.message : plan.kind } };
    const near = nearFirst(plan, state, step.m ?? null);
    let preferred: readonly string[] = [];
    if (c.prefers !== 'none' && near.must.length < near.count) {
      const available = [...new Set([...near.available, ...near.must])].sort();
      q.push(`${available.join(',')}/${[...near.must].sort().join(',')}/${near.count}`);
      preferred = ANSWERS[c.prefers](available, near.must, near.count);
    }
    const ours = chooseDevices(near, preferred);
    const theirs = (step.a?.[i] ?? '').split(',').filter((id) => id !== '');
    // `again`: of more than the container needs, any.
    const again = reusable(now, of, { container: one.name, resource: RESOURCE });
    const kindOf = kindsOf(c, { again, preferred, nodes: step.m ?? null });
    expect({ i, kinds: ours.map(kindOf).sort() }).toEqual({ i, kinds: theirs.map(kindOf).sort() });
    const devices = byNode(state, theirs);
    const allocation = { uid: of.metadata.uid, container: one.name, resource: RESOURCE, devices, response: RESPONSE };
    now = { ...now, allocations: [...now.allocations, allocation] };
    a.push(theirs.join(','));
  }
  h.push(hints(null), ...allocationOrder(of).map(({ container: one }) => hints(one.name)));
  return { ledger: now, got: { h, q, a } };
}
const RESPONSE = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };

/** What decides for a device: it is used again, it is preferred, or it is near to the chosen nodes, to others, or to none. */
function kindsOf({ devices }: Case, o: { again: readonly string[]; preferred: readonly string[]; nodes: readonly number[] | null }) {
  return (id: string): string => {
    if (o.again.includes(id)) return 'again';
    if (o.preferred.includes(id)) return 'preferred';
    if (o.nodes === null) return 'any';
    const [at, nodes] = [devices[id] ?? [], o.nodes];
    return at.length === 0 ? 'none' : at.some((node) => nodes.includes(node)) ? 'near' : 'far';
  };
}

describe('devices as the reference gives them', () => {
  it.each(CASES.map((c, i) => [`${i}: ${c.prefers} ${JSON.stringify(c.devices)}`, c] as const))('%s', (_, c) => {
    let ledger = ledgerOf(c, []);
    let pods = 0;
    for (const [i, step] of c.ops.entries()) {
      const { p, r, u, h, q = [], a, e } = step;
      if (r !== undefined) ledger = { ...ledger, allocations: ledger.allocations.filter((one) => one.uid !== `p${r}`) };
      else if (u !== undefined) ledger = { ...ledgerOf(c, u), allocations: ledger.allocations };
      else {
        const { ledger: next, got } = admit(ledger, podOf(pods, p ?? [], amountsOf), { c, step });
        pods += 1;
        ledger = next;
        expect({ i, ...got }).toEqual({ i, h, q, ...(e === undefined ? { a } : { e }) });
      }
    }
  });
});
