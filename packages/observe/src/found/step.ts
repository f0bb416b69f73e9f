/** `actorlet observe`: what it is called with, and the steps that find the kubelet in place of the command line and files of a node. */
import { closeSync, writeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LoadedConfig } from '@actorlet/kubelet/boot/config/load.ts';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { EXIT, StartError } from '@actorlet/kubelet/boot/errors.ts';
import { type ParsedFlags, parseFlags } from '@actorlet/kubelet/boot/flags/parse.ts';
import { type BootContext, need, type Step } from '@actorlet/kubelet/boot/steps/context.ts';
import { openOwnSync } from '@actorlet/process/src/regularFile.ts';
import { giveWay, NICE_DEFAULT, NICE_MAX, setNice } from '../priority.ts';
import { kubeconfigOf } from './access.ts';
import { type FindOptions, type FoundKubelet, findKubelet } from './found.ts';
import { jsonOf, linesOf } from './shown.ts';
import { watchKubelet } from './watch.ts';

export interface ObserveArguments {
  /** Flags of the observer itself, as of any node. */
  own: ParsedFlags;
  pid: number | null;
  /** `--observe-dir`: the observer's own folder, the only one that it writes in. */
  folder: string;
  hostRoot: string | null;
  /** `--kubelet-credentials`: read with those of the kubelet also where a pod has a service account. */
  asKubelet: boolean;
  /** `--show-kubelet`: say what was found, and end. */
  show: boolean;
  json: boolean;
  /** `--listen`: null = nobody asks over TCP. */
  listen: { host: string; port: number } | null;
  /** `--token-file`; '' = the observer makes a token. */
  tokenFile: string;
  /** `--nice`. */
  nice: number;
}

const NUMBER_MAX = 2 ** 22;
const PORT_MAX = 65_535;
const OWN_FOLDER = '/var/lib/actorlet-observe';
const LISTEN_DEFAULT = '127.0.0.1:10261';
const FOLDER_MODE = 0o700;
/** It may hold the credentials of the kubelet. */
const KUBECONFIG_MODE = 0o600;

const HELP = `actorlet observe runs beside the kubelet of this machine and changes nothing but its own folder (docs/observe.md).

Usage: actorlet observe [flags]

      --show-kubelet         say what was found of the kubelet, and end
  -o, --output text|json     how it is said
      --kubelet-pid N        which process is the kubelet, where there is more than one
      --kubelet-credentials  read with the kubelet's credentials also where the pod has a service account
      --kubeconfig FILE      read with these credentials
      --host-root DIR        where the root of the machine is; by default it is found out
      --listen HOST:PORT     answer actorctl there, too, on the loopback and with a token; alone: ${LISTEN_DEFAULT}
      --token-file FILE      that token; by default one is made at each start, which 'actorctl token' prints
      --nice N               how far it stands behind other processes, 0 to ${NICE_MAX}; default ${NICE_DEFAULT}
      --observe-dir DIR      its own folder, the only one that it writes in; default ${OWN_FOLDER}
  -h, --help                 print this text and end

Flags of the daemon that begin with --actorlet-, and --v, hold as well: actorlet --help lists them.
`;

