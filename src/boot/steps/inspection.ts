/** The step that serves the inspection page; its code is loaded only where the flag asks for it. */
import { messageOf } from '../../machines/text/errors.ts';
import { need, type Step } from './context.ts';

export const serveInspection: Step = {
  name: 'serve the inspection page',
  async run(ctx) {
    const { flags, config } = need(ctx, 'nodeConfig');
    const at = flags.inspect;
    const inspected = need(ctx, 'node').inspected ?? null;
    if (at === '' || inspected === null) return undefined;
    const log = need(ctx, 'log');
    try {
      const { serveInspector } = await import('@actorlet/inspect/src/boot/server.ts');
      const ports = need(ctx, 'ports');
      const pods = flags.inspectActions ? { kube: ports.kube ?? null } : null;
      const from = { at, logs: { ports, podLogsDir: config.podLogsDir }, pods };
      const server = await serveInspector(inspected, from, (page) => {
        ctx.state.page = { state: 'served', ...page };
        log.info({ address: page.url }, `inspection page: ${page.url}`);
      });
      ctx.cleanup.use(server);
    } catch (error) {
      // It looks at the node and is no part of it: without it pods run all the same.
      ctx.state.page = { state: 'failed', why: messageOf(error) };
      log.error({ flag: '--actorlet-inspect', err: messageOf(error) }, 'the inspection page is not served');
    }
    return undefined;
  },
};
