/** The wire: what our .proto files and the loader's options make of values that are easy to lose. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadCriProto, loadEventsProto } from '../../src/boot/dependencies/cri/load.ts';
import { protoRoot } from '../../src/boot/dependencies/cri/protoPath.ts';
import type { CriCalls } from '../../src/machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../src/machines/wire/criMethods.ts';

const cri = loadCriProto();
function roundTrip<T extends object>(message: string, value: T): Record<string, unknown> {
  const type = cri.message(message);
  return type.deserialize(type.serialize(value)) as Record<string, unknown>;
}
const hex = (message: string, value: object) => cri.message(message).serialize(value).toString('hex');

describe('the CRI wire', () => {
  it('tells a user id of zero (root) from an absent one', () => {
    expect(hex('LinuxContainerSecurityContext', { runAsUser: { value: 0 } })).toBe('2a020800');
    expect(hex('LinuxContainerSecurityContext', {})).toBe('');
    expect(roundTrip('LinuxContainerSecurityContext', { runAsUser: { value: 0 } }).runAsUser).toEqual({ value: '0' });
    expect(roundTrip('LinuxContainerSecurityContext', {}).runAsUser).toBeNull();
  });

  it('reads a namespace option from field number 2', () => {
    // Namespace { options(2): NamespaceOption { pid(2): CONTAINER(1) } }
    const bytes = Buffer.from('12021001', 'hex');
    const namespace = cri.message('Namespace').deserialize(bytes) as { options: { pid: string; network: string } };
    expect(namespace.options.pid).toBe('CONTAINER');
    expect(namespace.options.network).toBe('POD');
  });

  it('keeps every digit of a time in nanoseconds', () => {
    const createdAt = '1795235363546401895';
    expect(Number.isSafeInteger(Number(createdAt))).toBe(false);
    expect(roundTrip('ContainerStatus', { createdAt }).createdAt).toBe(createdAt);
    expect(roundTrip('ContainerStatus', {}).finishedAt).toBe('0');
  });

  it('sends no pid mode as POD, so CONTAINER must be sent', () => {
    expect(roundTrip('NamespaceOption', {}).pid).toBe('POD');
    expect(hex('NamespaceOption', { pid: 'CONTAINER' })).toBe('1001');
  });

  it('shows an absent cgroup driver as absent, not as SYSTEMD', () => {
    expect(roundTrip('RuntimeConfigResponse', {}).linux).toBeNull();
    expect(roundTrip('RuntimeConfigResponse', { linux: { cgroupDriver: 'CGROUPFS' } }).linux).toEqual({ cgroupDriver: 'CGROUPFS' });
  });

  it('shows a missing image as null, empty lists as [] and empty maps as {}', () => {
    expect(roundTrip('ImageStatusResponse', {})).toEqual({ image: null, info: {} });
    expect(roundTrip('ListContainersResponse', {})).toEqual({ containers: [] });
  });

  it('ignores fields it does not know', () => {
    // id = "a", then field 900 (varint) of a later version.
    const bytes = Buffer.concat([cri.message('PodSandbox').serialize({ id: 'a' }), Buffer.from('a03801', 'hex')]);
    expect((cri.message('PodSandbox').deserialize(bytes) as { id: string }).id).toBe('a');
  });

  it('has every call that the node makes, in the service that the node sends it to', () => {
    for (const [method, facts] of Object.entries(CRI_METHODS)) {
      const definition = cri.method(facts.service, method);
      expect(definition.path).toBe(`/runtime.v1.${facts.service === 'image' ? 'ImageService' : 'RuntimeService'}/${method}`);
      expect(definition.responseStream).toBe(false);
    }
    expect(cri.method('runtime', 'GetContainerEvents').responseStream).toBe(true);
  });

  it('keeps a whole sandbox request as it was written', () => {
    const request: CriCalls['RunPodSandbox']['req'] = {
      config: {
        metadata: { name: 'web', uid: 'u', namespace: 'default', attempt: 2 },
        hostname: 'web',
        portMappings: [{ protocol: 'UDP', containerPort: 53, hostPort: 0, hostIp: '' }],
        labels: { 'io.kubernetes.pod.uid': 'u' },
        linux: {
          securityContext: { namespaceOptions: { network: 'NODE', pid: 'CONTAINER' }, supplementalGroups: [1000, '2000'] },
          sysctls: { 'a.b': '1' },
        },
      },
    };
    const back = roundTrip('RunPodSandboxRequest', request).config as Record<string, unknown>;
    expect(back.metadata).toEqual(request.config.metadata);
    expect(back.portMappings).toEqual(request.config.portMappings);
    expect(back.linux).toMatchObject({
      sysctls: { 'a.b': '1' },
      securityContext: { supplementalGroups: ['1000', '2000'], privileged: false, runAsUser: null },
    });
  });

  it('reads an exit from the bytes of containerd', () => {
    // container_id(1)="c", id(2)="c", pid(3)=7, exit_status(4)=137, and a field 6 we do not know.
    const bytes = Buffer.from('0a016312016318072089013001', 'hex');
    expect(loadEventsProto().decode('TaskExit', bytes)).toMatchObject({ containerId: 'c', id: 'c', exitStatus: 137 });
    expect(loadEventsProto().decode('SomethingElse', bytes)).toBeUndefined();
  });
});

describe('the folder of .proto files', () => {
  it('is found from a source file and from a bundle in dist/', () => {
    const root = protoRoot();
    expect(existsSync(join(root, 'runtime/v1/api.proto'))).toBe(true);
    expect(protoRoot(pathToFileURL(join(root, '..', 'dist', 'actorlet.mjs')).href)).toBe(root);
  });
  it('is missed with a message that says where it was looked for', () => {
    expect(() => protoRoot('file:///nowhere/dist/actorlet.mjs')).toThrow(/\/nowhere\/dist/);
  });
});
