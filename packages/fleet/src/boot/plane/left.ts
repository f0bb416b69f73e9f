/** Temporary folders of processes that were killed: the next one removes them. */
import { readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isClaimed } from './claim.ts';

/** A folder that another process made, and has not claimed yet, is younger. */
const LEFT_AFTER_MS = 60_000;

/** Those whose names begin so, of this user, without a claim. `first`: done for each before. */
export async function removeLeft(prefix: string, first: (dir: string) => Promise<void> = async () => {}): Promise<void> {
  // Elsewhere it cannot be known whether one is in use.
  if (process.platform !== 'linux') return;
  for (const name of namesIn(tmpdir()).filter((of) => of.startsWith(prefix))) {
    const dir = join(realpathSync(tmpdir()), name);
    const stat = statSync(dir, { throwIfNoEntry: false });
    if (stat?.isDirectory() !== true || stat.uid !== process.getuid?.() || Date.now() - stat.mtimeMs < LEFT_AFTER_MS) continue;
    if (await isClaimed(dir)) continue;
    await first(dir);
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** None of a folder that this user may write and not list. */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
