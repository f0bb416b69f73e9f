/** What CRI is told of sandboxes and containers: traps. `golden/config` has the breadth. */
import { describe, expect, it } from 'vitest';
import type { Container, EnvVar } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { oomScoreAdj } from '../../../../src/machines/pod/resources/oomScore.ts';
import { podTotal } from '../../../../src/machines/pod/resources/podLevel.ts';
import { containerResources, sandboxResources } from '../../../../src/machines/pod/resources/resources.ts';
import { generateContainerConfig } from '../../../../src/machines/pods/workers/config/containerConfig.ts';
import { containerEnv } from '../../../../src/machines/pods/workers/config/env.ts';
import { generateSandboxConfig } from '../../../../src/machines/pods/workers/config/sandboxConfig.ts';
import { containerSecurity } from '../../../../src/machines/pods/workers/config/security.ts';
import { container, FACTS, pod, sidecar } from '../fixtures.ts';

const GI = 1024 ** 3;

describe('environment', () => {
  const env = (variables: EnvVar[], more: Partial<Container> = {}, p: Pod = pod()) =>
    containerEnv({ pod: p, container: container('web', { env: variables, ...more }), podIPs: ['10.0.0.5', 'fd00::5'], facts: FACTS });
  const values = (variables: EnvVar[], more: Partial<Container> = {}, p?: Pod) => {
    const result = env(variables, more, p);
    return result.ok ? Object.fromEntries(result.value.map((v) => [v.key, v.value])) : result.message;
  };

  it('names the addresses of the pod as its status does: the family of --node-ip first, one of each', () => {
    const variables = ['status.podIP', 'status.podIPs'].map((fieldPath) => ({ name: fieldPath, valueFrom: { fieldRef: { fieldPath } } }));
    const told = (more: { ipv6First?: boolean; hostIPs?: string[] }) => {
      const podIPs = ['10.0.0.5', 'fd00::5', '10.9.9.9'];
      const made = containerEnv({ pod: pod(), container: container('web', { env: variables }), podIPs, facts: { ...FACTS, ...more } });
      return made.ok ? made.value.map(({ value }) => value) : made.message;
    };
    expect(told({ ipv6First: true })).toEqual(['fd00::5', 'fd00::5,10.0.0.5']);
    // The address of a cloud, or of the node's name, is no --node-ip.
    expect(told({ hostIPs: ['fd00::10', '192.0.2.10'] })).toEqual(['10.0.0.5', '10.0.0.5,fd00::5']);
  });

  it('trap 50: resource references round up and fall back to what the node can give', () => {
    const ref = (name: string, resource: string, divisor?: string): EnvVar => ({
      name,
      valueFrom: { resourceFieldRef: { resource, ...(divisor === undefined ? {} : { divisor }) } },
    });
    const list = [
      ref('A', 'limits.cpu'),
      ref('B', 'limits.cpu', '1m'),
      ref('C', 'limits.memory', '1Mi'),
      ref('D', 'requests.memory'),
      ref('E', 'limits.ephemeral-storage', '1Gi'),
    ];
    expect(values(list, { resources: { limits: { cpu: '1500m' } } })).toEqual({ A: '2', B: '1500', C: '4096', D: '0', E: '20' });
  });
});

describe('Linux resources', () => {
  it('gives the least share to what asks for no cpu in so many words, whatever it may have', () => {
    const web = container('web', { resources: { requests: { cpu: '0' }, limits: { cpu: '2' } } });
    const of = pod({ containers: [web] });
    expect(containerResources(of, web, FACTS)).toMatchObject({ cpuShares: 2, cpuQuota: 200_000 });
    expect(sandboxResources(of, FACTS)).toMatchObject({ cpuShares: 2, cpuQuota: 200_000 });
  });

  it('scores by class, request and priority; a sidecar no higher than those it serves', () => {
    const burst = (memory: string) => container('web', { resources: { requests: { memory } } });
    const score = (c: Container, p = pod({ containers: [c] })) => oomScoreAdj(p, c, 4 * GI);
    expect(['1Gi', '1', '5Gi'].map((m) => score(burst(m)))).toEqual([750, 999, 3]);
    const all = { cpu: '1', memory: '1Gi' };
    expect(score(container('web', { resources: { limits: all, requests: all } }))).toBe(-997);
    expect(score(container('web'), pod({ priority: 2_000_001_000, priorityClassName: 'system-node-critical' }))).toBe(-997);
    const s1 = sidecar('s1');
    expect(score(s1, pod({ initContainers: [s1], containers: [burst('1Gi')] }))).toBe(750);
    const two = [burst('1Gi'), container('db', { resources: { requests: { memory: '2Gi' } } })];
    expect(score(s1, pod({ initContainers: [s1], containers: two }))).toBe(750);
  });

  it('totals a pod: containers and sidecars, or the neediest init container beside the sidecars before it', () => {
    const of = (cpu: string): Partial<Container> => ({ resources: { requests: { cpu } } });
    const p = (init: string) =>
      pod({
        initContainers: [sidecar('s', of('100m')), container('i', of(init))],
        containers: [container('a', of('1')), container('b', of('1'))],
      });
    expect([podTotal(p('1'), 'requests', 'cpu'), podTotal(p('5'), 'requests', 'cpu'), podTotal(p('1'), 'limits', 'cpu')]).toEqual([
      '2100m',
      '5100m',
      undefined,
    ]);
  });
});

