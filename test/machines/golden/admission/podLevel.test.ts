/**
 * Resources of a pod as a whole (resources 1.1, 1.2, 1.5, 1.10): a row is a pod, and what is made of it: its class, what it
 * is weighed with, what each container is held to, and what of it cannot be kept. Memory of the node: 4 GiB.
 */
import type { Container, PodSpec } from '../../../../src/machines/kube/podTable.ts';
import { qosClass } from '../../../../src/machines/pod/resources/qos.ts';
import { requestOf, shortages } from '../../../../src/machines/pod/resources/requests.ts';
import { containerResources, sandboxResources } from '../../../../src/machines/pod/resources/resources.ts';
import { podFields } from '../../../../src/machines/pods/admission/supported.ts';
import { applyApiDefaults } from '../../../../src/machines/pods/sources/defaults.ts';
import { validatePod } from '../../../../src/machines/pods/sources/validate.ts';
import { type EnvInput, resourceValue } from '../../../../src/machines/pods/workers/config/env.ts';
import { container, FACTS, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const HUGE = 'hugepages-2Mi';
const facts = { ...FACTS, hugePageSizes: ['2Mi'] };
type Amounts = NonNullable<Container['resources']>;
const web = (resources: Amounts = {}) => container('web', { resources });
const log = (resources: Amounts = {}) => container('log', { resources });

function limitRead(c: Container, of: ReturnType<typeof pod>, resource: string): string {
  const input: Pick<EnvInput, 'pod' | 'container' | 'facts'> = { pod: of, container: c, facts };
  const value = resourceValue({ resource }, input as EnvInput);
  return value.ok ? value.value : value.message;
}

const row =
  (resources: Amounts, containers: Container[] = [web()], more: Partial<PodSpec> = {}) =>
  () => {
    const it = structuredClone(pod({ resources, containers, ...more }, { source: 'file' }));
    applyApiDefaults(it);
    const all = [...(it.spec.initContainers ?? []), ...it.spec.containers];
    return {
      asks: it.spec.resources,
      class: qosClass(it),
      weighed: Object.fromEntries(['cpu', 'memory', HUGE].map((r) => [r, requestOf(it, r)])),
      short: shortages(it, { others: [], podsMax: 10, allocatable: { cpu: '4', memory: '4Gi', [HUGE]: '8Mi' } }).map((s) => s.resource),
      sandbox: sandboxResources(it, facts),
      containers: Object.fromEntries(
        all.map((c) => [c.name, { ...containerResources(it, c, facts), reads: limitRead(c, it, 'limits.memory') }]),
      ),
      notKept: podFields(it).refused,
      invalid: validatePod(it)
        .list()
        .filter((what) => what.includes('resources')),
    };
  };

goldenTable('what a pod asks for as a whole is taken as recorded', 'admission/podLevel', {
  'requests and limits that are the same: guaranteed': row({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }),
  'limits alone: what it asks for is the same': row({ limits: { cpu: '1', memory: '1Gi' } }),
  'of one resource alone: burstable': row({ limits: { memory: '1Gi' } }),
  'less asked for than allowed: burstable': row({ requests: { cpu: '500m', memory: '1Gi' }, limits: { cpu: '2', memory: '2Gi' } }),
  'nothing said: the containers count': row({}, [web({ requests: { cpu: '100m' } })]),
  'nothing said by anybody: best effort': row({}),
  'a class in place of that of its containers': row({ requests: { cpu: '1', memory: '2Gi' } }, [
    web({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }),
  ]),
  'what is asked for is that of the containers where only limits are said': row({ limits: { memory: '2Gi' } }, [
    web({ requests: { cpu: '250m', memory: '512Mi' } }),
  ]),
  'more memory than its containers ask for: an equal share of the rest each': row({ requests: { memory: '3Gi' } }, [
    web({ requests: { memory: '1Gi' } }),
    log(),
  ]),
  'a sidecar and a regular init container have a share': row({ requests: { memory: '3Gi' } }, [web()], {
    initContainers: [sidecar('mesh'), container('setup')],
  }),
  'limits of containers are their own where they have some': row({ limits: { cpu: '2', memory: '2Gi' } }, [
    web({ limits: { cpu: '1500m', memory: '1Gi' } }),
    log({ limits: { cpu: '500m', memory: '1Gi' } }),
  ]),
  'limits that two containers together could go beyond are not kept': row({ limits: { cpu: '2', memory: '2Gi' } }, [web(), log()]),
  'one of them can be kept': row({ limits: { cpu: '2', memory: '2Gi' } }, [
    web({ limits: { cpu: '1' } }),
    log({ limits: { cpu: '1', memory: '100Mi' } }),
  ]),
  'an init container that ends is held to them by itself': row({ limits: { memory: '2Gi' } }, [web()], {
    initContainers: [container('setup')],
  }),
  'huge pages': row({ requests: { cpu: '1', [HUGE]: '4Mi' }, limits: { [HUGE]: '4Mi' } }),
  'more than the node has': row({ requests: { cpu: '5', memory: '5Gi', [HUGE]: '16Mi' }, limits: { [HUGE]: '16Mi' } }),
  'overhead is added': row({ requests: { cpu: '1', memory: '1Gi' } }, [web()], { overhead: { cpu: '250m', memory: '64Mi' } }),
  'what a pod as a whole cannot have': row({
    requests: { 'ephemeral-storage': '1Gi', 'example.com/gpu': '1', cpu: 'much' },
    limits: { cpu: '-1' },
  }),
  'less than its containers ask for or may have': row({ requests: { cpu: '1' }, limits: { cpu: '1' } }, [
    web({ requests: { cpu: '1' }, limits: { cpu: '2' } }),
    log({ requests: { cpu: '500m' } }),
  ]),
  'more asked for than allowed': row({ requests: { memory: '2Gi' }, limits: { memory: '1Gi' } }),
});
