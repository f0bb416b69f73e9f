/** The programs of `--image-credential-provider-config`, in the folder of `--image-credential-provider-bin-dir`. */

import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { parseDocument } from 'yaml';
import { readProviders } from '../../machines/runtime/imagePuller/credentialProviders.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { parseGoDuration } from '../../machines/text/go/goDuration.ts';
import type { Clock, CredentialPrograms } from '../../ports/ports.ts';
import { type Problem, StartError } from '../errors.ts';
import { runProgram } from './program.ts';

const CONFIG_FLAG = '--image-credential-provider-config';
const DIR_FLAG = '--image-credential-provider-bin-dir';
const FILE_BYTES_MAX = 1024 * 1024;
const ALIASES_MAX = 0;

/**
 * Undefined where none are asked for.
 * @throws StartError with everything that is wrong with the file and the programs.
 */
export async function loadCredentialPrograms(
  flags: { imageCredentialProviderConfig: string; imageCredentialProviderBinDir: string },
  /** `tokens`: gate KubeletServiceAccountTokenForCredentialProviders. */
  o: { clock: Clock; env: Readonly<Record<string, string | undefined>>; tokens: boolean },
): Promise<CredentialPrograms | undefined> {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: dir } = flags;
  if (file === '') return undefined;
  const { providers, problems } = readProviders(await decode(file), { parseDuration: parseGoDuration, tokens: o.tokens });
  const wrong: Problem[] = problems.map(({ path, what }) => ({ where: `${CONFIG_FLAG} ${file}${path === '' ? '' : `: ${path}`}`, what }));
  for (const provider of providers) {
    const why = await notRunnable(join(dir, provider.name));
    if (why !== null) wrong.push({ where: `${DIR_FLAG} ${dir}`, what: `the program of provider ${JSON.stringify(provider.name)} ${why}` });
  }
  if (wrong.length > 0) throw new StartError('the credential providers cannot be used', wrong);
  return {
    providers,
    run: (provider, input, { timeoutMs, signal }) =>
      runProgram(
        { command: join(dir, provider.name), args: provider.args, env: o.env, settings: provider.env, input },
        { clock: o.clock, limitMs: timeoutMs, signal },
      ),
  };
}

async function decode(file: string): Promise<unknown> {
  const fail = (what: string): never => {
    throw new StartError('the credential providers cannot be used', [{ where: `${CONFIG_FLAG} ${file}`, what }]);
  };
  let text = '';
  try {
    text = (await readRegular(file, { bytesMax: FILE_BYTES_MAX })).toString('utf8');
  } catch (error) {
    if (error instanceof StartError) throw error;
    fail(`cannot be read: ${messageOf(error)}`);
  }
  const document = parseDocument(text, { uniqueKeys: true });
  const [problem] = document.errors;
  // Its words name the place; what stands there may be a secret of a provider's environment.
  if (problem !== undefined) fail(`is not YAML: ${problem.code} in line ${problem.linePos?.[0].line ?? '?'}`);
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch {
    return fail('must have no aliases');
  }
}

/** Why the program cannot be run. Null: it can be. */
async function notRunnable(path: string): Promise<string | null> {
  try {
    if (!(await stat(path)).isFile()) return `is no file: ${path}`;
    await access(path, constants.X_OK);
    return null;
  } catch (error) {
    return `cannot be run: ${messageOf(error)}`;
  }
}