describe('sandbox configuration', () => {
  it.each([
    ['unless it says otherwise', {}, 'CONTAINER'],
    ['unless it shares them', { shareProcessNamespace: true }, 'POD'],
    ["unless they are the host's", { hostPID: true }, 'NODE'],
  ])('CRI trap 5: each container of a pod has processes of its own, %s', (_what, spec, pid) => {
    const sandbox = generateSandboxConfig(pod(spec), { attempt: 0, facts: FACTS });
    expect(sandbox.ok && sandbox.config.linux?.securityContext?.namespaceOptions?.pid).toBe(pid);
    const of = { kind: 'regular', restartCount: 0, imageRef: 'i', imageUser: null, podIPs: [], facts: FACTS, mounts: [] } as const;
    const one = generateContainerConfig({ ...of, pod: pod(spec), container: container('web') });
    expect(one.ok && one.config.linux?.securityContext?.namespaceOptions?.pid).toBe(pid);
  });
});

describe('container configuration', () => {
  it('writes on the container what must be read back after a restart', () => {
    const web = container('web', {
      command: ['run', '$(A)'],
      args: ['$(B)'],
      env: [{ name: 'A', value: 'x' }],
      lifecycle: { preStop: { exec: { command: ['bye'] } }, stopSignal: 'SIGUSR1' },
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    });
    const result = generateContainerConfig({
      ...{ pod: pod({ containers: [web] }, { metadata: { deletionGracePeriodSeconds: 3 } }), container: web, kind: 'regular' },
      ...{
        restartCount: 2,
        imageRef: 'sha256:abc',
        imageUser: { uid: null, username: '' },
        podIPs: ['10.0.0.5'],
        facts: FACTS,
        mounts: [],
      },
    });
    expect(result).toMatchObject({
      ok: true,
      config: {
        metadata: { name: 'web', attempt: 2 },
        image: { image: 'sha256:abc', userSpecifiedImage: 'example.org/web:v1' },
        command: ['run', 'x'],
        args: ['$(B)'],
        logPath: 'web/2.log',
        stopSignal: 'SIGUSR1',
      },
    });
    expect(result.ok && result.config.labels).toEqual({
      'io.kubernetes.container.name': 'web',
      'io.kubernetes.pod.name': 'p',
      'io.kubernetes.pod.namespace': 'ns',
      'io.kubernetes.pod.uid': 'uid-1',
    });
    expect(result.ok && result.config.annotations).toEqual({
      'io.kubernetes.container.hash': expect.stringMatching(/^[0-9a-f]+$/),
      'io.kubernetes.container.restartCount': '2',
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
      'io.kubernetes.container.terminationMessagePolicy': 'File',
      'io.kubernetes.container.preStopHandler': '{"exec":{"command":["bye"]}}',
      'io.kubernetes.pod.deletionGracePeriod': '3',
      'io.kubernetes.pod.terminationGracePeriod': '30',
    });
  });

  it.each(['', 'Custom', 'unconfined', 'localhost', 'RuntimeDefault '])('what nobody knows (%j) starts no container', (type) => {
    const of = (context: object) => {
      const p = pod({ securityContext: context as never });
      return containerSecurity({ pod: p, container: container('web'), imageUser: null, facts: FACTS });
    };
    for (const field of ['seccompProfile', 'appArmorProfile'])
      expect(of({ [field]: { type, localhostProfile: 'x' } })).toMatchObject({ ok: false, message: expect.stringContaining(`"${type}"`) });
    expect(of({ supplementalGroupsPolicy: type })).toEqual({ ok: false, message: `unsupported supplementalGroupsPolicy: ${type}` });
  });
});
