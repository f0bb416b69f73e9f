/** `actorctl inject`: faults in a running daemon. */

import { type AdminClient, CtlError, EXIT, refusal } from '@actorlet/admin/src/client.ts';
import { type InjectionView, planLive } from '@actorlet/faults/src/live.ts';
import { decodeScenario, SCENARIO_BYTES_MAX, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import { SCENARIO_API_VERSION, SCENARIO_KIND } from '@actorlet/faults/src/table.ts';
import type { ScenarioError } from '@actorlet/faults/src/types.ts';
import { findSummary, podMeant } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { type ActorView, findActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { printable, renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { actorNamed } from '../../actorNamed.ts';
import type { CtlIo } from '../../io.ts';

/** One fault as the file would have it. */
export type FaultEntry = Readonly<Record<string, unknown>> & { kind: string };
export type InjectRequest =
  | { do: 'file'; file: string }
  /** One fault from flags; `name` becomes the scenario's. */
  | { do: 'fault'; name: string; fault: FaultEntry }
  | { do: 'kill'; target: readonly string[] }
  | { do: 'list' }
  | { do: 'stop'; id: string | undefined; all: boolean };

interface Accepted {
  injection: InjectionView;
  warnings: readonly string[];
}

export async function runInject(io: CtlIo, client: AdminClient, o: { request: InjectRequest; json: boolean }): Promise<number> {
  const { request, json } = o;
  switch (request.do) {
    case 'list':
      return list(io, client, json);
    case 'stop':
      return stop(io, client, { ...request, json });
    case 'kill':
      return kill(io, client, { target: request.target, json });
    case 'fault': {
      const text = scenarioOf(request.name, request.fault);
      const decoded = decodeScenario(text, 'live');
      if (!decoded.ok) throw new CtlError(EXIT.usage, decoded.errors.map(flagError).join('\n'));
      const plan = planLive(decoded.scenario, '');
      if (!plan.ok)
        throw new CtlError(
          EXIT.usage,
          plan.errors.map((e) => (e.field.startsWith('fault ') ? `--for: ${e.message}` : e.message)).join('\n'),
        );
      return tell(io, await send(client, text), json);
    }
    case 'file': {
      const text = await scenarioText(io, request.file);
      const shown = request.file === '-' ? 'stdin' : request.file;
      const decoded = decodeScenario(text, 'live');
      if (!decoded.ok) throw new CtlError(EXIT.usage, decoded.errors.map((e) => scenarioErrorText(shown, e)).join('\n'));
      return tell(io, await send(client, text), json);
    }
  }
}

// ---- sending -------------------------------------------------------------------------------------------------------

function scenarioOf(name: string, fault: FaultEntry): string {
  return JSON.stringify({ apiVersion: SCENARIO_API_VERSION, kind: SCENARIO_KIND, metadata: { name }, spec: { faults: [fault] } });
}

async function send(client: AdminClient, text: string): Promise<Accepted> {
  const answer = await client.send('POST', '/inject', { type: 'application/yaml', text });
  if (answer.status !== 200) throw refusal(answer);
  return JSON.parse(answer.body) as Accepted;
}

async function scenarioText(io: CtlIo, file: string): Promise<string> {
  if (file !== '-') {
    try {
      return readGivenSync(file);
    } catch (error) {
      throw new CtlError(EXIT.usage, `${file} cannot be read: ${messageOf(error)}`);
    }
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of io.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > SCENARIO_BYTES_MAX)
      throw new CtlError(EXIT.usage, `stdin holds more than ${SCENARIO_BYTES_MAX} bytes; that is no scenario.`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Names of fields by the flags that fill them, where they differ. */
const FLAGS: Readonly<Record<string, string>> = {
  methods: 'method',
  namespaces: 'namespace',
  pods: 'pod',
  containers: 'container',
  paths: 'path',
  ops: 'op',
  hints: 'event',
  code: 'error',
};
function flagError(e: ScenarioError): string {
  const field = e.field
    .replace(/^spec\.faults\[0\]\.?/, '')
    .replace(/^select\.?/, '')
    .replace(/\[\d+\]$/, '');
  return field === '' ? e.message : `--${FLAGS[field] ?? field}: ${e.message}`;
}

function tell(io: CtlIo, { injection, warnings }: Accepted, json: boolean): number {
  if (json) io.out(`${JSON.stringify({ injection, warnings }, null, 2)}\n`);
  else {
    const end = injection.endsInMs === 0 ? 'it is done' : `healed in ${shortDuration(injection.endsInMs)} at the latest`;
    io.out(`${printable(injection.id)}: ${end}\n`);
    for (const f of injection.faults) io.out(`  ${printable(`${f.name}: ${f.when}: ${f.what}`)}\n`);
  }
  for (const w of warnings) io.err(`warning: ${printable(w)}\n`);
  const missed = injection.faults.filter((f) => f.missed !== '');
  for (const f of missed) io.err(`${printable(`${f.name} hit nothing: ${f.missed}`)}\n`);
  return missed.length > 0 ? EXIT.no : EXIT.ok;
}

// ---- kill ----------------------------------------------------------------------------------------------------------

async function kill(io: CtlIo, client: AdminClient, o: { target: readonly string[]; json: boolean }): Promise<number> {
  const [first = '', second, ...more] = o.target;
  if (more.length > 0 || (second !== undefined && first !== 'pod'))
    throw new CtlError(EXIT.usage, 'kill takes the path of an actor, or: pod NAME.');
  const state = (await client.json('/statez')) as ActorView;
  const path = second === undefined ? await actorPath(client, state, first) : await workerPath(client, state, second);
  const fault = { name: 'kill', kind: 'actor.kill', select: { actors: [path] } };
  const accepted = await send(client, scenarioOf('kill', fault));
  if (o.json) return tell(io, accepted, true);
  const missed = accepted.injection.faults.find((f) => f.missed !== '');
  if (missed !== undefined) throw new CtlError(EXIT.no, `${path} was not killed: ${missed.missed}.`);
  io.out(`killed ${printable(path)}; its supervisor starts it again\n`);
  return EXIT.ok;
}

async function actorPath(client: AdminClient, state: ActorView, text: string): Promise<string> {
  if (/[*?]/.test(text)) throw new CtlError(EXIT.usage, `kill takes one actor; a pattern such as ${text} belongs into a scenario file.`);
  const path = await actorNamed(client, state, text);
  if (path === state.path)
    throw new CtlError(EXIT.no, `${path} is the root: nothing is above it to start it again. End the process instead.`);
  return path;
}

async function workerPath(client: AdminClient, state: ActorView, query: string): Promise<string> {
  const { pods } = (await client.json('/pods')) as { pods: readonly PodSummary[] };
  const found = findSummary(query, pods);
  if (found.kind === 'none') throw new CtlError(EXIT.no, `no pod called ${query} on this node${podMeant(query, pods)}.`);
  if (found.kind === 'many')
    throw new CtlError(EXIT.no, `${query} fits several pods, say which:\n${found.names.map((name) => `  ${name}`).join('\n')}`);
  const { namespace, name, reason, phase } = found.record.summary;
  const path = `${workersAddr.path}/${found.uid}`;
  if (findActor(state, path) === undefined) throw new CtlError(EXIT.no, `pod ${namespace}/${name} has no worker: ${reason || phase}.`);
  return path;
}

// ---- list and stop -------------------------------------------------------------------------------------------------

async function list(io: CtlIo, client: AdminClient, json: boolean): Promise<number> {
  const { injections } = (await client.json('/inject')) as { injections: readonly InjectionView[] };
  if (json) io.out(`${JSON.stringify(injections, null, 2)}\n`);
  else if (injections.length === 0) io.out('Nothing is injected.\n');
  else {
    const rows = injections.flatMap((i) =>
      i.faults.map((f) => [
        i.id,
        f.name,
        f.phase,
        String(f.hits),
        f.changesInMs === null ? '-' : `${f.phase === 'active' ? 'ends' : 'begins'} in ${shortDuration(f.changesInMs)}`,
        shortDuration(i.endsInMs),
        `${f.what}${f.missed === '' ? '' : ` [last time it hit nothing: ${f.missed}]`}`,
      ]),
    );
    const head = ['ID', 'FAULT', 'PHASE', 'HITS', 'NEXT', 'ENDS IN', 'WHAT'];
    io.out(
      renderTable(head, rows, { widthMax: io.columns })
        .map((l) => `${l}\n`)
        .join(''),
    );
  }
  return EXIT.ok;
}

async function stop(io: CtlIo, client: AdminClient, o: { id: string | undefined; all: boolean; json: boolean }): Promise<number> {
  if ((o.id === undefined) === !o.all) throw new CtlError(EXIT.usage, 'stop: say which one, an ID of actorctl inject list, or --all.');
  const answer = await client.send('DELETE', o.id === undefined ? '/inject' : `/inject/${encodeURIComponent(o.id)}`);
  if (answer.status !== 200) throw refusal(answer);
  const { stopped } = JSON.parse(answer.body) as { stopped: readonly string[] };
  if (o.json) io.out(`${JSON.stringify({ stopped }, null, 2)}\n`);
  else io.out(stopped.length === 0 ? 'Nothing was injected.\n' : stopped.map((id) => `healed ${printable(id)}\n`).join(''));
  return EXIT.ok;
}
