/**
 * Each family of the kubelet's /metrics is served by this node as the kubelet serves it, or left out with a reason; and
 * docs/differences-metrics.md is written from the table of reasons. What the node serves is what metrics.json has.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TARGET_MAJOR, TARGET_MINOR } from '../../../../src/boot/version.ts';
import { KNOWN_VALUES } from '../../../reference/known.ts';
import { LEFT_OUT_METRICS } from '../../../reference/leftOut/leftOut.ts';
import reference from '../../../reference/recorded/metrics136.json' with { type: 'json' };
import unsampled from '../../../reference/recorded/metricsUnsampled136.json' with { type: 'json' };
import { readGolden } from '../golden.ts';

interface Family {
  type: string;
  labels: readonly string[];
}
const PAGE = join(import.meta.dirname, '../../../../docs/differences-metrics.md');
/** This daemon's own, and those that are served on other pages than /metrics. */
const NOT_OF_THE_PAGE = /^(actorlet_|prober_|kubernetes_healthcheck)/;

/** Of these the node that was recorded had no samples. The kubelet registers them all the same. */
const kubelet = new Map<string, Family>([...Object.entries(reference), ...Object.entries(unsampled)]);
const leftOut = new Map(LEFT_OUT_METRICS.flatMap(({ why, families }) => families.map((name) => [name, why] as const)));

function isFamily(value: unknown): value is Family {
  return typeof value === 'object' && value !== null && 'type' in value && 'labels' in value;
}
function served(): Map<string, Family> {
  const found = new Map<string, Family>();
  for (const [row, value] of Object.entries(readGolden('edge/metrics'))) {
    if (isFamily(value)) found.set(row.slice(row.indexOf(' ') + 1), { type: value.type, labels: value.labels });
    else for (const [name, family] of Object.entries(value ?? {})) if (isFamily(family)) found.set(name, family);
  }
  return found;
}

describe('families of /metrics', () => {
  it('of the kubelet are served or left out with a reason, and never both', () => {
    const here = served();
    expect(here.size).toBeGreaterThan(100);
    const names = [...kubelet.keys()];
    expect(names.filter((name) => !here.has(name) && !leftOut.has(name))).toEqual([]);
    expect(names.filter((name) => here.has(name) && leftOut.has(name))).toEqual([]);
  });

  it('that are served have the type and the labels of the kubelet', () => {
    const here = served();
    for (const [name, family] of kubelet) if (here.has(name)) expect([name, here.get(name)]).toEqual([name, family]);
  });

  it('that the kubelet has not are this daemon’s own by their name', () => {
    expect([...served().keys()].filter((name) => !kubelet.has(name) && !NOT_OF_THE_PAGE.test(name))).toEqual([]);
  });

  it('that are left out are families of the kubelet, each named once', () => {
    const all = LEFT_OUT_METRICS.flatMap(({ families }) => families);
    expect(all.filter((name) => !kubelet.has(name))).toEqual([]);
    expect(all.length).toBe(leftOut.size);
  });
});

function page(): string {
  const rows = LEFT_OUT_METRICS.map(({ why, families }) => `| ${families.map((name) => `\`${name}\``).join(', ')} | ${why} |`);
  return [
    '# Metrics that differ from the kubelet',
    `Compared with \`/metrics\` of the kubelet of Kubernetes ${TARGET_MAJOR}.${TARGET_MINOR}. A test writes this page from the table in [leftOutMetrics.json](../test/reference/leftOut/leftOutMetrics.json). To update it, run \`npm run golden -- test/machines/golden/edge/leftOutMetrics.test.ts\`.`,
    'All other families of such a kubelet are here, with its names, types, labels and buckets. That includes families without samples on the node that was recorded.',
    '## Families that are left out',
    ['| family | reason |', '| --- | --- |', ...rows].join('\n'),
    '## Other values',
    [
      '- `kubelet_metrics_provider` says `cadvisor`, as in the kubelet, until the gate `PodAndContainerStatsFromCRI` is on. There is no cAdvisor: figures come from the runtime (`ListContainerStats`) and from cgroups.',
      '- `kubelet_image_volume_mounted_succeed_total` counts volumes of containers that were created. The kubelet also counts those of containers that failed for another reason.',
      '- `kubelet_device_plugin_registration_total` counts registrations that succeeded. The kubelet also counts those that it refuses, under whatever name they ask for.',
      '- `kubelet_sleep_action_terminated_early_total` counts sleeps that the grace period cut short. The kubelet counts those that a shorter grace period ended.',
      '- `kubelet_terminated_containers_total` counts each end once. The kubelet misses an end when the container runs or waits again in the next status.',
      '- `kubelet_cpu_manager_exclusive_cpu_allocation_count` and `kubelet_cpu_manager_shared_pool_size_millicores` count a CPU once. The kubelet counts it again for each init container that leaves it to the next.',
      '- `kubelet_memory_manager_pinning_requests_total` does not count containers of a pod that the CPU manager refused. The kubelet counts those before the refused one.',
      '- `kubernetes_feature_enabled` also has gates that 1.36 no longer has and this daemon still accepts.',
      '- `kubernetes_healthcheck` and `prober_probe_total` have pages of their own, `/metrics/slis` and `/metrics/probes`, as in the kubelet.',
      '- Families of Go (`go_*`) are not there. `nodejs_*` tells of the process instead.',
    ].join('\n'),
    '## Values of `/metrics/cadvisor`, `/metrics/resource` and `/stats/summary`',
    'Both agents ran the same 90 pods on one containerd, and all rows were compared ([compare.ts](../test/reference/compare.ts)). What differs:',
    KNOWN_VALUES.map(([, why]) => `- ${why}`).join('\n'),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

it('docs/differences-metrics.md is what the table says', () => {
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(PAGE, page());
  expect(readFileSync(PAGE, 'utf8')).toBe(page());
});
