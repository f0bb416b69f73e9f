/** How long a kubelet backs off before it starts a container again: in its memory, and in its words. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

const BACK_OFF = /^back-off (?:(\d+)m)?(?:(\d+)s)? restarting failed /;

/** From the end of the container on, as long as its status says; wall ms, 0: it does not. */
export function backsOffUntilMs({ state, lastState }: { state?: unknown; lastState?: unknown }): number {
  const message = isRecord(state) && isRecord(state.waiting) ? state.waiting.message : undefined;
  const [said, minutes = '0', seconds = '0'] = BACK_OFF.exec(String(message ?? '')) ?? [];
  const ended = isRecord(lastState) && isRecord(lastState.terminated) ? Date.parse(String(lastState.terminated.finishedAt)) : Number.NaN;
  return said === undefined || Number.isNaN(ended) ? 0 : ended + (Number(minutes) * 60 + Number(seconds)) * 1_000;
}
