/** What the log says of the runtime: one line when it answers, one when it is lost, and again while it stays away. */
import type { CriEvent, CriView } from '../../../machines/runtime/cri/messages.ts';
import { shortDuration } from '../../../machines/text/duration.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** While the runtime stays away, the log says so again this often; dials fail four times a second. */
const LOST_AGAIN_MS = 300_000;

export class LinkLog {
  readonly #ctx: ActorCtx<CriEvent>;
  #before: CriView | undefined;
  #lost: { sinceMonoMs: number; saidMonoMs: number } | null = null;

  constructor(ctx: ActorCtx<CriEvent>) {
    this.#ctx = ctx;
  }

  say(next: CriView): void {
    if (next.state === 'ready') this.#ready(next);
    else if (next.state === 'lost') this.#away(next);
    else if (this.#lost === null) this.#ctx.log.debug({}, 'connecting to the container runtime');
    this.#before = next;
  }

  #ready(next: CriView): void {
    const [before, lost] = [this.#before, this.#lost];
    this.#lost = null;
    const same = before?.state === 'ready' && before.reason === next.reason && before.networkReason === next.networkReason;
    if (same && lost === null) return;
    const well = next.runtimeReady && next.networkReady;
    const fields = {
      runtime: nameOf(next),
      ...(next.cgroupDriver === undefined || next.cgroupDriver === null ? {} : { cgroupDriver: next.cgroupDriver }),
      ...(lost === null ? {} : { lostFor: shortDuration(this.#ctx.ports.clock.monoMs() - lost.sinceMonoMs) }),
      ...(next.reason === '' ? {} : { reason: next.reason }),
      ...(next.networkReason === '' ? {} : { network: next.networkReason }),
    };
    this.#ctx.log[well ? 'info' : 'warn'](fields, `the container runtime answers${well ? '' : ' and says that it is not ready'}`);
  }

  #away(next: CriView): void {
    const nowMs = this.#ctx.ports.clock.monoMs();
    const before = this.#lost;
    const again = before === null || nowMs - before.saidMonoMs >= LOST_AGAIN_MS;
    const sinceMonoMs = before?.sinceMonoMs ?? nowMs;
    this.#lost = { sinceMonoMs, saidMonoMs: again ? nowMs : before.saidMonoMs };
    if (!again) return;
    const runtime = nameOf(next);
    this.#ctx.log.error(
      { reason: next.reason, lostFor: shortDuration(nowMs - sinceMonoMs), ...(runtime === '' ? {} : { runtime }) },
      'the container runtime does not answer: containers run on, nothing can be started or stopped; trying again until it does',
    );
  }
}

function nameOf({ runtimeName, runtimeVersion }: CriView): string {
  return `${runtimeName} ${runtimeVersion}`.trim();
}
