/** Times, sizes and states in words. */
import type { ShownImage } from '@actorlet/shown/src/moment/images.ts';
import type { Tone } from '@actorlet/shown/src/pods/podStatus.ts';
import type { ActorRow } from '../feed/frames.ts';

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

/** Colour of an actor: how well it is, not what it does. */
export function toneOf(a: Pick<ActorRow, 'ok' | 'lifecycle' | 'lost'>): Tone {
  if (a.lost === true) return 'bad';
  if (!a.ok) return a.lifecycle === 'restarting' || a.lifecycle === 'running' ? 'warn' : 'bad';
  switch (a.lifecycle) {
    case 'running':
    case 'asleep':
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

/** Pods named in one line. */
const USERS_MAX = 3;

export function imageUse({ pinned, usedBy, unusedMs }: Pick<ShownImage, 'pinned' | 'usedBy' | 'unusedMs'>): string {
  const more = usedBy.length > USERS_MAX ? ` and ${usedBy.length - USERS_MAX} more` : '';
  if (usedBy.length > 0) return `used by ${usedBy.slice(0, USERS_MAX).join(', ')}${more}`;
  if (pinned) return 'pinned';
  return unusedMs < 0 ? 'never used' : `unused for ${duration(unusedMs)}`;
}

export function shortId(text: string): string {
  return text.replace(/^sha256:/, '').slice(0, 12);
}
