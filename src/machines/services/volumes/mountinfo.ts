/** /proc/PID/mountinfo, read and asked. Pure. */

export interface MountEntry {
  /** Mount point as this process sees it. */
  path: string;
  /** Path inside the mounted file system that is shown there: not `/` for a bind of something below. */
  root: string;
  /** File system type. */
  type: string;
  source: string;
}

/** Space, tab, newline and backslash stand as three octal digits. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** Lines that do not have the shape are left out: a newer kernel may add what this does not know. */
export function parseMountinfo(text: string): MountEntry[] {
  const entries: MountEntry[] = [];
  for (const line of text.split('\n')) {
    const [left, right] = line.split(' - ');
    const [, , , root, path] = left?.split(' ') ?? [];
    const [type, source] = right?.split(' ') ?? [];
    if (root === undefined || path === undefined || type === undefined || source === undefined) continue;
    entries.push({ path: unescaped(path), root: unescaped(root), type: unescaped(type), source: unescaped(source) });
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
