/** Errors that end the boot. */

/** Exit codes of the process (boot-and-node 10.8; 70 is our own: an internal failure, the init system restarts us). */
export const EXIT = { ok: 0, fatal: 1, internal: 70 } as const;

/** One thing the person has to change. */
export interface Problem {
  /** Where: `maxPods (--max-pods)`, `--node-ip`, `/etc/kubelet.yaml:12`. */
  where: string;
  /** What is wrong and what would be right. */
  what: string;
}

/** The start was refused for one or more reasons, all of them listed. */
export class StartError extends Error {
  readonly problems: readonly Problem[];
  constructor(title: string, problems: readonly Problem[]) {
    super([`${title}:`, ...problems.map((p) => `  - ${p.where}: ${p.what}`)].join('\n'));
    this.name = 'StartError';
    this.problems = problems;
  }
}
