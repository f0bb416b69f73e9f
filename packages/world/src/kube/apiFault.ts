/** An answer that is no success; `reason` is that of the Status object. */
export class ApiFault extends Error {
  readonly code: number;
  readonly reason: string;
  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}