/** Reads the words behind `observe`. @throws StartError with all that is wrong */
export function observeArguments(argv: readonly string[], { cwd }: { cwd: string }): ObserveArguments {
  const wrong: string[] = [];
  const rest: string[] = [];
  let [pid, hostRoot]: [number | null, string | null] = [null, null];
  let [show, json, asKubelet, folder] = [false, false, false, OWN_FOLDER];
  let [listen, tokenFile, nice]: [ObserveArguments['listen'], string, number] = [null, '', NICE_DEFAULT];
  const words = argv[0] === 'observe' ? argv.slice(1) : argv;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const [name = '', inline] = /^(--[^=]+)=(.*)$/s.exec(word)?.slice(1) ?? [word];
    const value = (): string => inline ?? words[++i] ?? '';
    if (word === '--show-kubelet' || word === '--show-kubelet=true') show = true;
    else if (word === '--kubelet-credentials' || word === '--kubelet-credentials=true') asKubelet = true;
    else if (name === '--kubelet-pid') {
      const given = value();
      pid = /^[1-9]\d{0,6}$/.test(given) && Number(given) <= NUMBER_MAX ? Number(given) : null;
      if (pid === null) wrong.push(`--kubelet-pid: ${JSON.stringify(given)} is not the number of a process`);
    } else if (name === '--host-root') {
      const given = value();
      hostRoot = resolve(cwd, given).replace(/\/+$/, '');
      if (given === '') wrong.push('--host-root: needs a folder');
    } else if (word === '--listen' || name === '--listen') {
      const given = inline ?? LISTEN_DEFAULT;
      listen = loopbackOf(given);
      if (listen === null) wrong.push(`--listen: ${JSON.stringify(given)} is no port of the loopback; say it as ${LISTEN_DEFAULT}`);
    } else if (name === '--token-file') {
      const given = value();
      tokenFile = resolve(cwd, given);
      if (given === '') wrong.push('--token-file: needs a file');
    } else if (name === '--nice') {
      const given = value();
      nice = /^\d{1,2}$/.test(given) ? Number(given) : Number.NaN;
      if (!(nice <= NICE_MAX)) wrong.push(`--nice: ${JSON.stringify(given)} is no number from 0 to ${NICE_MAX}`);
    } else if (name === '--observe-dir') {
      const given = value();
      folder = resolve(cwd, given);
      if (given === '') wrong.push('--observe-dir: needs a folder');
    } else if (name === '-o' || name === '--output') {
      const given = value();
      json = given === 'json';
      if (given !== 'json' && given !== 'text') wrong.push(`-o: ${JSON.stringify(given)} is not a format; use text or json`);
    } else rest.push(word);
  }
  const own = parseFlags(rest, { cwd });
  wrong.push(...own.errors);
  if (wrong.length > 0)
    throw new StartError(
      'the command line is not valid',
      wrong.map((what) => ({ where: 'command line', what })),
    );
  return { own, pid, folder, hostRoot, asKubelet, show, json, listen, tokenFile, nice };
}

/** Null: it is no port of the loopback. A name is none: what it stands for is in a file of the node. */
function loopbackOf(text: string): ObserveArguments['listen'] {
  const [, six, four, digits = ''] = /^(?:\[(::1)\]|(127(?:\.\d{1,3}){3})):(\d{1,5})$/.exec(text) ?? [];
  const host = six ?? four;
  return host === undefined || Number(digits) > PORT_MAX ? null : { host, port: Number(digits) };
}

function optionsOf({ own, pid, hostRoot, asKubelet }: ObserveArguments, ctx: Pick<BootContext, 'env' | 'ending'>): FindOptions {
  return { pid, hostRoot, asKubelet, own: own.given, env: ctx.env, clock: createClock(), signal: ctx.ending.signal };
}

/**
 * The tree reads a kubeconfig, so one is written for it where the credentials are no file of the kubelet as they are. Nothing is renewed:
 * files of the kubelet stay its own.
 */
async function withOwnFolder(found: FoundKubelet, { own, folder }: ObserveArguments): Promise<LoadedConfig> {
  const { loaded, access } = found;
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  let kubeconfig = access.client?.path ?? '';
  if (access.client !== null && !access.asFile) {
    kubeconfig = join(folder, 'kubeconfig');
    const fd = openOwnSync(kubeconfig, KUBECONFIG_MODE);
    try {
      writeSync(fd, kubeconfigOf(access.client));
    } finally {
      closeSync(fd);
    }
  }
  const adminSocket = own.given.has('actorlet-admin-socket') ? loaded.flags.adminSocket : join(folder, 'actorlet.sock');
  return {
    ...loaded,
    flags: { ...loaded.flags, kubeconfig, bootstrapKubeconfig: '', adminSocket },
    config: { ...loaded.config, rotateCertificates: false },
  };
}

