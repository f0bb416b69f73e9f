/** What a mount helper says, as an error with a code. */
export class MountError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = 'MountError';
    this.code = code;
  }
}

/** mount(8) and umount(8) speak in words; under LC_ALL=C these are stable. */
const CODES: readonly [RegExp, string][] = [
  [/busy/i, 'EBUSY'],
  [/not mounted|no mount point/i, 'EINVAL'],
  [/permission denied|not permitted|must be superuser|only root/i, 'EPERM'],
  [/does not exist|no such file|nonexistent/i, 'ENOENT'],
  [/file exists|cannot overwrite existing/i, 'EEXIST'],
];

export function mountErrorOf(words: string): MountError {
  const lines = words.split('\n').map((line) => line.trim());
  const said = lines.filter((line) => line !== '').join('; ');
  return new MountError(CODES.find(([pattern]) => pattern.test(said))?.[1] ?? 'EIO', said);
}
