/** A listener, as ports give it. */

export interface Listening {
  address: string;
  close(): Promise<void>;
}
