import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Families of the kubelet's /metrics that this node does not serve, and why: docs/differences-metrics.md, in the order of the page. */
export const LEFT_OUT_METRICS = JSON.parse(readFileSync(join(import.meta.dirname, 'leftOutMetrics.json'), 'utf8')) as readonly {
  why: string;
  families: readonly string[];
}[];

const NO_LOAD_READER = 'The reference writes 0: its kubelet does not start the part of cAdvisor that measures this.';
const ONE_ARCHITECTURE = 'Only s390x machines have these; everywhere else the reference writes 0.';
const NO_LIBRARY = 'The reference writes 0: its kubelet is built without the library that reads persistent memory.';

/** Families of /metrics/cadvisor that the reference kubelet 1.36 has and this page has not, each with the reason. */
export const CADVISOR_LEFT_OUT: Readonly<Record<string, string>> = {
  container_cpu_load_average_10s: NO_LOAD_READER,
  container_cpu_load_d_average_10s: NO_LOAD_READER,
  container_tasks_state: NO_LOAD_READER,
  container_health_state: 'The reference writes -1: only Docker tells the health of a container, and the runtime is never Docker.',
  machine_cpu_books: ONE_ARCHITECTURE,
  machine_cpu_drawers: ONE_ARCHITECTURE,
  machine_nvm_avg_power_budget_watts: NO_LIBRARY,
  machine_nvm_capacity: NO_LIBRARY,
};
