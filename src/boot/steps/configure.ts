/** Steps from arguments to a checked configuration. Nothing outside the process is touched but files that are read. */
import { createFeatureGates, gateNames, gateRefusals } from '../../machines/config/gates.ts';
import { didYouMean } from '../../machines/text/nearest.ts';
import { loadConfig } from '../config/load.ts';
import { runnable } from '../config/runnable.ts';
import { validate } from '../config/validate.ts';
import { EXIT, StartError } from '../errors.ts';
import { helpText } from '../flags/help.ts';
import { parseFlags } from '../flags/parse.ts';
import { checkUnimplemented } from '../unimplemented.ts';
import { versionText } from '../version.ts';
import { need, type Step } from './context.ts';

export const parseArguments: Step = {
  name: 'parse arguments',
  run(ctx) {
    const parsed = parseFlags(ctx.argv, { cwd: ctx.io.cwd });
    for (const notice of parsed.notices) ctx.io.stderr.write(`${notice}\n`);
    if (parsed.errors.length > 0) {
      const problems = parsed.errors.map((what) => ({ where: 'command line', what }));
      throw new StartError('the command line is not valid (see --help)', problems);
    }
    ctx.state.parsed = parsed;
    return undefined;
  },
};

/** Errors of the command line come before help, help before version, and both before any file is read. */
export const answerHelpAndVersion: Step = {
  name: 'answer --help and --version',
  async run(ctx) {
    const { given } = need(ctx, 'parsed');
    if (given.get('help')?.value === true) {
      ctx.io.stdout.write(await helpText());
      return { exit: EXIT.ok };
    }
    const version = given.get('version')?.value;
    if (version !== 'true' && version !== 'raw') return undefined;
    ctx.io.stdout.write(`${versionText(version)}\n`);
    return { exit: EXIT.ok };
  },
};

export const loadConfiguration: Step = {
  name: 'load configuration',
  async run(ctx) {
    const loaded = await loadConfig(need(ctx, 'parsed').given, ctx.io.cwd);
    ctx.problems.push(...loaded.errors);
    ctx.remarks.push(...loaded.warnings.map((w) => ({ level: 'warn' as const, text: `${w.where}: ${w.what}` })));
    ctx.state.loaded = loaded;
    return undefined;
  },
};

export const setFeatureGates: Step = {
  name: 'set feature gates',
  run(ctx) {
    const { config, origins } = need(ctx, 'loaded');
    const result = createFeatureGates(config.featureGates);
    const place = (name: string, what: string): string => {
      const origin = origins.get(`featureGates.${name}`);
      return origin === undefined ? what : `${what} [${origin}]`;
    };
    const where = (name: string): string => `featureGates.${name} (--feature-gates)`;
    for (const { name, what } of gateRefusals(result)) ctx.problems.push({ where: where(name), what: place(name, what) });
    for (const name of result.unknown) {
      const what = place(name, `is not a feature gate of this release${didYouMean(name, gateNames())}; it is ignored`);
      ctx.remarks.push({ level: 'warn', text: `${where(name)}: ${what}` });
    }
    ctx.remarks.push(...result.warnings.map((text) => ({ level: 'warn' as const, text })));
    ctx.state.gates = result.gates;
    return undefined;
  },
};

export const validateConfiguration: Step = {
  name: 'validate configuration',
  run(ctx) {
    const { flags, config: written, origins } = need(ctx, 'loaded');
    const gates = need(ctx, 'gates');
    const { config, warnings } = runnable({ config: written, flags, gates });
    ctx.remarks.push(...warnings.map((w) => ({ level: 'warn' as const, text: `${w.where}: ${w.what}` })));
    ctx.problems.push(...validate({ flags, config, gates, origins, given: need(ctx, 'parsed').given }));
    // In run-once mode nothing is served (boot-and-node 10.6).
    const served = config.runOnce ? { ...config, readOnlyPort: 0, enableServer: false } : config;
    ctx.state.nodeConfig = { flags, config: served, gates };
    return undefined;
  },
};

export const checkWhatIsMissing: Step = {
  name: 'check for what is not there yet',
  run(ctx) {
    const { flags, config } = need(ctx, 'loaded');
    const lines = checkUnimplemented(flags, config);
    ctx.remarks.push(...lines.map(({ level, where, what }) => ({ level, text: `${where} has no effect: ${what}` })));
    if (flags.bootstrapKubeconfig !== '' && flags.kubeconfig === '')
      ctx.remarks.push({ level: 'warn', text: '--bootstrap-kubeconfig has no effect without --kubeconfig: the node stands alone' });
    return undefined;
  },
};

export const refuseBadConfiguration: Step = {
  name: 'refuse a bad configuration',
  run(ctx) {
    if (ctx.problems.length === 0) return undefined;
    // There is no log yet, and a mistyped field may be why another one is wrong.
    for (const remark of ctx.remarks) if (remark.level === 'warn') ctx.io.stderr.write(`actorlet: warning: ${remark.text}\n`);
    throw new StartError(`the configuration is not valid (${ctx.problems.length} found)`, ctx.problems);
  },
};
