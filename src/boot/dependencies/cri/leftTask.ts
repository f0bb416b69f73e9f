/**
 * containerd (seen in 1.6) may forget a task: when the caller of StartContainer goes away between the making of the
 * task and the asking for its pid, the container counts as exited, its made but never started task stays, and
 * RemoveContainer is refused until containerd itself is restarted, that of its sandbox too. CRI has no call for it, so
 * the task is ended through containerd's own task service, and the removal asked for again.
 */
import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { type Clock, CriError } from '../../../ports/ports.ts';
import { CRI_NAMESPACE, loadTasksProto, type Method, type TasksProto } from './load.ts';

/** The refusal. Not said of a container that CRI holds for running or starting: those it stops, or says so. */
const TASK_LEFT = /cannot delete running task/;
/** For all three calls together: a task that never ran ends at once. */
const END_TIMEOUT_MS = 10_000;
const SIGKILL = 9;

export function isLeftTask(method: string, error: unknown): boolean {
  return method === 'RemoveContainer' && error instanceof CriError && TASK_LEFT.test(error.details);
}

/** Kills the task, waits for its end, deletes it. A task that is gone already is as good. @throws a gRPC error otherwise. */
export class LeftTasks {
  #proto: TasksProto | undefined;
  readonly #clock: Clock;
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async end(client: Client, containerId: string): Promise<void> {
    this.#proto ??= loadTasksProto();
    const deadline = this.#clock.wallMs() + END_TIMEOUT_MS;
    const steps: [Method, object][] = [
      [this.#proto.kill, { containerId, signal: SIGKILL, all: true }],
      [this.#proto.wait, { containerId }],
      [this.#proto.delete, { containerId }],
    ];
    for (const [method, request] of steps) await unary(client, method, request, deadline);
  }
}

function unary(client: Client, method: Method, request: object, deadline: number): Promise<void> {
  const metadata = new Metadata();
  metadata.set('containerd-namespace', CRI_NAMESPACE);
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null) => (error === null || error.code === status.NOT_FOUND ? resolve() : reject(error));
    client.makeUnaryRequest(method.path, method.requestSerialize, method.responseDeserialize, request, metadata, { deadline }, done);
  });
}
