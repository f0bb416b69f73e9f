/** Faults in a running test node, through its admin socket. */

import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type AdminAnswer, refusal } from '@actorlet/admin/src/client.ts';
import type { InjectionView } from '@actorlet/faults/src/live.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { readGivenSync } from '@actorlet/process/src/givenFile.ts';

/** A scenario as an object, as YAML text (anything with a line break or a brace in front), or the path or `file:` URL of a file. */
export type ScenarioInput = string | object | URL;

/** Faults that were injected together. Disposing it stops them. */
export interface Injected extends AsyncDisposable {
  /** By which the node names them. */
  readonly id: string;
  /** What the node had to remark, such as faults aimed at nothing. */
  readonly warnings: readonly string[];
  /** Heals what still lasts of them; what is over already is no error. */
  stop(): Promise<void>;
  /** How far they are; undefined once they are over. */
  status(): Promise<InjectionView | undefined>;
}

const TIMEOUT_MS = 30_000;

/** Text of a scenario. JSON is YAML. */
export function scenarioText(input: ScenarioInput): string {
  if (input instanceof URL) return readGivenSync(fileURLToPath(input));
  if (typeof input !== 'string') return JSON.stringify(input, null, 2);
  if (/\n|^\s*\{/.test(input)) return input;
  try {
    return readGivenSync(input);
  } catch (error) {
    throw new Error(`the scenario cannot be read: ${messageOf(error)}; a text of one line is taken for a path`, { cause: error });
  }
}

/** @throws with line and field of everything wrong with the scenario, in the node's words. */
export async function inject(socketPath: string, text: string, on: (what: string) => void): Promise<Injected> {
  const ask = async (method: string, path: string, body?: string): Promise<unknown> => {
    const answer = await send(socketPath, { method, path, ...(body === undefined ? {} : { body }) });
    if (answer.status !== 200) throw refusal(answer);
    return JSON.parse(answer.body) as unknown;
  };
  const { injection, warnings } = (await ask('POST', '/inject', text)) as { injection: InjectionView; warnings?: readonly string[] };
  const { id } = injection;
  on(`injected ${id}: ${injection.faults.map((f) => `${f.name} (${f.what})`).join(', ')}`);
  const status = async (): Promise<InjectionView | undefined> => {
    const { injections } = (await ask('GET', '/inject')) as { injections: readonly InjectionView[] };
    return injections.find((i) => i.id === id);
  };
  const stop = async (): Promise<void> => {
    const answer = await send(socketPath, { method: 'DELETE', path: `/inject/${encodeURIComponent(id)}` });
    // Over already, or gone with a daemon that was restarted.
    if (answer.status !== 200 && answer.status !== 404) throw refusal(answer);
    on(`stopped ${id}`);
  };
  return { id, warnings: warnings ?? [], status, stop, [Symbol.asyncDispose]: stop };
}

function send(socketPath: string, o: { method: string; path: string; body?: string }): Promise<AdminAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'actorlet', 'content-type': 'application/yaml' };
    const req = request({ socketPath, path: o.path, method: o.method, timeout: TIMEOUT_MS, headers }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }));
      res.on('error', reject);
    });
    req.on('timeout', () => req.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    req.on('error', (error) => reject(new Error(`${o.method} ${o.path}: ${error.message}`)));
    req.end(o.body);
  });
}
