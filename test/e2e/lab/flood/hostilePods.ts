/** Manifests and pods of the API by somebody who wants the node down. The same every time. */

export interface HostileManifest {
  name: string;
  text: string;
}
type Kind = (name: string) => string;

const KIB = 1024;
const IMAGE = 'docker.io/library/busybox:1.35';

function podOf(name: string, spec: object, metadata: object = {}): Record<string, unknown> {
  const containers = [{ name: 'c', image: IMAGE, command: ['sleep', '3600'] }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers, terminationGracePeriodSeconds: 1, ...spec },
  };
}
const json = (name: string, spec: object, metadata: object = {}): string => JSON.stringify(podOf(name, spec, metadata));
const container = (more: object): object => ({ containers: [{ name: 'c', image: IMAGE, command: ['sleep', '3600'], ...more }] });
const head = (name: string): string => `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers: [{name: c, image: i}]\n`;

/** `$(V0)$(V0)`, and so on: doubles with each variable. */
const environmentBomb = (name: string): object =>
  podOf(
    name,
    container({
      env: [
        { name: 'V0', value: 'x'.repeat(10) },
        ...Array.from({ length: 27 }, (_, i) => ({ name: `V${i + 1}`, value: `$(V${i})$(V${i})` })),
      ],
    }),
  );

const SMALL: readonly Kind[] = [
  (n) => json(n, { securityContext: { sysctls: [{ name: `${'a'.repeat(80)}!`, value: '1' }] } }),
  (n) => `${head(n)}  x: ${'? '.repeat(400)}a\n`,
  (n) => `${head(n)}  y: ${'{'.repeat(200)}\n`,
  (n) => json(n, container({ resources: { limits: { memory: `${'1'.repeat(4 * KIB)}x` } } })),
  (n) => JSON.stringify(environmentBomb(n)),
  (n) =>
    json(
      n,
      container({
        env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['constructor']" } } }],
        ports: [{ containerPort: -1 }],
      }),
    ),
  (n) => `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${n}","labels":{"__proto__":"x"}},"spec":{"containers":[{}]}}`,
  (n) => json(n, { serviceAccountName: 'admin', hostPID: 'yes' }),
  (n) => `${head(n)}---\n${head(n)}`,
  (n) => `${head(n)}\u0000\u001b[2J: [\n`,
  (n) => `${'['.repeat(2_000)}${n}`,
  (n) => `a: &a [x]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]\n# ${n}`,
  (n) => json(n, { nodeName: 'other', containers: 'none' }),
  (n) => json(`${n}${'-'.repeat(300)}`, {}),
  (n) => json(n, container({ livenessProbe: { exec: { command: ['sh', '-c', 'echo "\\nE1123 forged\\n"'] } }, image: ' '.repeat(300) })),
  (n) => json(n, { tolerations: Array.from({ length: 300 }, () => ({ operator: 'Nope' })) }),
  () => '',
  (n) => `${n}\n`,
];
const LARGE: readonly Kind[] = [
  (n) => `${head(n)}  z: {${Array.from({ length: 20_000 }, (_, i) => `k${i}: 0`).join(', ')}}\n`,
  (n) => json(n, container({ resources: { limits: { memory: '1'.repeat(40 * KIB) } } })),
  (n) => json(n, container({ volumeMounts: [{ name: 'v', mountPath: '/'.repeat(100 * KIB) }] })),
  (n) => `a: &a [${'x, '.repeat(1_000)}]\nb: [${'*a, '.repeat(99)}]\n# ${n}\n${'# '.repeat(100 * KIB)}`,
  (n) =>
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: n },
      spec: { containers: Array.from({ length: 20_000 }, () => ({})) },
    }),
  (n) =>
    json(n, {
      volumes: [
        {
          name: 'v',
          downwardAPI: {
            items: Array.from({ length: 5_000 }, (_, i) => ({ path: `p${i % 7}/${i}`, fieldRef: { fieldPath: 'metadata.name' } })),
          },
        },
      ],
    }),
  (n) => json(n, {}, { annotations: { a: 'x'.repeat(250 * KIB) }, labels: { l: 'y'.repeat(60 * KIB) } }),
];
/** Of so many, one is large. */
const LARGE_EVERY = 50;

export function hostileManifests(count: number): HostileManifest[] {
  return Array.from({ length: count }, (_, i) => {
    const kinds = i % LARGE_EVERY === 0 ? LARGE : SMALL;
    const kind = kinds[(i % LARGE_EVERY === 0 ? i / LARGE_EVERY : i) % kinds.length];
    const name = `bad-${i}`;
    return { name: `${name}.${i % 3 === 0 ? 'json' : 'yaml'}`, text: kind?.(name) ?? '' };
  });
}

/** The server's validation lets all of these through. */
const API: readonly ((name: string) => Record<string, unknown>)[] = [
  (n) => environmentBomb(n) as Record<string, unknown>,
  (n) =>
    podOf(n, {
      ...container({ volumeMounts: [{ name: 'v', mountPath: `/a${'/'.repeat(10 * KIB)}b` }] }),
      volumes: [{ name: 'v', emptyDir: {} }],
    }),
  (n) =>
    podOf(n, { ...container({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }), volumes: [{ name: 'v', configMap: { name: 'bomb' } }] }),
  (n) => podOf(n, { nodeSelector: { no: 'such' } }),
  (n) => podOf(n, { volumes: [{ name: 'v', quobyte: { registry: 's', volume: 'x' } }] }),
  (n) => podOf(n, {}, { annotations: { a: 'x'.repeat(20 * KIB) } }),
  (n) => podOf(n, container({ image: 'registry.invalid/none:1' })),
  (n) => podOf(n, container({ command: ['false'] })),
  (n) =>
    podOf(n, {
      ...container({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
      volumes: [
        {
          name: 'v',
          downwardAPI: {
            items: Array.from({ length: 500 }, (_, i) => ({ path: `p${i % 7}/${i}`, fieldRef: { fieldPath: 'metadata.name' } })),
          },
        },
      ],
    }),
  (n) => podOf(n, container({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['constructor']" } } }] })),
];

export function hostileApiPod(i: number): Record<string, unknown> {
  const pod = API[i % API.length]?.(`bad-api-${i}`) ?? {};
  return { ...pod, spec: { ...(pod.spec as object), nodeName: 'e2e' } };
}
/** Fits into an object of the API, and has as many keys as can be. */
export const BOMB = { metadata: { name: 'bomb' }, data: Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`k${i}`, ''])) };
