/** Times, sizes and states in words. */
import type { ActorRow, PodRow } from '../feed/frames.ts';

export function duration(ms: number): string {
  const t = Math.max(0, ms);
  if (t < 1000) return `${Math.round(t)} ms`;
  if (t < 10_000) return `${(t / 1000).toFixed(1)} s`;
  if (t < 120_000) return `${Math.round(t / 1000)} s`;
  if (t < 7_200_000) return `${Math.round(t / 60_000)} min`;
  if (t < 172_800_000) return `${Math.round(t / 3_600_000)} h`;
  return `${Math.round(t / 86_400_000)} d`;
}

export function clock(ms: number, millis = true): string {
  if (ms === 0) return '';
  const d = new Date(ms);
  const two = (n: number) => String(n).padStart(2, '0');
  const whole = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return millis ? `${whole}.${String(d.getMilliseconds()).padStart(3, '0')}` : whole;
}

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export type Tone = 'ok' | 'busy' | 'warn' | 'bad' | 'off';

/** Colour of an actor: how well it is, not what it does. */
export function toneOf(a: Pick<ActorRow, 'ok' | 'lifecycle' | 'lost'>): Tone {
  if (a.lost === true) return 'bad';
  if (!a.ok) return a.lifecycle === 'restarting' || a.lifecycle === 'running' ? 'warn' : 'bad';
  switch (a.lifecycle) {
    case 'running':
      return 'ok';
    case 'starting':
    case 'stopping':
      return 'busy';
    case 'restarting':
      return 'warn';
    case 'stopped':
      return 'off';
    default:
      return 'bad';
  }
}

type Judged = Pick<PodRow, 'phase' | 'ready' | 'containers' | 'rejected' | 'removed' | 'reason'>;

/** As kubectl's STATUS: why a pod is not well, else its phase. */
export function podStatus(p: Judged): string {
  if (p.rejected) return 'Refused';
  if (podTone(p) === 'bad') return p.reason || p.phase;
  return p.removed && p.phase === 'Running' ? 'Terminating' : p.phase;
}

export function podTone(p: Judged): Tone {
  if (p.rejected || p.phase === 'Failed' || /BackOff|Error|Err[A-Z]|Failed|Unavailable/.test(p.reason)) return 'bad';
  if (p.phase === 'Running') return p.ready === p.containers ? 'ok' : 'busy';
  return p.phase === 'Succeeded' ? 'off' : 'busy';
}

export function shortId(text: string): string {
  return text.replace(/^sha256:/, '').slice(0, 12);
}
