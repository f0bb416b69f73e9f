/**
 * What ends the programs of a control plane whose starter was killed: a shell that waits for the end of its input. The next start does the
 * same for what a warden left.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const WARDEN = 'warden';
const SWEEP_TIMEOUT_MS = 30_000;

/**
 * `$1`: the folder of the control plane. A process id may be another's by now: its command line must name the folder, as that of each
 * program does. `own` gives the ids of those that run, of which a zombie is none.
 */
const SWEEP = `
own() {
  for file in "$1"/run/*.pid; do
    [ -f "$file" ] && read -r pid <"$file" || continue
    case $pid in '' | *[!0-9]* | $$) continue ;; esac
    if [ -d /proc/self ]; then line=$(tr '\\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"); else line=$(ps -ww -o command= -p "$pid" 2>/dev/null); fi
    case $line in *"$1/"*) echo "$pid" ;; esac
  done
}
sweep() {
  for pid in $(own "$1"); do kill -9 "$pid" 2>/dev/null; done
  tries=0
  while [ -n "$(own "$1")" ] && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
}`;

/** A second look: a program that was being started wrote its id a moment later. `$2`: the folder goes, too. */
const WAIT = `${SWEEP}
trap '' INT TERM HUP
cat >/dev/null
sweep "$1"
sleep 1
sweep "$1"
if [ "$2" = remove ]; then rm -rf -- "$1"; fi`;

export function wardenCommand(dir: string, o: { remove: boolean }): [string, ...string[]] {
  return ['/bin/sh', '-c', WAIT, WARDEN, dir, o.remove ? 'remove' : 'keep'];
}

/** Ends what an earlier control plane of that folder left. */
export async function sweep(dir: string): Promise<void> {
  await run('/bin/sh', ['-c', `${SWEEP}\nsweep "$1"`, 'sweep', dir], { timeout: SWEEP_TIMEOUT_MS });
}
