/** Words and numbers that rules hold fields of a pod to. */

export type RestartPolicy = (typeof RESTART_POLICIES)[number];
export type PullPolicy = (typeof PULL_POLICIES)[number];

// Words that rules hold a field to.
export const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'] as const;

export const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'] as const;
export const TERMINATION_MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError'] as const;
export const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;
export const SCHEMES = ['HTTP', 'HTTPS'] as const;
export const MOUNT_PROPAGATIONS = ['None', 'HostToContainer', 'Bidirectional'] as const;
export const RECURSIVE_READ_ONLY = ['Disabled', 'IfPossible', 'Enabled'] as const;
export const RESTART_RULE_ACTIONS = ['Restart', 'RestartAllContainers'] as const;
export const EXIT_CODE_OPERATORS = ['In', 'NotIn'] as const;
export const PROC_MOUNTS = ['Default', 'Unmasked'] as const;
export const PROFILE_TYPES = ['RuntimeDefault', 'Unconfined', 'Localhost'] as const;
export const FS_GROUP_CHANGE_POLICIES = ['OnRootMismatch', 'Always'] as const;
export const SUPPLEMENTAL_GROUPS_POLICIES = ['Merge', 'Strict'] as const;
export const SE_LINUX_CHANGE_POLICIES = ['Recursive', 'MountOption'] as const;
export const DNS_POLICIES = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'] as const;
export const PREEMPTION_POLICIES = ['PreemptLowerPriority', 'Never'] as const;
export const OPERATING_SYSTEMS = ['linux', 'windows'] as const;
export const TOLERATION_OPERATORS = ['Equal', 'Exists'] as const;
export const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;

/** Operators of node affinity, by how many values each takes. */
export const SELECTOR_VALUES = { In: 'some', NotIn: 'some', Exists: 'none', DoesNotExist: 'none', Gt: 'number', Lt: 'number' } as const;

/** What rules hold numbers to. */
export const PORTS = { min: 1, max: 65_535 } as const;

/** User and group ids are 32 bits wide and not negative. */
export const IDS = { min: 0, max: 2_147_483_647 } as const;
