/** The real daemon, started as a user would start it, on a folder of its own and with free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/freePort.ts';
import { projectRoot, until } from './report.ts';

export interface Daemon {
  readonly dir: string;
  readonly pid: number;
  /** `http://127.0.0.1:PORT` of the read-only port. */
  readonly url: string;
  readonly manifests: string;
  log(): string;
  /** Renames a manifest into place: the node never sees half a file. Returns the wall time of the rename, milliseconds. */
  put(name: string, pod: object): number;
  remove(name: string): void;
  /** TERM, then KILL after 20 s; then removes the folder. */
  stop(): Promise<void>;
}

/** Starts `bin/actorlet` standalone and waits for /healthz. `config` is merged over the KubeletConfiguration. */
export async function startDaemon(o: {
  endpoint: string;
  config?: object;
  env?: NodeJS.ProcessEnv;
  args?: readonly string[];
  /** Flags of Node, to run from the sources, whose files a profile names. Default: `bin/actorlet`. */
  fromSource?: readonly string[];
}): Promise<Daemon> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-bench-'));
  const manifests = join(dir, 'manifests');
  const staging = join(dir, 'staging');
  const root = join(dir, 'root');
  for (const each of [manifests, staging, root]) mkdirSync(each);
  const [readOnlyPort, healthzPort, port] = [await freePort(), await freePort(), await freePort()];
  const configFile = join(dir, 'config.json');
  writeFileSync(
    configFile,
    JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      containerRuntimeEndpoint: o.endpoint,
      staticPodPath: manifests,
      podLogsDir: join(dir, 'pod-logs'),
      address: '127.0.0.1',
      port,
      readOnlyPort,
      healthzBindAddress: '127.0.0.1',
      healthzPort,
      cgroupsPerQOS: false,
      enforceNodeAllocatable: [],
      failSwapOn: false,
      makeIPTablesUtilChains: false,
      ...o.config,
    }),
  );
  const logFile = join(dir, 'actorlet.log');
  const out = openSync(logFile, 'a');
  const child: ChildProcess = spawn(
    o.fromSource === undefined ? join(projectRoot, 'bin/actorlet') : process.execPath,
    [
      ...(o.fromSource === undefined ? [] : [...o.fromSource, join(projectRoot, 'src/boot/main.ts')]),
      `--root-dir=${root}`,
      `--cert-dir=${join(dir, 'pki')}`,
      `--config=${configFile}`,
      '--hostname-override=bench',
      ...(o.args ?? []),
    ],
    {
      stdio: ['ignore', out, out],
      // The kernel settings of this machine stay as they are.
      env: { ...process.env, ACTORLET_PROC_SYS: join(projectRoot, 'test/e2e/lab/procSys'), ...o.env },
    },
  );
  closeSync(out);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const log = (): string => readFileSync(logFile, 'utf8');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(late);
    rmSync(dir, { recursive: true, force: true });
  };
  const pid = child.pid;
  if (pid === undefined) throw new Error('bin/actorlet could not be started');
  try {
    await until(
      'the daemon to be healthy',
      async () => {
        if (child.exitCode !== null) return 'gone' as const;
        const answer = await fetch(`http://127.0.0.1:${healthzPort}/healthz`, { signal: AbortSignal.timeout(2000) });
        return answer.ok ? ('healthy' as const) : undefined;
      },
      { timeoutMs: 30_000, everyMs: 50 },
    );
    if (child.exitCode !== null) throw new Error(`the daemon ended with exit code ${child.exitCode}`);
  } catch (error) {
    const tail = log().slice(-3000);
    await stop();
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${tail}`);
  }
  return {
    dir,
    pid,
    url: `http://127.0.0.1:${readOnlyPort}`,
    manifests,
    log,
    put(name, pod) {
      const staged = join(staging, `${name}.json`);
      writeFileSync(staged, JSON.stringify(pod));
      const at = Date.now();
      renameSync(staged, join(manifests, `${name}.json`));
      return at;
    },
    remove: (name) => rmSync(join(manifests, `${name}.json`)),
    stop,
  };
}
