/** The step that keeps the flight recorder in a file; its code is loaded only where the flag asks for it. */

import type { WriterFigures } from '@actorlet/inspect/src/recording/writer.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Metrics } from '../../ports/ports.ts';
import { need, type Step } from './context.ts';

const MIB = 1024 * 1024;

export const recordTheNode: Step = {
  name: 'record the node',
  async run(ctx) {
    const { record, recordMaxMib } = need(ctx, 'nodeConfig').flags;
    const inspected = need(ctx, 'node').inspected ?? null;
    if (record === '' || inspected === null) return undefined;
    const log = need(ctx, 'log');
    try {
      const [{ RecordingFile }, { RecordingWriter }] = await Promise.all([
        import('@actorlet/inspect/src/boot/recordingFile.ts'),
        import('@actorlet/inspect/src/recording/writer.ts'),
      ]);
      const file = new RecordingFile({ path: record, bytesMax: recordMaxMib * MIB, log });
      await file.open();
      const writer = new RecordingWriter(inspected, file);
      ctx.cleanup.use(writer);
      const { metrics } = need(ctx, 'ports');
      addRecordingMetrics(metrics, writer.figures);
      ctx.state.recording = {
        async end() {
          writer.end();
          await file.end();
        },
        async abandon() {
          writer.flush();
          await file.end();
        },
      };
      log.info({ file: record, maxMiB: recordMaxMib }, 'the flight recorder is kept on disk');
    } catch (error) {
      // It looks at the node and is no part of it: without it pods run all the same.
      log.error({ flag: '--actorlet-record', err: messageOf(error) }, 'the flight recorder is not kept on disk');
    }
    return undefined;
  },
};

export function addRecordingMetrics(metrics: Metrics, figures: WriterFigures): void {
  const lost = metrics.gauge('actorlet_recording_lost_entries', 'Entries of the flight recorder that were not written to the recording.');
  const written = metrics.gauge('actorlet_recording_bytes', 'Bytes written to the recording since the start.');
  metrics.onCollect(() => {
    lost.set(figures.lost);
    written.set(figures.bytes);
  }, 'recording');
}
