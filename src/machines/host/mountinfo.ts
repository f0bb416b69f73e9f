/** /proc/PID/mountinfo, read and asked. Pure. */

export interface MountEntry {
  /** Mount point as this process sees it. */
  path: string;
  /** Path inside the mounted file system that is shown there: not `/` for a bind of something below. */
  root: string;
  /** File system type. */
  type: string;
  source: string;
  /** Number of the file system, `major:minor`: mounts of one file system have the same. */
  device: string;
}

/** Space, tab, newline and backslash stand as three octal digits. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** Everything from here on the kernel may write as digits, and kernels differ in what else they do. */
const WRITTEN_OTHERWISE = /[\s\\#]/;

/** Lines in which a path stands, and perhaps some more: one path is looked for, and a node has thousands of mounts. */
function* linesNaming(text: string, path: string): Generator<string> {
  const [start = ''] = path.split(WRITTEN_OTHERWISE, 1);
  for (let at = text.indexOf(start); at !== -1; ) {
    const end = text.indexOf('\n', at);
    yield text.slice(text.lastIndexOf('\n', at) + 1, end === -1 ? undefined : end);
    at = end === -1 ? -1 : text.indexOf(start, end + 1);
  }
}

/**
 * Lines that do not have the shape are left out: a newer kernel may add what this does not know.
 * @param below A path: mounts that are neither there nor below may be left out.
 */
export function parseMountinfo(text: string, below?: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of below === undefined ? text.split('\n') : linesNaming(text, below)) {
    const [left, right] = line.split(' - ');
    const [, , device, root, path] = left?.split(' ') ?? [];
    const [type, source] = right?.split(' ') ?? [];
    if (device === undefined || root === undefined || path === undefined || type === undefined || source === undefined) continue;
    entries.push({ path: unescaped(path), root: unescaped(root), type: unescaped(type), source: unescaped(source), device });
  }
  return entries;
}

/** Mounts of that very path; several when something was mounted over something. */
export function mountsAt(entries: readonly MountEntry[], path: string): MountEntry[] {
  return entries.filter((e) => e.path === path);
}

/** Mount points strictly below a directory. */
export function mountsBelow(entries: readonly MountEntry[], dir: string): MountEntry[] {
  return entries.filter((e) => e.path.startsWith(`${dir}/`));
}
