/**
 * The file source: static pods from manifests in a directory (or from one file), posted to podConfig as complete sets.
 *
 * State held: per manifest its digest, last good pod and error; names hinted at but not yet read; the watch.
 * Lost on restart: all of it, among it the pod of a manifest that has become unusable since.
 * Rebuilt from: the first listing, which posts a complete set.
 */

import { fromCallback, fromPromise } from 'xstate';
import { manifestsView, podConfigAddr } from '../../../machines/pods/podConfig/messages.ts';
import { type FilePost, type FileSourceEvent, fileSourceMachine, type ListResult } from '../../../machines/pods/sources/fileMachine.ts';
import type { FileChange, FileReading, FileStore } from '../../../machines/pods/sources/fileStore.ts';
import { because, CAUSES_MAX, type Cause } from '../../../machines/supervision/address.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';
import { listManifests, type ReaderOptions, readManifests } from './fileReader.ts';

export interface FileSourceOptions {
  /** Directory or file, absolute; a trailing `/` does not matter. */
  path: string;
  /** Milliseconds between full listings (`fileCheckFrequency`, default 20 s). */
  checkFrequencyMs: number;
  nodeName: string;
  /** Refuse manifests that refer to API objects (gate PreventStaticPodAPIReferences). */
  preventApiReferences: boolean;
}

function parentOf(path: string): { dir: string; name: string } {
  const slash = path.lastIndexOf('/');
  return { dir: slash <= 0 ? '/' : path.slice(0, slash), name: path.slice(slash + 1) };
}

function watchActor(ctx: ActorCtx) {
  return fromCallback<FileSourceEvent, { path: string }>(({ input, sendBack }) => {
    const tell = (e: FileSourceEvent) => sendBack(e);
    let open: Disposable | null = null;
    let over = false;
    const ended = (error: unknown) => {
      if (over) return;
      over = true;
      const missing = codeOf(error) === 'ENOENT';
      tell({ type: 'watch.ended', message: messageOf(error), missing });
    };
    const hint = (path: string, kind: 'create' | 'modify' | 'delete') => {
      if (!over) tell({ type: 'file.hint', path, kind });
    };
    const watchParent = () => {
      // One file is watched through its directory: a watch on the file itself would follow it when it is renamed away.
      const { dir, name } = parentOf(input.path);
      return ctx.ports.sys.watchDir(dir, (e) => (e.name === name || e.name === '' ? hint(input.path, e.kind) : undefined), ended);
    };
    try {
      open = ctx.ports.sys.watchDir(
        input.path,
        (e) => {
          if (e.name === '') tell({ type: 'list.now' });
          else if (!e.name.startsWith('.')) hint(input.path === '/' ? `/${e.name}` : `${input.path}/${e.name}`, e.kind);
          // Volumes that are swapped in one step change a dot entry, and every name beneath is a link through it.
          else if (e.name === '..data') tell({ type: 'list.now' });
        },
        ended,
      );
    } catch (error) {
      if (codeOf(error) === 'ENOTDIR') {
        try {
          open = watchParent();
        } catch (inner) {
          ended(inner);
        }
      } else ended(error);
    }
    if (open !== null) tell({ type: 'watch.started' });
    return () => {
      over = true;
      open?.[Symbol.dispose]();
    };
  });
}

/** One cause per manifest where they are few, else one for all: a list cut short would name the wrong file. */
function causesOf(ctx: ActorCtx, path: string, changes: readonly FileChange[]): readonly Cause[] {
  const atMs = ctx.ports.clock.wallMs();
  const said =
    changes.length < CAUSES_MAX ? changes : [{ what: `${changes.length} manifests in ${path} changed or appeared`, about: null }];
  let causes: readonly Cause[] = [];
  for (const { what, about } of said) causes = because(causes, { atMs, by: ctx.path, what, ...(about === null ? {} : { about }) });
  return causes;
}

/** `file` under `node/pods/sources`. */
export function fileSourceSpec(options: FileSourceOptions): ActorSpec {
  const path = options.path.replace(/\/+$/, '') || '/';
  return {
    id: 'file',
    type: 'actor',
    shutdownMs: 1_000,
    start: (ctx) => {
      const reader: ReaderOptions = {
        path,
        nodeName: options.nodeName,
        preventApiReferences: options.preventApiReferences,
        ports: ctx.ports,
        settled: new Map(),
      };
      const skipped = new Set<string>();
      const report = (readings: readonly FileReading[]) => {
        for (const r of readings) {
          if (r.kind !== 'skipped') skipped.delete(r.path);
          else if (!skipped.has(r.path)) {
            skipped.add(r.path);
            ctx.log.warn({ file: r.path }, `static pod path: ${r.path} is left out: ${r.message}`);
          }
        }
      };
      const post = (p: FilePost) => {
        const { errors } = p;
        ctx.publish(manifestsView, p.manifests);
        if (p.kind === 'errors') {
          ctx.registry.send(podConfigAddr, { type: 'source.errors', source: 'file', errors });
          return;
        }
        // What is wrong becomes an event of podConfig, which is logged.
        for (const { what, wrong } of p.changes) if (wrong !== true) ctx.log.info({}, what);
        const causes = causesOf(ctx, path, p.changes);
        ctx.registry.send(podConfigAddr, { type: 'source.set', source: 'file', pods: p.pods, errors, causes });
      };
      const logic = provided(
        fileSourceMachine,
        {
          actors: {
            list: fromPromise<ListResult, { path: string; store: FileStore }>(async ({ input }) => {
              const result = await listManifests(reader, input.store);
              if (result.kind === 'listed') report(result.readings);
              return result;
            }),
            read: fromPromise<FileReading[], { paths: readonly string[]; store: FileStore }>(async ({ input }) => {
              const readings = await readManifests(reader, input.paths, input.store);
              report(readings);
              return readings;
            }),
            watch: watchActor(ctx),
          },
          actions: {
            post: (_, params) => post(params),
            logWatchEnded: (_, params) => {
              if (params.missing) ctx.log.debug({ path }, `static pod path ${path} cannot be watched yet: ${params.message}`);
              else
                ctx.log.warn(
                  { path },
                  `watch of static pod path ${path} ended: ${params.message}; listing goes on, the watch is tried again`,
                );
            },
          },
        },
        momentOf(ctx.ports),
      );
      return { logic, input: { path, checkFrequencyMs: options.checkFrequencyMs } };
    },
  };
}
