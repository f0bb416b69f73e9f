/** The KernelSettings port: the settings of the machine's kernel below /proc/sys. Errors carry Node's `code`. */
export interface KernelSettings {
  /** The text of a setting. @param path As `vm/overcommit_memory`. */
  read(path: string): Promise<string>;
  /** Rejects where the kernel refuses: it is read-only, or this user has no right. */
  write(path: string, value: number): Promise<void>;
}
