/** Hashes of container definitions, in both forms that are in the field. */
import { describe, expect, it } from 'vitest';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import { encodeContainer, encodeHandler, encodePorts } from '../../../../src/machines/pod/goJson.ts';
import { hashNameAndImage, hashWholeSpec, matchesHash } from '../../../../src/machines/pod/runtime/containerHash.ts';

describe('container hash', () => {
  it('agrees with the published vectors of both forms', () => {
    expect(hashNameAndImage({ name: 'c1', image: 'busybox:1.36' })).toBe('b47ec1e2');
    expect(hashWholeSpec({ name: 'c1', image: 'busybox:1.36' })).toBe('c3885fef');
    expect(hashNameAndImage({ name: 'test_container', image: 'foo/image:v1' })).toBe('8e45cbd0');
  });

  it('recognises a container that an older node labelled, and none without a hash', () => {
    const c: Container = { name: 'c1', image: 'busybox:1.36' };
    expect(['c3885fef', 'B47EC1E2', '00000000b47ec1e2', 'deadbeef', ''].map((hex) => matchesHash(c, hex))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('encodes a definition as Go does: field order, zero values, pointers, canonical quantities, HTML escapes', () => {
    const c: Container = {
      tty: false,
      securityContext: { runAsUser: 0, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: false },
      env: [
        { name: 'A', value: '<&>\u2028\\b' },
        { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
      ],
      resources: { requests: { memory: '1024Ki', cpu: '0.5' } },
      ports: [{ containerPort: 80, hostPort: 0, protocol: 'TCP' }],
      livenessProbe: { httpGet: { path: '/', port: 'http', scheme: 'HTTP' }, initialDelaySeconds: 0, timeoutSeconds: 1 },
      image: 'i',
      name: 'c',
      args: [],
    };
    expect(encodeContainer(c)).toBe(
      '{"name":"c","image":"i","ports":[{"containerPort":80,"protocol":"TCP"}],' +
        '"env":[{"name":"A","value":"\\u003c\\u0026\\u003e\\u2028\\\\b"},{"name":"B","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}],' +
        '"resources":{"requests":{"cpu":"500m","memory":"1Mi"}},' +
        '"livenessProbe":{"httpGet":{"path":"/","port":"http","scheme":"HTTP"},"timeoutSeconds":1},' +
        '"securityContext":{"capabilities":{"drop":["ALL"]},"runAsUser":0,"readOnlyRootFilesystem":false}}',
    );
  });

  it('writes the annotations that a later node reads back', () => {
    expect(encodeHandler({ exec: { command: ['sh', '-c', 'sleep 1'] } })).toBe('{"exec":{"command":["sh","-c","sleep 1"]}}');
    expect(encodePorts([{ containerPort: 80, name: 'http', hostPort: 0 }])).toBe('[{"name":"http","containerPort":80}]');
  });
});
