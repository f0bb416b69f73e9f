/**
 * The DiskUsage port: what a directory holds and what room there is where it lies. A helper process looks, which is killed
 * at its deadline with all that it started: a tree may be endless, and a file system may never answer.
 */
export interface DiskFigures {
  bytesTotal: number;
  bytesAvailable: number;
  bytesUsed: number;
  inodesTotal: number;
  inodesFree: number;
  inodesUsed: number;
}

export interface DiskUsage {
  /**
   * `tree`: what is used is what lies below this directory, on its file system; else what is used of the file system.
   * Rejects with the helper's words.
   */
  measure(path: string, o: { tree: boolean; timeoutMs: number; signal: AbortSignal }): Promise<DiskFigures>;
}
