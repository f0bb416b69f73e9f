/** What a command-line flag is: the vocabulary of the flag tables. */
import type { KubeletFlags } from '../../machines/config/config.ts';

export type FlagType =
  | 'bool'
  | 'int'
  | 'int32'
  | 'int64'
  | 'uint64'
  | 'float'
  | 'string'
  /** Made absolute against the working directory; '' stays ''. */
  | 'path'
  /** As `path`; a slash at its end stays, for with it a link is the folder behind it. */
  | 'folder'
  | 'duration'
  /** '' is accepted and changes nothing. */
  | 'ip'
  /** One address, or a comma-separated dual-stack pair. */
  | 'nodeIPs'
  | 'strings'
  /** Comma-separated; of all occurrences. */
  | 'int32s'
  | 'mapStringBool'
  | 'mapStringString'
  /** `signal<value,...` */
  | 'langleMap'
  /** `Name:value,Name:value2` */
  | 'colonMultimap'
  /** One `k=v` per occurrence; commas belong to the value. */
  | 'noSplitMap'
  | 'taints'
  /** `numa:resource=quantity,...` per occurrence, `;` between several. */
  | 'reservedMemory'
  /** Like mapStringString, but a bare key means an empty value. */
  | 'labels'
  | 'vmodule'
  /** `HOST:PORT` of this machine alone, or `true` (also bare) for the default one, `false` for none. */
  | 'loopback'
  /** `true`, `false` or `raw`. */
  | 'version';

export interface FlagSpec {
  readonly name: string;
  readonly type: FlagType;
  readonly help: string;
  /** Field of KubeletFlags this flag writes. */
  readonly flag?: keyof KubeletFlags;
  /** Path in KubeletConfiguration this flag writes. */
  readonly cfg?: string;
  /** One-letter form. */
  readonly short?: string;
  /** Hint printed once when the flag is used; the flag keeps working. */
  readonly deprecated?: string;
  /** Upstream release that dropped it, or that made it do nothing: accepted, does nothing, says so. */
  readonly removed?: string;
  /** The one value a removed flag may have. Any other asks for something (often a protection) that must not be ignored: a start error. */
  readonly onlyValue?: string;
  /** Our own, listed apart in --help. */
  readonly own?: true;
  /** Shown in help when neither `flag` nor `cfg` gives it. */
  readonly shownDefault?: string;
}
