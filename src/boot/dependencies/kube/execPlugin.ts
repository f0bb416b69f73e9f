/**
 * Credentials that a program gives (client.authentication.k8s.io). It runs when it is first needed, again when what it gave
 * has ended or the server refused it, one run at a time and none longer than a limit. What it prints is never logged, save
 * the end of its error output with everything that looks like a secret blacked out.
 */
import { jsonOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Clock, Logger } from '../../../ports/ports.ts';
import { runProgram } from '../program.ts';
import type { ExecConfig } from './execConfig.ts';

/** A program that takes longer is killed: every call to the API server waits for it. */
const EXEC_LIMIT_MS = 60_000;
/** After a failed run the next call waits at least this long for another one; until then it fails with the same words. */
export const EXEC_REST_MS = 5_000;
/** A refused credential that is younger than this is not replaced: the program would give the same, and be run for each call. */
export const EXEC_FRESH_MS = 5_000;
const ERROR_CHARACTERS_MAX = 300;

interface ExecCredential {
  token: string;
  cert: Buffer | undefined;
  key: Buffer | undefined;
  /** Wall milliseconds; +Infinity without an end. */
  expiresMs: number;
}
export interface ExecPlugin {
  /** @throws Error naming the program and what is wrong. */
  current(): Promise<ExecCredential>;
  /** The server refused it. True when the next {@link current} gives another one. */
  refused(): boolean;
}
/** What the program may be told of the cluster. */
export interface ExecCluster {
  server: string;
  tlsServerName: string | null;
  ca(): Promise<Buffer | undefined>;
}

export function createExecPlugin(
  config: ExecConfig,
  o: { clock: Clock; log: Logger; cluster: ExecCluster; env: Readonly<Record<string, string | undefined>>; limitMs?: number },
): ExecPlugin {
  const { clock } = o;
  let held: { credential: ExecCredential; atMs: number } | undefined;
  let failure: { error: Error; atMs: number } | undefined;
  let running: Promise<ExecCredential> | undefined;

  const renew = async (): Promise<ExecCredential> => {
    try {
      const credential = decode(config, await run(config, await infoOf(config, o.cluster), o));
      if (credential.expiresMs <= clock.wallMs()) throw new Error('the credential that it gave has ended already');
      held = { credential, atMs: clock.monoMs() };
      failure = undefined;
      o.log.info(
        {
          program: config.command,
          ...(Number.isFinite(credential.expiresMs) ? { until: new Date(credential.expiresMs).toISOString() } : {}),
        },
        'credentials for the API server were given by a program',
      );
      return credential;
    } catch (error) {
      const hint = config.installHint === '' ? '' : ` (${config.installHint.slice(0, ERROR_CHARACTERS_MAX)})`;
      const wrapped = new Error(`credential program ${config.command}: ${messageOf(error)}${hint}`);
      failure = { error: wrapped, atMs: clock.monoMs() };
      throw wrapped;
    }
  };
  return {
    current() {
      if (held !== undefined && held.credential.expiresMs > clock.wallMs()) return Promise.resolve(held.credential);
      if (failure !== undefined && clock.monoMs() - failure.atMs < EXEC_REST_MS) return Promise.reject(failure.error);
      running ??= renew().finally(() => {
        running = undefined;
      });
      return running;
    },
    refused() {
      if (held === undefined || clock.monoMs() - held.atMs < EXEC_FRESH_MS) return false;
      held = undefined;
      return true;
    },
  };
}

async function infoOf(config: ExecConfig, cluster: ExecCluster): Promise<string> {
  const spec: Record<string, unknown> = { interactive: false };
  if (config.provideClusterInfo) {
    const ca = await cluster.ca();
    spec.cluster = {
      server: cluster.server,
      ...(cluster.tlsServerName === null ? {} : { 'tls-server-name': cluster.tlsServerName }),
      ...(ca === undefined ? {} : { 'certificate-authority-data': ca.toString('base64') }),
    };
  }
  return JSON.stringify({ apiVersion: config.apiVersion, kind: 'ExecCredential', spec });
}

function run(
  config: ExecConfig,
  info: string,
  o: { clock: Clock; env: Readonly<Record<string, string | undefined>>; limitMs?: number },
): Promise<string> {
  const { command, args } = config;
  const settings = [...config.env, { name: 'KUBERNETES_EXEC_INFO', value: info }];
  return runProgram({ command, args, env: o.env, settings }, { clock: o.clock, limitMs: o.limitMs ?? EXEC_LIMIT_MS });
}

function decode(config: ExecConfig, text: string): ExecCredential {
  const value = jsonOf(text);
  // Not quoted: it may hold the credential.
  if (value === undefined) throw new Error('printed what is not JSON');
  const at = (v: unknown, field: string): unknown => (typeof v === 'object' && v !== null ? Reflect.get(v, field) : undefined);
  if (at(value, 'kind') !== 'ExecCredential') throw new Error('printed no ExecCredential');
  if (at(value, 'apiVersion') !== config.apiVersion)
    throw new Error(`printed an ExecCredential of another version than ${config.apiVersion}`);
  const status = at(value, 'status');
  const pick = (field: string): string => {
    const v = at(status, field);
    if (v === undefined || v === null) return '';
    if (typeof v !== 'string') throw new Error(`printed a status.${field} that is no text`);
    return v;
  };
  const [token, cert, key, end] = [pick('token'), pick('clientCertificateData'), pick('clientKeyData'), pick('expirationTimestamp')];
  if (token === '' && cert === '') throw new Error('printed neither status.token nor status.clientCertificateData');
  if ((cert === '') !== (key === ''))
    throw new Error('printed one of status.clientCertificateData and status.clientKeyData without the other');
  const expiresMs = end === '' ? Number.POSITIVE_INFINITY : Date.parse(end);
  if (Number.isNaN(expiresMs)) throw new Error('printed a status.expirationTimestamp that is no time');
  return { token, cert: cert === '' ? undefined : Buffer.from(cert), key: key === '' ? undefined : Buffer.from(key), expiresMs };
}
