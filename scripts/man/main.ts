/** Writes man pages and completion scripts for packages into `dist`, from the tables behind `--help`: `npm run build:man`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { completionScript, SHELLS } from '@actorlet/ctl/src/commands/completion.ts';
import { ctlPage } from './ctlPage.ts';
import { daemonCompletion } from './daemonCompletion.ts';
import { daemonPage } from './daemonPage.ts';

const dist = join(import.meta.dirname, '../../dist');
const pages: Record<string, string> = { 'man/actorlet.8': daemonPage(), 'man/actorctl.1': await ctlPage() };
for (const shell of SHELLS) {
  pages[`completions/${shell}/actorctl`] = completionScript(shell);
  pages[`completions/${shell}/actorlet`] = daemonCompletion(shell);
}
for (const [name, text] of Object.entries(pages)) {
  mkdirSync(dirname(join(dist, name)), { recursive: true });
  writeFileSync(join(dist, name), text);
}
console.log(`man: ${Object.keys(pages).join(', ')} in dist`);
