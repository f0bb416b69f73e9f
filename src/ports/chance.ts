/** The Rng and Entropy ports: chance, for jitter and for keys. */

export interface Rng {
  /** Uniform in [0, 1). Jitter only, never keys. */
  next(): number;
}

export interface Entropy {
  bytes(count: number): Uint8Array;
  md5Hex(text: string | Uint8Array): string;
  sha256Hex(text: string | Uint8Array): string;
}
