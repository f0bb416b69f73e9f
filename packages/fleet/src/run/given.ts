/** What callers of the library give: manifests, fault scenarios and expectations, in the words of the fleet file. */
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { Scenario } from '@actorlet/faults/src/types.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { decodeFleet } from '../file.ts';
import type { ExpectSpec } from '../spec/expect.ts';
import type { ClockSpec } from '../spec/hardware/clocks.ts';
import type { VolumeFault } from '../spec/hardware/storage.ts';
import { isManifest, objectsOf } from '../spec/objects.ts';
import type { ApiStep } from '../spec/steps.ts';
import { asked, isAsked } from './asked.ts';
import type { Cluster } from './cluster.ts';
import { Expectation } from './expectation.ts';
import { type Measured, measured } from './measure.ts';
import type { ApiFaultOf, ClockOf, FleetExpectation, Manifest, VolumeFaultOf } from './words.ts';

const WITHIN = '60s';
/** What is given is read as in a file. */
const FILE = { apiVersion: 'actorlet.dev/v1alpha1', kind: 'Fleet', metadata: { name: 'given' } };
const ANY_GROUP = { name: 'a', count: 1 };
/** How often nodes and objects are looked at. */
const LOOK_EVERY_MS = 250;

/** @throws Error that says what is no manifest. */
export function manifestsOf(manifest: Manifest): KubeObject[] {
  if (typeof manifest === 'string') {
    try {
      return objectsOf(manifest);
    } catch (error) {
      throw new Error(`the manifest ${messageOf(error)}`);
    }
  }
  return [manifest].flat().map((object: unknown) => {
    if (isManifest(object)) return object;
    throw new Error('the manifest has an object without apiVersion, kind or metadata.name');
  });
}

/** @throws Error with the line and the field. */
export function scenarioOf(scenario: string | object): Scenario {
  const decoded = decodeScenario(typeof scenario === 'string' ? scenario : JSON.stringify(scenario), 'live');
  if (decoded.ok) return decoded.scenario;
  throw new Error(decoded.errors.map((e) => scenarioErrorText('scenario', e)).join('\n'));
}

/** @throws Error with the field. */
export function apiFaultOf(fault: ApiFaultOf): ApiStep {
  const decoded = decodeFleet(JSON.stringify({ ...FILE, spec: { groups: [ANY_GROUP], steps: [{ at: '0s', do: 'inject', api: fault }] } }));
  if (!decoded.ok) throw new Error(told(decoded.errors, { what: 'injectApi', below: 'steps[0].api' }));
  const [step] = decoded.value.steps;
  if (step === undefined || !('api' in step)) throw new Error('injectApi: no fault is given');
  return { ...step, name: step.api.fault };
}

/** @throws Error with the field. */
export function clockOf(clock: ClockOf): ClockSpec | null {
  const decoded = decodeFleet(JSON.stringify({ ...FILE, spec: { groups: [{ ...ANY_GROUP, clock }] } }));
  if (!decoded.ok) throw new Error(told(decoded.errors, { what: 'setClocks', below: 'groups[0].clock' }));
  return decoded.value.groups[0]?.clock ?? null;
}

/** @throws Error with the field. */
export function volumeFaultOf(volumes: VolumeFaultOf): VolumeFault {
  const steps = [{ at: '0s', do: 'inject', volumes }];
  const decoded = decodeFleet(JSON.stringify({ ...FILE, spec: { groups: [ANY_GROUP], storage: [{ name: 'a' }], steps } }));
  if (!decoded.ok) throw new Error(told(decoded.errors, { what: 'injectVolumes', below: 'steps[0].volumes' }));
  const [step] = decoded.value.steps;
  if (step?.do !== 'volumes' || step.fault === null) throw new Error('injectVolumes: no fault is given');
  return step.fault;
}

function told(errors: readonly { field: string; message: string }[], { what, below }: { what: string; below: string }): string {
  const prefix = `spec.${below}`;
  const within = (field: string): string => (field.startsWith(prefix) ? field.slice(prefix.length).replace(/^\./, '') : field);
  return errors.map(({ field, message }) => `${what}: ${`${within(field)} ${message}`.trim()}`).join('\n');
}

/** @throws Error with the field. */
export function specOf(expectation: FleetExpectation): ExpectSpec {
  const { seconds, calls, requests } = expectation;
  const within = seconds === undefined && calls === undefined && requests === undefined ? { within: WITHIN } : {};
  // Steps: an expectation that is decided at once is none of a run without an end.
  const steps = [{ at: '0s', do: 'restart' }];
  const decoded = decodeFleet(JSON.stringify({ ...FILE, spec: { groups: [ANY_GROUP], steps, expect: [{ ...within, ...expectation }] } }));
  if (!decoded.ok) throw new Error(told(decoded.errors, { what: 'expect', below: 'expect[0]' }));
  const [spec] = decoded.value.expect;
  if (spec === undefined) throw new Error('expect: nothing is expected');
  return spec;
}

/** Gives what was there when it was met. @throws Error with what there is when it is not met in time. */
export async function lookUntilDecided(spec: ExpectSpec, o: Measured & { cluster: Cluster; clock: Clock }): Promise<number> {
  const { fleet, cluster, clock } = o;
  const fromMs = clock.monoMs();
  const it = new Expectation(spec);
  const { measure } = spec;
  let trouble = '';
  while (!it.decided) {
    const value = isAsked(measure)
      ? await asked(cluster, measure).catch((error: unknown) => {
          trouble = messageOf(error);
          return null;
        })
      : measured(o, measure, fleet.overview());
    if (value !== null) trouble = '';
    it.look(value, clock.monoMs() - fromMs, spec.withinMs === null);
    if (!it.decided) await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOOK_EVERY_MS));
  }
  const { is, metMs } = it.report();
  if (metMs !== null) return is ?? 0;
  const seconds = ((clock.monoMs() - fromMs) / 1_000).toFixed(1);
  const seen = is === null ? `it could not be seen${trouble === '' ? '' : ` (${trouble})`}` : `there is ${is}`;
  throw new Error(`not met after ${seconds} s: ${spec.name}; ${seen}`);
}
