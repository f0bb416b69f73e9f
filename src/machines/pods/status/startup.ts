export interface StartDurations {
  /** From the pod's creation to its containers seen running. */
  totalSeconds: number;
  /** The same without pulls of images and init containers, which are not the node's doing. */
  sliSeconds: number;
}
