/** What people are told of an attempt that did not succeed (pod lifecycle 8.4): of each, whatever the threshold. Pure. */
import { PROBE_NAMES, type ProbeOutcome, type ProbeType } from '../../pod/probes/probes.ts';

/** An event's message is cut to what the API server takes. */
const EVENT_CHARS_MAX = 1_024;

/** The event of an attempt. Null: a success has no event. */
export function probeEvent(type: ProbeType, { kind, output }: ProbeOutcome): { reason: string; message: string } | null {
  if (kind === 'success') return null;
  const name = PROBE_NAMES[type];
  const what = {
    failure: `${name} probe failed: `,
    error: `${name} probe errored and resulted in unknown state: `,
    warning: `${name} probe warning: `,
  }[kind];
  const message = `${what}${output}`;
  return {
    reason: kind === 'warning' ? 'ProbeWarning' : 'Unhealthy',
    message: message.length > EVENT_CHARS_MAX ? `${message.slice(0, EVENT_CHARS_MAX - 3)}...` : message,
  };
}
