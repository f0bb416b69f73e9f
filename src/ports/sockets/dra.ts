/** The Dra port: drivers of dynamic resources beside this node, each on a unix socket of its own. */
import type { DraService } from '../../machines/allocation/claims/messages.ts';
import type { ClaimRecord, DeviceHealth, PreparedDevice } from '../../machines/allocation/claims/types.ts';

export interface DraCall {
  timeoutMs: number;
  signal: AbortSignal;
}
export type DraClaim = Pick<ClaimRecord, 'namespace' | 'name' | 'uid'>;

/** What a driver answers of a claim, by its UID. `error` '' = it is done. */
export type Prepared = Readonly<Record<string, { devices: readonly PreparedDevice[]; error: string }>>;
export type Unprepared = Readonly<Record<string, { error: string }>>;

/** Calls reject with `CsiError`, in the words of the reference. */
export interface DraConnection {
  prepare(claims: readonly DraClaim[], call: DraCall): Promise<Prepared>;
  unprepare(claims: readonly DraClaim[], call: DraCall): Promise<Unprepared>;
  /** Until the function it gives is called. `end` runs once; `never`: the driver has no such stream. */
  watchHealth(on: { devices(devices: readonly DeviceHealth[]): void; end(why: string, never: boolean): void }): () => void;
  close(): void;
}

export interface Dra {
  /** Dials at once, and again whenever the connection ends, until it is closed. `changed`: whether it is up. */
  connect(endpoint: string, o: { service: DraService; changed(connected: boolean): void }): DraConnection;
}
