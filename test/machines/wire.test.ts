import { expectTypeOf, it } from 'vitest';
import type { NodeObject, NodeStatus } from '../../src/machines/api/node/nodeObject.ts';
import type { ContainerStatus, PodStatus } from '../../src/machines/kube/types.ts';
import type { WireNode, WirePodStatus } from '../../src/machines/kube/wire.ts';

// Held by the compiler; when it runs there is nothing left of it.
it('what is said of pods and of the node has the fields of the API, of its types', () => {
  // Amounts come from manifests as numbers, too, and stay so.
  type Amounts = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses' | 'resources' | 'allocatedResources';
  expectTypeOf<Omit<PodStatus, Amounts>>().toExtend<Omit<WirePodStatus, Amounts>>();
  expectTypeOf<keyof ContainerStatus>().toExtend<keyof NonNullable<WirePodStatus['containerStatuses']>[number]>();
  expectTypeOf<keyof PodStatus>().toExtend<keyof WirePodStatus>();
  expectTypeOf<NodeObject['spec']>().toExtend<NonNullable<WireNode['spec']>>();
  expectTypeOf<NonNullable<NodeStatus['conditions']>>().toExtend<NonNullable<NonNullable<WireNode['status']>['conditions']>>();
});
