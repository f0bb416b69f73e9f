/** What a run of a fleet reads: the fleet file, and the files beside it that it names. */
import { dirname, resolve } from 'node:path';
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { Scenario, ScenarioError } from '@actorlet/faults/src/types.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import { decodeFleet, type FleetSpec, plainFleet, withFaults } from '../file.ts';
import { stagesOf } from '../pods/stages.ts';
import { objectsOf } from '../spec/objects.ts';
import { type Args, UsageError } from './args.ts';

export interface Inputs {
  spec: FleetSpec;
  /** By their names in the steps. */
  scenarios: ReadonlyMap<string, Scenario>;
  manifests: ReadonlyMap<string, readonly KubeObject[]>;
  /** What of the KWOK Stages has no effect here. */
  notes: readonly string[];
}

/** @throws UsageError that names the file and what is wrong with it. */
export async function inputsOf(args: Args): Promise<Inputs> {
  if (args.file === undefined) {
    return { spec: plainFleet({ ...args, nodes: args.nodes ?? 0 }), scenarios: new Map(), manifests: new Map(), notes: [] };
  }
  const text = fleetText(args.file);
  const beside = besideOf(args.file);
  const read = decodeFleet(text, beside.unreadable);
  if (!read.ok) throw new UsageError(told(args.file, read.errors));
  const { spec, notes } = withStages(read.value, beside);
  const scenarios = all(
    spec.steps.flatMap((step) => ('scenario' in step ? [step.scenario] : [])),
    beside,
    (text, path) => {
      const decoded = decodeScenario(text, 'live');
      if (!decoded.ok) throw new UsageError(told(path, decoded.errors));
      return decoded.scenario;
    },
  );
  const manifests = all(
    spec.steps.flatMap((step) => ('manifests' in step ? step.manifests : [])),
    beside,
    objectsIn,
  );
  return { spec, scenarios, manifests, notes };
}

/** Of a proxy alone: the faults of the file, with those that its seed draws. @throws UsageError as {@link inputsOf}. */
export function faultsIn(file: string): FleetSpec {
  const read = decodeFleet(fleetText(file), besideOf(file).unreadable, 'nothing');
  if (!read.ok) throw new UsageError(told(file, read.errors));
  const spec = withFaults(read.value);
  const other = spec.steps.find((step) => !('api' in step));
  if (other !== undefined)
    throw new UsageError(`${file}: spec.steps: ${other.do} is a step of a fleet; a proxy carries out inject with api alone`);
  if (spec.expect.length > 0) throw new UsageError(`${file}: spec.expect: expectations are of a fleet; a proxy has none`);
  return spec;
}

function fleetText(file: string): string {
  try {
    return readGivenSync(file);
  } catch (error) {
    throw new UsageError(`the fleet file ${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Files that the fleet file names. */
interface Beside {
  path(name: string): string;
  /** Null: it was read. */
  unreadable(name: string): string | null;
  text(name: string): string;
}

function besideOf(file: string): Beside {
  const texts = new Map<string, string>();
  const path = (name: string): string => resolve(dirname(file), name);
  return {
    path,
    unreadable(name) {
      try {
        texts.set(name, readGivenSync(path(name)));
        return null;
      } catch (error) {
        return messageOf(error);
      }
    },
    text: (name) => texts.get(name) ?? '',
  };
}

function all<T>(names: readonly string[], beside: Beside, read: (text: string, path: string) => T): Map<string, T> {
  return new Map([...new Set(names)].map((name) => [name, read(beside.text(name), beside.path(name))]));
}

function objectsIn(text: string, path: string): KubeObject[] {
  try {
    const objects = objectsOf(text);
    if (objects.length === 0) throw new Error('holds no object');
    return objects;
  } catch (error) {
    throw new UsageError(`${path} ${messageOf(error)}`);
  }
}

/** Rules of the file come before those of Stages. */
function withStages(spec: FleetSpec, beside: Beside): { spec: FleetSpec; notes: string[] } {
  const files = all(spec.stages, beside, stagesOf);
  const refused = [...files].flatMap(([name, { refused: why }]) => why.map((one) => `${beside.path(name)}: ${one}`));
  if (refused.length > 0) throw new UsageError(refused.join('\n'));
  const stages = [...files.values()];
  const beats = stages.flatMap(({ heartbeatMs }) => (heartbeatMs === null ? [] : [heartbeatMs]));
  return {
    spec: {
      ...spec,
      pods: [...spec.pods, ...stages.flatMap(({ rules }) => rules)],
      heartbeatMs: beats.length === 0 ? null : Math.min(...beats),
    },
    notes: stages.flatMap(({ notes }) => notes),
  };
}

function told(file: string, errors: readonly ScenarioError[]): string {
  return errors.map((e) => scenarioErrorText(file, e)).join('\n');
}
