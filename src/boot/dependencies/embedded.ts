/**
 * `containerRuntimeEndpoint: embedded://process`, `embedded://oci` and `embedded://hollow`: the {@link Cri} port of the embedded
 * runtimes. The process runtime is started, or attached to, before the first call, and again whenever it is found gone.
 */

import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHollowRuntime, type HollowOptions } from '@actorlet/runtimes/src/hollow/index.ts';
import { ensureProcessRuntime } from '@actorlet/runtimes/src/process/ensure.ts';
import { layout } from '@actorlet/runtimes/src/process/store/store.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { type Clock, type Cri, CriError, type Logger, type Rng } from '../../ports/ports.ts';
import { createGrpcCri } from './cri/grpcCri.ts';

const EMBEDDED_ENDPOINTS = ['embedded://process', 'embedded://oci', 'embedded://hollow'] as const;
export type EmbeddedEndpoint = (typeof EMBEDDED_ENDPOINTS)[number];

export function isEmbeddedEndpoint(endpoint: string): endpoint is EmbeddedEndpoint {
  return (EMBEDDED_ENDPOINTS as readonly string[]).includes(endpoint);
}

/** The socket through which pods are reached whose networks this process cannot enter; null: it needs none. */
export function podTunnel(endpoint: string, rootDir: string): string | null {
  return endpoint === 'embedded://oci' ? layout(resolve(rootDir)).streaming : null;
}

/** gRPC: nobody answers at the socket. */
const UNAVAILABLE = 14;
/** A runtime that dies at once is started no more often than this. */
const RESTART_AFTER_MS = 1000;
const STATUS_MS = 10_000;

export interface EmbeddedOptions {
  endpoint: EmbeddedEndpoint;
  /** The node's root directory; the process runtime lives in `sandbox/` below it. */
  rootDir: string;
  log: Logger;
  clock: Clock;
  rng: Rng;
  /** The node binary that runs the process runtime. */
  execPath: string;
  /** Its program; by default `sandboxd.mjs` beside the bundle, or the source when run from source. */
  entry?: string;
  hollow?: Partial<HollowOptions>;
}

/** Once, in the node's log: what containers are run with, and which limits they do not have. */
async function sayAbout(cri: Cri, log: Logger): Promise<void> {
  const { info } = await cri.call('Status', { verbose: true }, { timeoutMs: STATUS_MS, signal: new AbortController().signal });
  log.info(JSON.parse(info.oci ?? '{}') as object, 'OCI images run here');
}

/** The program of the process runtime: beside this bundle in `dist/`, else the built one, else the source. */
function sandboxEntry(from: string = import.meta.url): string {
  const here = dirname(fileURLToPath(from));
  const candidates = [
    join(here, 'sandboxd.mjs'),
    join(here, '..', 'sandboxd.mjs'),
    join(here, '..', '..', '..', 'packages', 'runtimes', 'src', 'process', 'main.ts'),
  ];
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined)
    throw new Error(`the embedded runtime's program is not there: looked for ${candidates.join(', ')}; run the build`);
  return found;
}

/**
 * @returns the port, and the endpoint at which any other CRI client can reach the same runtime ('' for hollow).
 * @throws when the process runtime cannot be started: the message names its log.
 */
export async function connectEmbedded(o: EmbeddedOptions): Promise<{ cri: Cri; socketEndpoint: string }> {
  if (o.endpoint === 'embedded://hollow') {
    return { cri: createHollowRuntime({ clock: o.clock, rng: o.rng, ...o.hollow }), socketEndpoint: '' };
  }
  const entry = o.entry ?? sandboxEntry();
  const kind = o.endpoint === 'embedded://oci' ? 'oci' : 'process';
  const ensure = () => ensureProcessRuntime({ rootDir: o.rootDir, log: o.log, execPath: o.execPath, entry, kind });
  const { endpoint } = await ensure();
  const grpc = createGrpcCri({ endpoint, log: o.log, clock: o.clock });
  // A runtime that does not answer is told of by the link.
  if (kind === 'oci') sayAbout(grpc, o.log).catch(() => undefined);
  let ensuring: Promise<void> | null = null;
  let lastMonoMs = o.clock.monoMs();
  let closed = false;

  /** Single flight, and not more often than {@link RESTART_AFTER_MS}. The CRI link retries by itself; this gives it a runtime to reach. */
  const revive = (): void => {
    if (closed || ensuring !== null || o.clock.monoMs() - lastMonoMs < RESTART_AFTER_MS) return;
    lastMonoMs = o.clock.monoMs();
    ensuring = ensure()
      .then(
        ({ started }) => {
          if (started) o.log.warn({ endpoint }, 'the embedded runtime was gone and has been started again; containers ran on');
          if (!closed) grpc.reconnect();
        },
        (error: unknown) => o.log.error({ endpoint, error: messageOf(error) }, 'the embedded runtime cannot be started'),
      )
      .finally(() => {
        ensuring = null;
      });
  };
  const watched = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof CriError && error.code === UNAVAILABLE) revive();
      throw error;
    }
  };
  return {
    socketEndpoint: endpoint,
    cri: {
      call: (method, req, opts) => watched(grpc.call(method, req, opts)),
      hints: (signal) => watched(grpc.hints(signal)),
      reconnect: () => grpc.reconnect(),
      close() {
        closed = true;
        grpc.close();
      },
    },
  };
}
