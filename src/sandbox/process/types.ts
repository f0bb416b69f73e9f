/** What the process runtime is given and what it shows. */
import type { CriMethod, CriRequest, CriResponse, RuntimeHint } from '../../machines/wire/cri.ts';
import type { StreamingServer } from './exec.ts';
import type { Isolation } from './probe.ts';
import type { Layout, StoredContainer, StoredSandbox } from './store/store.ts';

export interface RuntimeDeps {
  layout: Layout;
  isolation: Isolation;
  streaming: StreamingServer;
  env: { path: string; home: string };
  nodePath: string;
  log(level: 'info' | 'warn', message: string): void;
}

export interface RuntimeEvent {
  kind: Extract<RuntimeHint['kind'], 'created' | 'started' | 'stopped' | 'deleted'>;
  id: string;
  sandbox: StoredSandbox | undefined;
  containers: StoredContainer[];
}

/** The calls that this runtime serves; others are UNIMPLEMENTED. */
export type Served = Exclude<CriMethod, 'CheckpointContainer' | 'Attach' | 'PortForward' | 'UpdateContainerResources'>;
export type ProcessHandlers = {
  [M in Served]: (req: CriRequest<M>, signal: AbortSignal) => CriResponse<M> | Promise<CriResponse<M>>;
};
export interface ProcessRuntime {
  handlers: ProcessHandlers;
  onEvent(fn: (e: RuntimeEvent) => void): () => void;
  /** Lets go of everything; containers live on. */
  close(): Promise<void>;
}
