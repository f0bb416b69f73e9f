/** The real PodResources port against real gRPC on a unix socket. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createGrpcPodResources } from '../../../src/boot/dependencies/podResources/grpcPodResources.ts';
import type { PodResourcesAnswers } from '../../../src/ports/sockets/podResources.ts';
import { eachFolder } from '../../eachFolder.ts';
import { askPodResources } from '../../edge/podResourcesClient.ts';

const port = createGrpcPodResources();
const GPU = { resourceName: 'example.com/gpu', deviceIds: ['a'], topology: { nodes: [{ ID: 1 }] } };
const MEMORY = { memoryType: 'memory', size: 2 ** 40, topology: { nodes: [{ ID: 0 }, { ID: 1 }] } };
const POD = { name: 'p', namespace: 'n', containers: [{ name: 'c', devices: [GPU], cpuIds: [2, 3], memory: [MEMORY] }] };

let dir: string;
let answers: PodResourcesAnswers;

eachFolder((made) => {
  dir = made;
  answers = {
    admit: () => true,
    list: () => [POD],
    allocatable: () => ({ devices: [{ resourceName: 'example.com/gpu', deviceIds: ['b'] }], cpuIds: [0], memory: [] }),
    get: ({ name, namespace }) => {
      throw new Error(`pod ${name} in namespace ${namespace} not found`);
    },
  };
});

describe('the socket of the pod resources API', () => {
  it('answers version v1, and v1alpha1 without CPUs and NUMA nodes', async () => {
    const socket = join(dir, 'kubelet.sock');
    const server = await port.serve(socket, answers);
    const memory = { memoryType: 'memory', size: String(2 ** 40), topology: { nodes: [{ ID: '0' }, { ID: '1' }] } };
    const gpu = { resourceName: 'example.com/gpu', deviceIds: ['a'] };
    expect(await askPodResources(socket, 'List')).toEqual({
      podResources: [
        {
          name: 'p',
          namespace: 'n',
          containers: [
            {
              name: 'c',
              devices: [{ ...gpu, topology: { nodes: [{ ID: '1' }] } }],
              cpuIds: ['2', '3'],
              memory: [memory],
              dynamicResources: [],
            },
          ],
        },
      ],
    });
    expect(await askPodResources(socket, 'List', {}, 'v1alpha1')).toEqual({
      podResources: [{ name: 'p', namespace: 'n', containers: [{ name: 'c', devices: [gpu] }] }],
    });
    expect(await askPodResources(socket, 'GetAllocatableResources')).toEqual({
      devices: [{ resourceName: 'example.com/gpu', deviceIds: ['b'], topology: null }],
      cpuIds: ['0'],
      memory: [],
    });
    await server.close();
    expect(existsSync(socket)).toBe(false);
  });

  it('tells a caller what is wrong', async () => {
    const socket = join(dir, 'kubelet.sock');
    const server = await port.serve(socket, { ...answers, admit: () => calls++ < 1 });
    let calls = 0;
    await expect(askPodResources(socket, 'Get', { podName: 'x', podNamespace: 'y' })).rejects.toThrow(
      '2 UNKNOWN: pod x in namespace y not found',
    );
    await expect(askPodResources(socket, 'List')).rejects.toThrow('8 RESOURCE_EXHAUSTED: rejected by rate limit');
    await server.close();
    await expect(port.serve(join(dir, 'x'.repeat(120)), answers)).rejects.toThrow("a socket's may have 107");
  });
});
