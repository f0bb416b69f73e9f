import type { GrowthFailureKind } from '../../../../machines/services/volumes/growth.ts';

/** What else is thrown while a volume grows is final. */
export class GrowthFailure extends Error {
  readonly kind: GrowthFailureKind;
  constructor(kind: GrowthFailureKind, message: string) {
    super(message);
    this.name = 'GrowthFailure';
    this.kind = kind;
  }
}
