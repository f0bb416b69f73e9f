/** What changes of cgroups took, under the reference's name. */
import { DEFAULT_SECONDS } from '../../../machines/text/buckets.ts';
import type { Cgroups } from '../../../ports/machine/cgroups.ts';
import type { Ports } from '../../../ports/ports.ts';

/** What the kernel leaves to pods, in the kubelet's families: of Guaranteed pods, and of Burstable ones. */
export function keptMemory({ metrics }: Pick<Ports, 'metrics'>): (kept: { minBytes: number; lowBytes: number }) => void {
  const min = metrics.gauge('kubelet_memory_qos_node_memory_min_bytes', 'Memory that Guaranteed pods keep whatever happens: memory.min');
  const low = metrics.gauge('kubelet_memory_qos_node_memory_low_bytes', 'Memory that is taken from Burstable pods last: memory.low');
  return ({ minBytes, lowBytes }) => {
    min.set(minBytes);
    low.set(lowBytes);
  };
}

/** The same port; its creations, updates and removals are measured. */
export function measuredCgroups(port: Cgroups, { metrics, clock }: Pick<Ports, 'metrics' | 'clock'>): Cgroups {
  const duration = metrics.histogram(
    'kubelet_cgroup_manager_duration_seconds',
    'Duration in seconds for cgroup manager operations. Broken down by method.',
    DEFAULT_SECONDS,
    ['operation_type'],
  );
  const measured =
    <A extends unknown[]>(operation_type: string, call: (...args: A) => Promise<void>) =>
    async (...args: A): Promise<void> => {
      const beganMs = clock.monoMs();
      try {
        await call(...args);
      } finally {
        duration.observe((clock.monoMs() - beganMs) / 1000, { operation_type });
      }
    };
  return new Proxy(port, {
    get(target, name: keyof Cgroups) {
      switch (name) {
        case 'create':
          return measured('create', target.create.bind(target));
        case 'apply':
          return measured('update', target.apply.bind(target));
        case 'remove':
          return measured('destroy', target.remove.bind(target));
        default: {
          const member = target[name];
          return typeof member === 'function' ? member.bind(target) : member;
        }
      }
    },
  });
}
