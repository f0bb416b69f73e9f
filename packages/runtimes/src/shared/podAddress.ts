/** Addresses of pods with a network of their own on `embedded://oci`: of the loopback, so that they are the pod's inside as outside. */

/** 127.64.0.0/10. */
const FIRST = 64;
const LAST = 127;

/** `random(n)`: from 0 to below n. */
export function podAddress(random: (below: number) => number): string {
  return `127.${FIRST + random(LAST - FIRST + 1)}.${random(256)}.${1 + random(254)}`;
}

export function isPodAddress(host: string): boolean {
  const m = /^127\.(\d{1,3})\.\d{1,3}\.\d{1,3}$/.exec(host);
  const second = Number(m?.[1] ?? 0);
  return second >= FIRST && second <= LAST;
}
