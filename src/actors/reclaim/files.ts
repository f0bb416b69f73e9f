/** Looking at files that may not be there. */
import { ifThere } from '../../ports/ifThere.ts';
import type { HostFs } from '../../ports/ports.ts';

/** Follows links: what is at the end; null when there is nothing. */
export function statIfThere(fs: HostFs, path: string): Promise<Awaited<ReturnType<HostFs['stat']>> | null> {
  return ifThere(fs.stat(path));
}
/** The same, for those who want to know no more. */
export async function exists(fs: HostFs, path: string): Promise<boolean> {
  return (await statIfThere(fs, path)) !== null;
}
