/** Pods with claims of every kind, and what the scheduler needs to allocate them: the same for each node agent. */
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';

export const DRIVER = 'gpu.example.com';
export const CLASS = 'gpu';
const POOL = 'e2e';
/** A claim with this in its name is failed by the driver, the first times. */
export const FAILING = 'failing';

const api = (kind: string, name: string, spec: object) => ({ apiVersion: 'resource.k8s.io/v1', kind, metadata: { name }, spec });
const kindIs = (kind: string) => [{ cel: { expression: `device.attributes["${DRIVER}"].kind == "${kind}"` } }];
const device = (name: string, kind: string, more: object = {}) => ({ name, attributes: { kind: { string: kind } }, ...more });
const plain = { deviceClassName: CLASS, selectors: kindIs('plain') };
const claim = (name: string, ...requests: object[]) => api('ResourceClaim', name, { devices: { requests } });
const exactly = (more: object, name = 'r') => ({ name, exactly: { deviceClassName: CLASS, ...more } });

export function objects(): object[] {
  const selectors = [{ cel: { expression: `device.driver == "${DRIVER}"` } }];
  const capacity = (name: string) => claim(name, exactly({ selectors: kindIs('shared'), capacity: { requests: { slots: '4' } } }));
  const pick = [
    { name: 'none', deviceClassName: CLASS, selectors: kindIs('none') },
    { name: 'some', ...plain },
  ];
  return [
    api('DeviceClass', CLASS, { selectors, extendedResourceName: 'example.com/gpu' }),
    api('ResourceClaimTemplate', 'one', { spec: { devices: { requests: [exactly(plain)] } } }),
    claim('requests', exactly(plain, 'big'), exactly(plain, 'small')),
    claim('shared', exactly(plain)),
    claim('left', exactly(plain)),
    claim('right', exactly(plain)),
    claim('first', { name: 'pick', firstAvailable: pick }),
    claim('admin', exactly({ ...plain, adminAccess: true })),
    capacity('capacity-a'),
    capacity('capacity-b'),
    claim('partition', exactly({ selectors: kindIs('part') })),
    claim(
      'tainted',
      exactly({ selectors: kindIs('tainted'), tolerations: [{ key: 'example.com/hot', operator: 'Exists', effect: 'NoSchedule' }] }),
    ),
    claim(FAILING, exactly(plain)),
  ];
}

/** Of the node; the kubelet deletes them when it starts. */
export function slices(nodeName: string): object[] {
  const of = (name: string, more: object) =>
    api('ResourceSlice', name, { driver: DRIVER, nodeName, pool: { name: POOL, generation: 1, resourceSliceCount: 2 }, ...more });
  const part = (name: string) =>
    device(name, 'part', { consumesCounters: [{ counterSet: 'memory', counters: { bytes: { value: '8Gi' } } }] });
  const taints = [{ key: 'example.com/hot', effect: 'NoSchedule' }];
  return [
    of('counters', { sharedCounters: [{ name: 'memory', counters: { bytes: { value: '16Gi' } } }] }),
    of('devices', {
      devices: [
        ...Array.from({ length: 12 }, (_, i) => device(`plain-${String(i).padStart(2, '0')}`, 'plain')),
        device('shared-0', 'shared', { allowMultipleAllocations: true, capacity: { slots: { value: '10' } } }),
        ...['part-0', 'part-1', 'part-2'].map(part),
        device('tainted-0', 'tainted', { taints }),
      ],
    }),
  ];
}

const uses = (...claims: { name: string; request?: string }[]): Partial<Container> => ({ resources: { claims } });
const named = (...names: string[]): Partial<PodSpec> => ({ resourceClaims: names.map((n) => ({ name: n, resourceClaimName: n })) });
type Make = (name: string, more: Partial<Container>) => Container;

/** By name. `make`: a container that stays. */
export function pods(make: Make): Record<string, Partial<PodSpec> & { containers: Container[] }> {
  const simple = (name: string) => ({ ...named(name), containers: [make('main', uses({ name }))] });
  return {
    templated: {
      resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'one' }],
      containers: [make('main', uses({ name: 'gpu' })), make('idle', {})],
    },
    requests: {
      ...named('requests'),
      containers: [
        make('big', uses({ name: 'requests', request: 'big' })),
        make('small', uses({ name: 'requests', request: 'small' })),
        make('whole', uses({ name: 'requests' })),
      ],
    },
    'sharer-a': simple('shared'),
    'sharer-b': simple('shared'),
    couple: { ...named('left', 'right'), containers: [make('main', uses({ name: 'left' }, { name: 'right' }))] },
    extended: { containers: [make('main', { resources: { limits: { 'example.com/gpu': '1' } } })] },
    first: { ...named('first'), containers: [make('main', uses({ name: 'first', request: 'pick' }))] },
    admin: simple('admin'),
    'capacity-a': simple('capacity-a'),
    'capacity-b': simple('capacity-b'),
    partition: simple('partition'),
    tainted: simple('tainted'),
    [FAILING]: simple(FAILING),
  };
}

/** What a driver answers for an allocation: its devices by pool, name, share and request. */
export function answerOf(results: readonly Record<string, unknown>[], uid: string): object[] {
  return results
    .filter((r) => r.driver === DRIVER)
    .map(({ pool, device: name, shareID, request }) => ({
      requestNames: [String(request).split('/')[0]],
      poolName: pool,
      deviceName: name,
      cdiDeviceIds: [`${DRIVER}/claim=${uid}-${String(name)}`],
      ...(typeof shareID === 'string' ? { shareId: shareID } : {}),
    }));
}
