/**
 * State held: per name the newest document and whether it is on disk yet.
 * Lost on restart: a document put in the last moments before a crash of this actor; its owner puts the next one.
 * Rebuilt from: `<root-dir>/actorlet/state/<name>.json`, read when asked for.
 */

import { fromPromise } from 'xstate';
import { checkpointMachine } from '../../machines/foundation/checkpointMachine.ts';
import { type CheckpointEvent, checkpointAddr } from '../../machines/foundation/messages.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { provided } from '../../machines/xstate/provide.ts';
import type { ActorCtx, ActorSpec } from '../supervision/types.ts';
import { type CheckpointStore, createCheckpointStore } from './checkpointStore.ts';

export interface CheckpointOptions {
  /** The node's root directory, e.g. `/var/lib/kubelet`. */
  rootDir: string;
}

/** The actor behind `addr.checkpoint`. */
export function checkpointSpec(opts: CheckpointOptions): ActorSpec<CheckpointEvent> {
  return {
    type: 'actor',
    id: checkpointAddr.path.split('/').at(-1) ?? 'checkpoint',
    // Long enough for a slow disk; what is lost after it only delays (design, section 5).
    shutdownMs: 5000,
    backoff: { minMs: 100 },
    mailbox: {
      capacity: 256,
      key: (e) => (e.type === 'checkpoint.put' ? e.name : undefined),
      overflow: 'reject',
    },
    stopEvent: { type: 'checkpoint.flush' },
    start: (ctx) => ({ logic: checkpointLogic(ctx, opts) }),
  };
}

function checkpointLogic(ctx: ActorCtx<CheckpointEvent>, opts: CheckpointOptions) {
  const root = opts.rootDir.replace(/\/+$/, '');
  const store = createCheckpointStore(ctx.ports, { dir: `${root}/actorlet/state`, root, log: ctx.log });
  ctx.signal.addEventListener('abort', () => store.dispose(), { once: true });
  return provided(checkpointMachine, {
    actors: { flush: fromPromise<readonly string[]>(() => store.flush()) },
    actions: {
      put: (_, { name, value }) => store.put(name, value),
      get: (_, asked) => reply(store, asked),
      report: (_, { unsaved }) => {
        if (unsaved.length > 0) ctx.log.error({ names: unsaved }, 'stopping with checkpoints that could not be written');
      },
    },
  });
}

function reply(store: CheckpointStore, event: Extract<CheckpointEvent, { type: 'checkpoint.get' }>): void {
  store.get(event.name).then(
    (found) => event.replyTo(found),
    (error: unknown) => event.replyTo.refuse(`checkpoint ${event.name} could not be read: ${messageOf(error)}`),
  );
}
