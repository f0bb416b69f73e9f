/** What a fleet shows of itself, to its page and to users of the library. */

export interface FleetOverview {
  nodes: {
    total: number;
    /** Their daemon runs. */
    running: number;
    /** Its daemon runs, and knows from the API server that Ready is True. */
    ready: number;
  };
  pods: {
    total: number;
    ready: number;
    byPhase: Readonly<Record<string, number>>;
    /** Those that are neither Ready nor over, by what holds them up: `ImagePullBackOff`. */
    byReason: Readonly<Record<string, number>>;
  };
}

/** One square of the overview. */
export interface NodeOverview {
  name: string;
  group: string;
  /** `failed`: its daemon ended by itself, or cannot be made; it waits for its restart, or has failed too often. */
  state: 'off' | 'failed' | 'notReady' | 'ready';
  pods: number;
  /** Milliseconds from the start of its daemon until Ready was seen; null: not yet. */
  readyAfterMs: number | null;
}

/** What stays the same while a node is there. */
export interface NodeFacts {
  name: string;
  group: string;
  labels: Readonly<Record<string, string>>;
  version: string;
}
