/** Port: documents that others wrote, made into pods. */
import type { Decoded } from '../machines/pods/sources/decode.ts';

/** Where a document comes from, and the node that its pods are for. */
export interface DocumentSource {
  source: 'file' | 'http';
  /** Path or URL: a part of the pods' UIDs. */
  where: string;
  nodeName: string;
  preventApiReferences: boolean;
}

export interface Documents {
  /**
   * Parses and validates one document. What needs more time or memory than a document may have is refused like one that is
   * wrong. Rejects where it could not be looked at.
   */
  decode(bytes: Uint8Array, source: DocumentSource): Promise<Decoded>;
}
