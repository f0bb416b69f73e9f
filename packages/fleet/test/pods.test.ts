/** What containers of a fleet do: rules of the file, Stages of KWOK, sizes of images, lengths of time that are drawn. */

import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import type { ContainerConfig } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { ScriptedContainer } from '@actorlet/runtimes/src/hollow/index.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it } from 'vitest';
import { imagesOf } from '../src/pods/images.ts';
import { compiledRules, rulesOf as ofGroup, type PodRule, PodRules } from '../src/pods/rules.ts';
import { stagesOf } from '../src/pods/stages.ts';
import { type Delay, drawn } from '../src/spec/delay.ts';

const container = (o: Partial<ScriptedContainer> = {}): ScriptedContainer => ({
  ...{ name: 'main', image: 'example.com/web:1', attempt: 0, config: {} as ContainerConfig, labels: {}, annotations: {} },
  pod: { uid: 'u', namespace: 'default', name: 'web-1', attempt: 0 },
  ...o,
});
const random = () => {
  const rng = simRng('pods');
  return () => rng.next();
};
const every = { about: 'all', which: 'every', weight: 1, requirements: [] } as const;
const rulesOf = (rules: readonly PodRule[], group = 'a') => new PodRules(ofGroup(compiledRules(rules), [group]), random());
const stage = (name: string, spec: string) => `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: ${name} }
spec:
${spec}`;
const PODS = '  resourceRef: { apiGroup: v1, kind: Pod }\n';

describe('rules', () => {
  it('are about images, namespaces, containers, labels and groups, all of it', () => {
    const rule: PodRule = {
      ...every,
      images: ['**/web:*'],
      namespaces: ['def*'],
      containers: ['main'],
      groups: ['a'],
      requirements: [{ of: 'label', key: 'app', operator: 'In', values: ['web'] }],
      run: { fromMs: 500, toMs: 500 },
      exit: 3,
    };
    const matching = container({ labels: { app: 'web' } });
    const lives = (c: ScriptedContainer, group = 'a') => rulesOf([rule], group).lifeOf(c, undefined);
    expect(lives(matching)).toEqual({ runMs: 500, exitCode: 3 });
    for (const other of [
      { image: 'example.com/db:1' },
      { name: 'side' },
      { labels: { app: 'db' } },
      { pod: { ...matching.pod, namespace: 'prod' } },
    ]) {
      expect(lives(container({ labels: { app: 'web' }, ...other }))).toBeUndefined();
    }
    expect(lives(matching, 'b')).toBeUndefined();
  });

  it('are drawn by their weights, and count less than an annotation', () => {
    const rules = rulesOf([
      { ...every, weight: 9, start: { fromMs: 1, toMs: 1 } },
      { ...every, weight: 1, start: { fromMs: 2, toMs: 2 } },
    ]);
    const slow = Array.from({ length: 1_000 }, () => rules.lifeOf(container(), undefined)).filter(
      (life) => life?.startDelayMs === 2,
    ).length;
    expect(slow).toBeGreaterThan(60);
    expect(slow).toBeLessThan(140);
    expect(rules.lifeOf(container({ annotations: { 'actorlet.dev/hollow': 'run=1s' } }), undefined)).toBeUndefined();
  });
});

describe('lengths of time', () => {
  const draws = (delay: Delay) => {
    const next = random();
    return Array.from({ length: 2_000 }, () => drawn(delay, next)).sort((a, b) => a - b);
  };
  it('lie between two, or have their median and their tail', () => {
    const even = draws({ fromMs: 100, toMs: 200 });
    expect([Math.floor((even[0] ?? 0) / 10), Math.floor((even.at(-1) ?? 0) / 10)]).toEqual([10, 19]);
    const logNormal = draws({ p50Ms: 1_000, p99Ms: 10_000 });
    expect((logNormal[1_000] ?? 0) / 1_000).toBeCloseTo(1, 0);
    expect(logNormal[1_980]).toBeGreaterThan(7_000);
    expect(logNormal.at(-1)).toBeLessThanOrEqual(30_000);
  });
  it('of a pull are that of its size', () => {
    const find = imagesOf([{ name: ['**/big:*'], sizeBytes: 4_000 }])(1_000);
    expect(find('example.com/big:1')).toEqual({ sizeBytes: 4_000, life: { pullDelayMs: 4_000 } });
    expect(find('example.com/small:1')).toEqual({});
  });
});

describe('init containers', () => {
  const pod = (restartPolicy?: 'Always') =>
    ({
      spec: { initContainers: [{ name: 'main', ...(restartPolicy === undefined ? {} : { restartPolicy }) }], containers: [] },
    }) as unknown as Pod;
  const annotated = (text: string) => container({ annotations: { 'actorlet.dev/hollow': text } });

  it('end at once, unless a rule or an annotation says how long they run', () => {
    expect(rulesOf([]).lifeOf(container(), pod())).toEqual({ runMs: 0 });
    expect(rulesOf([]).lifeOf(annotated('logEvery=1s'), pod())).toEqual({ runMs: 0 });
    expect(rulesOf([]).lifeOf(annotated('run=forever'), pod())).toBeUndefined();
    expect(rulesOf([{ ...every, run: { fromMs: 500, toMs: 500 } }]).lifeOf(container(), pod())).toEqual({ runMs: 500 });
    expect(rulesOf([]).lifeOf(container(), pod('Always'))).toBeUndefined();
  });
});