const BACK = {
  starts: 'the kubelet was started again; what it runs with is not known yet',
  continued: 'the kubelet goes on',
  restarted: 'the kubelet was started again, as before',
} as const;

/** What {@link findTheKubelet} found, for {@link watchTheKubelet}. */
const foundIn = new WeakMap<BootContext, FoundKubelet>();

/** In place of parseArguments and loadConfiguration. */
export const findTheKubelet: Step = {
  name: 'find the kubelet',
  async run(ctx) {
    const args = observeArguments(ctx.argv, { cwd: ctx.io.cwd });
    if (args.own.given.get('help')?.value === true) {
      ctx.io.stdout.write(HELP);
      return { exit: EXIT.ok };
    }
    const found = await findKubelet(optionsOf(args, ctx));
    if (args.show) {
      ctx.io.stdout.write(args.json ? jsonOf(found) : `${linesOf(found).join('\n')}\n`);
      return { exit: EXIT.ok };
    }
    const why = setNice(args.nice);
    if (why !== null) ctx.remarks.push({ level: 'warn', text: `the priority of this process stays as it is: ${why}` });
    if (args.nice === NICE_MAX) ctx.cleanup.defer(giveWay());
    foundIn.set(ctx, found);
    ctx.state.parsed = { given: new Map([...found.given, ...args.own.given]), errors: [], notices: [] };
    ctx.state.loaded = { ...(await withOwnFolder(found, args)), errors: [], warnings: [] };
    ctx.remarks.push(...linesOf(found).map((text) => ({ level: 'info' as const, text })));
    return undefined;
  },
};

/** Without `--kubelet-pid`, or with the one that it has now. */
function withPid(argv: readonly string[], pid: number): readonly string[] {
  const isPid = (word: string): boolean => word.split('=', 1)[0] === '--kubelet-pid';
  if (!argv.some(isPid)) return argv;
  return [...argv.filter((word, i) => !isPid(word) && argv[i - 1] !== '--kubelet-pid'), `--kubelet-pid=${pid}`];
}

/**
 * A kubelet that starts with something else makes the observer begin anew; one that ends, restarts or is stopped is named.
 * `starts`, `goesOn`: it works again, after a time in which it could do nothing. `stops`: it does nothing now.
 */
export const watchTheKubelet = ({ starts, goesOn, stops }: { starts(): void; goesOn(): void; stops(): void }): Step => ({
  name: 'watch the kubelet',
  run(ctx) {
    const log = need(ctx, 'log');
    const args = observeArguments(ctx.argv, { cwd: ctx.io.cwd });
    const begun = foundIn.get(ctx);
    if (begun === undefined) throw new Error('no kubelet was found before it is watched');
    ctx.cleanup.use(
      watchKubelet({
        found: begun,
        clock: createClock(),
        find: (before, seen) => findKubelet({ ...optionsOf(args, ctx), before, seen }),
        onChange(change) {
          if (change.kind === 'ended' || change.kind === 'stopped') stops();
          if (change.kind === 'unclear') log.warn({ why: change.why }, 'no kubelet is observed now');
          else if (change.kind === 'ended') log.warn({ pid: change.pid }, 'the kubelet has ended; its next start is waited for');
          else if (change.kind === 'stopped') log.warn({ pid: change.pid }, 'the kubelet was stopped by a signal, and does nothing now');
          else if (change.kind === 'starts' || change.kind === 'continued' || change.kind === 'restarted') {
            if (change.kind === 'continued') goesOn();
            else starts();
            log.info({ pid: change.pid }, BACK[change.kind]);
          } else {
            log.warn({ pid: change.pid, changed: change.what }, 'the kubelet was started with something else; the observer begins anew');
            ctx.state.again = withPid(ctx.argv, change.pid);
            ctx.ending.abort(new Error('the kubelet was started with something else'));
          }
        },
      }),
    );
    return undefined;
  },
});
