/**
 * Mailbox and restart metrics. Counting is plain integer work; deltas go to the metrics port at each scrape. Labels are
 * paths of the specification tree: dynamic children share their parent's, so that pods never make series.
 */

import type { Metrics } from '../../ports/ports.ts';
import type { Mailbox } from './mailbox/mailbox.ts';
import type { DeadLetter, ExitReason } from './types.ts';

/** Seconds, from 100 microseconds to 10 s. */
const SECONDS = [0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

interface Tracked {
  // biome-ignore lint/suspicious/noExplicitAny: only figures are read; the event type does not matter.
  box: Mailbox<any>;
  enqueued: number;
  coalesced: number;
  dropped: Partial<Record<DeadLetter['reason'], number>>;
}

export class SupervisionMetrics {
  readonly #tracked: Tracked[] = [];
  readonly #restarts = new Map<string, { path: string; reason: string; count: number }>();
  readonly #depth;
  readonly #enqueued;
  readonly #coalesced;
  readonly #dropped;
  readonly #dwell;
  readonly #handle;
  readonly #restartsTotal;

  constructor(metrics: Metrics) {
    const path = ['path'] as const;
    this.#depth = metrics.gauge('actorlet_mailbox_depth', 'Messages waiting in a mailbox.', path);
    this.#enqueued = metrics.counter('actorlet_mailbox_enqueued_total', 'Messages accepted, coalesced ones included.', path);
    this.#coalesced = metrics.counter('actorlet_mailbox_coalesced_total', 'Messages merged into a waiting one.', path);
    this.#dropped = metrics.counter('actorlet_mailbox_dropped_total', 'Messages that reached nobody, by reason.', ['path', 'reason']);
    const sampled = 'sampled from the first message of each slice';
    this.#dwell = metrics.histogram('actorlet_mailbox_dwell_seconds', `Time a message waited, ${sampled}.`, SECONDS, path);
    this.#handle = metrics.histogram('actorlet_mailbox_handle_seconds', `Time its handling took, ${sampled}.`, SECONDS, path);
    this.#restartsTotal = metrics.counter('actorlet_actor_restarts_total', 'Restarts by the reason of the exit before.', [
      'path',
      'reason',
    ]);
    metrics.onCollect(() => this.flush());
  }

  // biome-ignore lint/suspicious/noExplicitAny: see Tracked.
  track(box: Mailbox<any>): void {
    this.#tracked.push({ box, enqueued: 0, coalesced: 0, dropped: {} });
    const labels = Object.freeze({ path: box.path });
    box.onSample = (dwellMs, handleMs) => {
      this.#dwell.observe(dwellMs / 1000, labels);
      this.#handle.observe(handleMs / 1000, labels);
    };
  }

  restarted(path: string, reason: ExitReason): void {
    const id = `${reason.kind} ${path}`;
    const entry = this.#restarts.get(id);
    if (entry === undefined) this.#restarts.set(id, { path, reason: reason.kind, count: 1 });
    else entry.count += 1;
  }

  flush(): void {
    for (const t of this.#tracked) {
      const labels = { path: t.box.path };
      const { figures } = t.box;
      this.#depth.set(t.box.depth, labels);
      if (figures.enqueued > t.enqueued) this.#enqueued.inc(labels, figures.enqueued - t.enqueued);
      if (figures.coalesced > t.coalesced) this.#coalesced.inc(labels, figures.coalesced - t.coalesced);
      t.enqueued = figures.enqueued;
      t.coalesced = figures.coalesced;
      for (const [reason, count] of Object.entries(figures.dropped) as [DeadLetter['reason'], number][]) {
        const before = t.dropped[reason] ?? 0;
        if (count > before) this.#dropped.inc({ ...labels, reason }, count - before);
        t.dropped[reason] = count;
      }
    }
    for (const entry of this.#restarts.values()) {
      if (entry.count > 0) this.#restartsTotal.inc({ path: entry.path, reason: entry.reason }, entry.count);
      entry.count = 0;
    }
  }
}
