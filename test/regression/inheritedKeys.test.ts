/** Keys that every object has by inheritance, chosen by somebody else: they are what was given, or not there. */
import { describe, expect, it } from 'vitest';
import { nodeMetadataPatch } from '../../src/machines/api/csiNodeMachine.ts';
import { own, put } from '../../src/machines/data/own.ts';
import { nodeMismatch } from '../../src/machines/kube/nodeSelector.ts';
import type { KubeObject } from '../../src/machines/kube/request.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { httpProbe } from '../../src/machines/pod/probes/netRequests.ts';
import { isGranted } from '../../src/machines/pods/resize/allocation.ts';
import { fieldValue } from '../../src/machines/pods/workers/config/env.ts';
import { built } from '../../src/machines/result.ts';
import { decodeObject } from '../../src/machines/services/objects/decode.ts';

const NAMES = ['constructor', 'toString', 'hasOwnProperty', '__proto__', 'valueOf'];
const parsed = (name: string, value: unknown = 'given') => JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(value)}}`);
const pod = (metadata: object, spec: object = {}): Pod =>
  ({ metadata: { name: 'p', namespace: 'n', uid: 'u', ...metadata }, spec: { containers: [], ...spec }, status: {} }) as unknown as Pod;

describe.each(NAMES)('%s', (name) => {
  it('is found where it was put, and nowhere else', () => {
    expect([own({}, name), own(undefined, name), own(parsed(name), name)]).toEqual([undefined, undefined, 'given']);
    const map: Record<string, string> = {};
    put(map, name, 'put');
    expect([own(map, name), JSON.stringify(map)]).toEqual(['put', JSON.stringify({ a: 'put' }).replace('a', name)]);
  });

  it.each(['labels', 'annotations'])('as a field of metadata.%s is its text, or empty', (kind) => {
    const path = `metadata.${kind}['${name}']`;
    expect(fieldValue(path, { pod: pod({ [kind]: {} }) } as never)).toEqual(built(''));
    expect(fieldValue(path, { pod: pod({ [kind]: parsed(name) }) } as never)).toEqual(built('given'));
  });

  it('as a label of a node is not there unless it is', () => {
    const expressions = [{ key: name, operator: 'Exists' }];
    const spec = {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: expressions }] } },
      },
    };
    const judged = (labels: object) => nodeMismatch(spec as never, { name: 'n', labels } as never);
    expect([judged({}), judged(parsed(name))]).toEqual([expect.stringContaining('no term'), null]);
    expect(nodeMismatch({ nodeSelector: parsed(name, 'x') } as never, { name: 'n', labels: {} } as never)).toContain('no such label');
  });

  it('as a key of a secret or a config map is kept', () => {
    const object = (data: object): KubeObject =>
      ({ metadata: { name: 'o', namespace: 'n', uid: 'u', resourceVersion: '1' }, data }) as never;
    const keysOf = (kind: 'secret' | 'configMap', value: string): string[] => {
      const decoded = decodeObject({ kind, namespace: 'n', name: 'o' }, object(parsed(name, value)));
      return decoded.ok ? Object.keys(decoded.value.data) : [decoded.message];
    };
    expect([keysOf('configMap', 'x'), keysOf('secret', 'eA==')]).toEqual([[name], [name]]);
  });

  it('as a container’s name has no amounts granted by inheritance', () => {
    expect(isGranted(pod({}, { containers: [{ name }] }), {})).toBe(true);
  });

  it('as a header of a probe is sent', () => {
    const probe = { httpGet: { port: 80, httpHeaders: [{ name, value: 'v' }] } };
    const wanted = httpProbe({ probe, container: { name: 'c' }, podIP: '127.0.0.1' } as never);
    expect(wanted).toMatchObject({ ok: true });
    const { headers } = (wanted as unknown as { value: { headers: Record<string, string[]> } }).value;
    expect(Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]).toEqual(['v']);
  });

  it('as a topology key of a CSI driver becomes a label', () => {
    const drivers = [{ name: 'd.test', nodeId: 'id', topology: parsed(name, 'zone') }];
    const { patch, conflicts } = nodeMetadataPatch({ labels: {}, annotations: {} }, { drivers, gone: new Set() } as never);
    expect([conflicts, JSON.stringify(patch)]).toEqual([[], expect.stringContaining(`${JSON.stringify(name)}:"zone"`)]);
  });
});