describe('Stages of KWOK', () => {
  it('of the usual kinds become what containers do, and when', () => {
    const { rules, heartbeatMs, refused } = stagesOf(
      [
        stage(
          'pod-ready',
          `${PODS}  selector: { matchExpressions: [{ key: .metadata.deletionTimestamp, operator: DoesNotExist }] }
  delay: { durationMilliseconds: 1000, jitterDurationMilliseconds: 5000 }
  next: { statusTemplate: "phase: Running" }`,
        ),
        stage(
          'pod-complete',
          `${PODS}  selector:
    matchLabels: { job: 'yes' }
    matchExpressions: [{ key: .status.phase, operator: In, values: [Running] }]
  delay: { durationMilliseconds: 7000 }
  next: { statusTemplate: "phase: Succeeded" }`,
        ),
        stage(
          'pod-delete',
          `${PODS}  selector: { matchExpressions: [{ key: .metadata.deletionTimestamp, operator: Exists }] }
  delay: { durationMilliseconds: 300 }
  next: { delete: true }`,
        ),
        stage(
          'heartbeat',
          `  resourceRef: { apiGroup: v1, kind: Node }
  selector: { matchExpressions: [{ key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: In, values: ['True'] }] }
  delay: { durationMilliseconds: 20000 }
  next: { statusTemplate: "conditions: []" }`,
        ),
      ].join('\n---\n'),
    );
    expect({ refused, heartbeatMs }).toEqual({ refused: [], heartbeatMs: 20_000 });
    const life = rulesOf(rules).lifeOf(container({ labels: { job: 'yes' } }), undefined);
    expect(life).toMatchObject({ runMs: 7_000, exitCode: 0, termDelayMs: 300 });
    expect(life?.startDelayMs).toBeGreaterThanOrEqual(1_000);
    expect(life?.startDelayMs).toBeLessThanOrEqual(5_000);
    expect(rulesOf(rules).lifeOf(container(), undefined)).not.toHaveProperty('runMs');
  });

  it('that fail take their exit code, reason and container from annotations of the pod', () => {
    const from = (what: string) => `{{ or ( index $annotations "x.example.com/${what}" ) 1 }}`;
    const { rules, refused } = stagesOf(
      stage(
        'chaos',
        `${PODS}  selector: { matchExpressions: [{ key: .status.phase, operator: In, values: [Running] }] }
  delay: { durationMilliseconds: 1000 }
  next:
    statusTemplate: |
      phase: Failed
      {{ $c := ${from('container-name')} }}
      {{ $e := ${from('exit-code')} }}
      {{ $r := ${from('reason')} }}`,
      ),
    );
    expect(refused).toEqual([]);
    const life = (name: string, said: Record<string, string>) =>
      rulesOf(rules).lifeOf(
        container({ name, annotations: Object.fromEntries(Object.entries(said).map(([key, value]) => [`x.example.com/${key}`, value])) }),
        undefined,
      );
    expect(life('main', {})).toEqual({ runMs: 1_000, exitCode: 1 });
    const said = { 'container-name': 'main', 'exit-code': '137', reason: 'OOMKilled' };
    expect(life('main', said)).toMatchObject({ exitCode: 137, exitReason: 'OOMKilled' });
    expect(life('side', said)).toBeUndefined();
    expect(life('main', { 'exit-code': 'many' })).toMatchObject({ exitCode: 1 });
  });

  it.each([
    ['another kind', `  resourceRef: { apiGroup: apps/v1, kind: Deployment }\n  selector: { matchLabels: {} }`, 'is about Deployment'],
    [
      'another kind that is selected by CEL',
      `  resourceRef: { apiGroup: v1, kind: PersistentVolume }\n  selector: { matchExpressions: [{ cel: { expression: 'true' } }] }`,
      'is about PersistentVolume',
    ],
    ['an expression', `${PODS}  selector: { matchExpressions: [{ key: .spec.nodeName, operator: Exists }] }`, 'selects by .spec.nodeName'],
    [
      'finalizers',
      `${PODS}  selector: { matchLabels: {} }\n  next: { finalizers: { empty: true } }`,
      'changes no status and deletes nothing',
    ],
    [
      'a field that no status has',
      `${PODS}  selector: { matchLabels: {} }\n  next: { statusTemplate: "phase: Running\\nfoo: bar" }`,
      'writes foo, which no node agent does',
    ],
    [
      'labels',
      `${PODS}  selector: { matchLabels: {} }\n  next: { patches: [{ root: metadata, template: "labels:\\n  a: b" }] }`,
      'writes labels',
    ],
    ['what cannot be read', `${PODS}  selector: { matchLabels: {} }\n  next: { statusTemplate: '{"phase":"Running"}' }`, 'has a template'],
    [
      'a field of no node',
      `  resourceRef: { apiGroup: v1, kind: Node }
  selector: { matchExpressions: [{ key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: In, values: ['True'] }] }
  next: { statusTemplate: "foo: bar" }`,
      'writes foo',
    ],
    ['none', `${PODS}  next: { delete: true }`, 'has no selector'],
  ])('that do something else are refused by name: %s', (_, spec, why) => {
    expect(stagesOf(stage('odd', spec)).refused).toEqual([expect.stringContaining(`Stage odd: ${why}`)]);
  });

  it('that are no YAML, or something else, are refused', () => {
    expect(stagesOf('# nothing yet\n').refused).toEqual(['holds no Stage']);
    expect(stagesOf('a: [').refused).toEqual([expect.stringContaining('is not valid YAML')]);
    expect(stagesOf('apiVersion: v1\nkind: Pod\nmetadata: { name: p }').refused).toEqual(['Pod p: is no Stage of kwok.x-k8s.io/*']);
  });
});
