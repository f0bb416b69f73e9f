/** The step that sends traces of pods' starts and stops; its code is loaded only where the configuration asks for it. */

import type { QueueFigures } from '@actorlet/inspect/src/tracing/queue.ts';
import type { PodTracer } from '@actorlet/inspect/src/tracing/tracer.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Metrics } from '../../ports/ports.ts';
import { need, type Step } from './context.ts';

/** A receiver that is away does not delay the end of the daemon for longer. */
const END_LIMIT_MS = 2_000;

export const traceTheNode: Step = {
  name: 'trace the node',
  async run(ctx) {
    const { config } = need(ctx, 'nodeConfig');
    const inspected = need(ctx, 'node').inspected ?? null;
    // No caller's trace is joined here, so without a rate nothing is sampled.
    const samplingRatePerMillion = config.tracing?.samplingRatePerMillion ?? 0;
    if (config.tracing === null) return undefined;
    const log = need(ctx, 'log');
    if (samplingRatePerMillion <= 0 || inspected === null) {
      log.info({ field: 'tracing.samplingRatePerMillion' }, 'tracing is configured without a sampling rate: no trace is sent');
      return undefined;
    }
    const { clock, entropy, metrics, kube } = need(ctx, 'ports');
    try {
      const [{ PodTracer }, { SpanQueue }, { createOtlpSender, DEFAULT_ENDPOINT }] = await Promise.all([
        import('@actorlet/inspect/src/tracing/tracer.ts'),
        import('@actorlet/inspect/src/tracing/queue.ts'),
        import('../tracing/otlp.ts'),
      ]);
      const endpoint = config.tracing.endpoint ?? DEFAULT_ENDPOINT;
      const { nodeName, version } = inspected;
      // As the reference names itself.
      const resource = { 'service.name': 'kubelet', 'service.version': version, 'host.name': nodeName, 'k8s.node.name': nodeName };
      const sender = ctx.cleanup.use(createOtlpSender({ endpoint, resource, version, clock }));
      const queue = new SpanQueue(sender, { clock, log });
      const tracer = new PodTracer(inspected, {
        samplingRatePerMillion,
        sha256Hex: (text) => entropy.sha256Hex(text),
        sink: (spans) => queue.add(spans),
        cluster: kube !== undefined,
      });
      addTracingMetrics(metrics, { figures: queue.figures, tracer });
      ctx.state.tracing = {
        async end() {
          tracer[Symbol.dispose]();
          await queue.end(END_LIMIT_MS);
        },
      };
      log.info({ endpoint, samplingRatePerMillion }, "traces of pods' starts and stops are sent");
    } catch (error) {
      // It looks at the node and is no part of it: without it pods run all the same.
      log.error({ field: 'tracing', err: messageOf(error) }, 'traces are not sent');
    }
    return undefined;
  },
};

function addTracingMetrics(metrics: Metrics, from: { figures: QueueFigures; tracer: PodTracer }): void {
  const exported = metrics.gauge('actorlet_tracing_exported_spans', 'Spans that the receiver of traces has taken since the start.');
  const dropped = metrics.gauge(
    'actorlet_tracing_dropped_spans',
    'Spans that were not sent since the start: the receiver was away or refused them.',
  );
  const leftOut = metrics.gauge('actorlet_tracing_left_out_traces', 'Starts and stops of pods without a trace: too many were under way.');
  metrics.onCollect(() => {
    exported.set(from.figures.exported);
    dropped.set(from.figures.dropped);
    leftOut.set(from.tracer.leftOut);
  }, 'tracing');
}
