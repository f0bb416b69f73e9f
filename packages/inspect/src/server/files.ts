/** The page as it was built: every file of `dist/inspect`, by the path under which it is served. */
import { existsSync, readdirSync } from 'node:fs';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

export interface PageFile {
  file: string;
  type: string;
  /** Its name changes with its content. */
  hashed: boolean;
}

/** Empty where the page was not built. What is not in the list is not served, whatever a path looks like. */
export function pageFiles(from: string = import.meta.url): ReadonlyMap<string, PageFile> {
  const root = pageRoot(dirname(fileURLToPath(from)));
  const out = new Map<string, PageFile>();
  if (root === null) return out;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const type = TYPES[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const file = join(entry.parentPath, entry.name);
    const path = `/${relative(root, file)}`;
    out.set(path === '/index.html' ? '/' : path, { file, type, hashed: path.startsWith('/assets/') });
  }
  return out;
}

/** From a bundle in `dist/chunks` one folder up, from the sources in the package's `dist`. */
function pageRoot(start: string): string | null {
  for (let dir = start; ; dir = dirname(dir)) {
    for (const candidate of [join(dir, 'inspect'), join(dir, 'dist', 'inspect')]) {
      if (existsSync(join(candidate, 'index.html')) && existsSync(join(candidate, 'assets'))) return candidate;
    }
    if (dirname(dir) === dir) return null;
  }
}
