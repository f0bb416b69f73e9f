/** A whole node in virtual time: hostile pods of both sources, or a runtime that answers anything, beside pods that stay well. */
import fc from 'fast-check';
import { kindAt } from '../../src/machines/kube/read/kinds.ts';
import { create, inApi } from '../integration/cluster/clusterPods.ts';
import { MANIFESTS, pod, type VirtualNode, virtualNode } from '../integration/virtualNode.ts';
import { onTheWire, type Wire } from '../integration/wire.ts';
import { CONFIG_MAP, NODE, POD, SECRET, SERVICE, SMALL_POD } from './documents.ts';
import { changed, changedInType, changedOnWire, changedText, type Json } from './hostile.ts';
import { must, type Target } from './target.ts';

const EACH = 10;
const WHILE_MS = 60_000;
const ANSWERS_MS = 30_000;

const manifests = fc.array(
  fc.oneof(
    fc.oneof(changed(POD), changed(SMALL_POD)).map((d) => JSON.stringify(d)),
    changedText(fc.constant(JSON.stringify(POD))),
  ),
  {
    minLength: EACH,
    maxLength: EACH,
  },
);
const apiPods = fc.array(fc.oneof(changedInType(POD), changedInType(SMALL_POD)), { minLength: EACH, maxLength: EACH });
/** As no API server would send them: the node reads what comes. */
const SENT = 50;
const sentPods = fc.array(fc.oneof(changed(POD), changed(SMALL_POD)), { minLength: SENT, maxLength: SENT });
const sentObjects = fc.array(fc.oneof(...[NODE, SECRET, CONFIG_MAP, SERVICE].map(changed)), { minLength: SENT, maxLength: SENT });

/** The server gives names and a UID of its own, whatever was asked for. */
function post(h: VirtualNode, doc: Json, i: number): void {
  const { metadata, spec } = doc as { metadata: Record<string, Json>; spec: Record<string, Json> };
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: `bad-${i}`, namespace: 'default' },
    spec: { ...spec, nodeName: 'n1' },
  };
  for (const field of ['uid', 'resourceVersion', 'deletionTimestamp', 'finalizers']) delete (body.metadata as Record<string, Json>)[field];
  h.kube.handle({ verb: 'POST', path: '/api/v1/namespaces/default/pods', body });
}

/** `doc` in place of the object, under the name that it was asked for by: most of the time. */
function named(doc: Json | undefined, object: unknown): unknown {
  if (typeof doc !== 'object' || doc === null || Array.isArray(doc)) return doc;
  const metadata = typeof doc.metadata === 'object' && doc.metadata !== null && !Array.isArray(doc.metadata) ? doc.metadata : {};
  const { name, namespace, uid, resourceVersion } = (object as { metadata: Record<string, unknown> }).metadata;
  return { ...doc, metadata: { ...metadata, name, namespace, uid, resourceVersion } };
}

function unharmed(h: VirtualNode, when: string): void {
  const fell = h.events.filter(
    (e) => (e.kind === 'child.exited' && e.reason.kind === 'error') || e.kind === 'supervisor.escalated' || e.kind === 'quarantined',
  );
  must(fell.length === 0, `${when}: no actor falls: ${JSON.stringify(fell[0], (_, v: unknown) => (v instanceof Error ? v.stack : v))}`);
}

async function good(wire?: Wire): Promise<VirtualNode> {
  const h = await virtualNode({ cluster: true, ...(wire === undefined ? {} : { ports: onTheWire(wire) }) });
  h.write('good', pod('good'));
  create(h, 'fine');
  await h.until('both run', () => h.phase('good') === 'Running' && inApi(h, 'fine')?.status?.phase === 'Running');
  return h;
}
const instances = (h: VirtualNode, name: string): number => h.running().filter((c) => c.podUid === uidOf(h, name)).length;
const uidOf = (h: VirtualNode, name: string): string => (name === 'good' ? h.uid(name) : (inApi(h, name)?.metadata.uid ?? ''));
async function stillGood(h: VirtualNode): Promise<void> {
  for (const [name, status] of [
    ['good', h.status('good')?.status],
    ['fine', inApi(h, 'fine')?.status],
  ] as const) {
    const why = `${status?.phase} ${status?.reason ?? ''} ${status?.message ?? ''}, ${instances(h, name)} containers`;
    must(instances(h, name) === 1 && status?.phase === 'Running', `${name} runs on, not ${why}`);
  }
}

export const nodeTargets: readonly Target[] = [
  {
    name: 'node',
    share: 3,
    casesPerRun: 2 * EACH,
    property: fc.asyncProperty(manifests, apiPods, async (files, docs) => {
      await using h = await good();
      for (const [i, text] of files.entries()) h.fs.put(`${MANIFESTS}/bad-${i}.yaml`, text);
      for (const [i, doc] of docs.entries()) post(h, doc, i);
      await h.advance(WHILE_MS);
      unharmed(h, 'with hostile pods');
      must(h.violations.length === 0, h.violations[0] ?? '');
      await stillGood(h);
    }),
  },
  {
    name: 'node and its API server',
    share: 1,
    casesPerRun: 2 * SENT,
    property: fc.asyncProperty(sentPods, sentObjects, async (docs, objects) => {
      let turn = 0;
      let lies = false;
      const wire: Wire = {
        sends(path, object) {
          const name = (object as { metadata?: { name?: unknown } } | null)?.metadata?.name;
          const at = typeof name === 'string' ? /^sent-(\d+)$/.exec(name)?.[1] : undefined;
          if (at !== undefined) return named(docs[Number(at)], object);
          const kind = kindAt(path)?.kind;
          if (!lies || kind === undefined || kind === 'Pod' || kind === 'Lease') return object;
          turn += 1;
          return named(objects[turn % objects.length], object);
        },
      };
      await using h = await good(wire);
      lies = true;
      for (const i of docs.keys()) create(h, `sent-${i}`);
      await h.advance(WHILE_MS);
      unharmed(h, 'with hostile objects of the API');
      must(h.violations.length === 0, h.violations[0] ?? '');
      const failed = h.lines.find((l) => l.msg.includes('failed over a pod'));
      must(failed === undefined, `the pod manager handles each: ${JSON.stringify(failed)}`);
      await stillGood(h);
    }),
  },
  {
    name: 'node and its runtime',
    share: 1,
    casesPerRun: EACH,
    property: fc.asyncProperty(fc.nat(), fc.integer({ min: 2, max: 12 }), async (seed, every) => {
      await using h = await good();
      let asked = 0;
      h.faults.answer = (_, value) =>
        ++asked % every === 0 ? fc.sample(changedOnWire(plain(value)), { seed: seed + asked, numRuns: 1 })[0] : value;
      create(h, 'later');
      await h.advance(ANSWERS_MS);
      h.faults.answer = (_, value) => value;
      unharmed(h, 'while the runtime answers anything');
      await h.until(
        'the pods run',
        () => ['fine', 'later'].every((n) => instances(h, n) > 0 && inApi(h, n)?.status?.phase === 'Running'),
        600_000,
      );
      unharmed(h, 'after the runtime answered anything');
    }),
  },
];

/** What comes out of gRPC is plain data. */
function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
