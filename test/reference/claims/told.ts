/** What a node agent did with the pods of `story.ts`, and told of them: plain data, with names in place of UIDs. */
import { join } from 'node:path';

export const CLAIMS_RECORDING = join(import.meta.dirname, '../recorded/allocation/claims136.json');

/** A claim as the API has it when its pods run. */
export interface ToldClaim {
  reservedFor: readonly string[];
  owner: string | null;
  results: readonly Record<string, unknown>[];
}
export interface ToldPod {
  /** Of others: what the agent was given. */
  given: Record<string, unknown>;
  /** CDI devices of each container, as the runtime was asked. */
  cdi: Record<string, readonly string[]>;
  /** `allocatedResourcesStatus` of each container. */
  allocated: Record<string, unknown>;
}
export interface ToldClaims {
  pods: Record<string, ToldPod>;
  claims: Record<string, ToldClaim>;
  /** Calls about each claim, in their order. */
  calls: Record<string, readonly string[]>;
  /** Warnings of claims: pod, reason and message. */
  events: readonly string[];
  /** `Data` of dra_manager_state while all run, and when all are gone. */
  checkpoint: { running: unknown; gone: unknown };
}

/** Replaces UIDs and generated names; `known`: what each becomes. */
export function named(known: ReadonlyMap<string, string>): <T>(value: T) => T {
  const all = [...known].sort(([a], [b]) => b.length - a.length);
  return (value) => JSON.parse(all.reduce((text, [from, to]) => text.replaceAll(from, to), JSON.stringify(value)));
}

/** Claims of a checkpoint by name, as their order is that of a map. */
export function checkpointOf(text: string): unknown {
  const { Data } = JSON.parse(text) as { Data: string };
  const { ClaimInfoStateList: list, ...rest } = JSON.parse(Data) as { ClaimInfoStateList: { ClaimName: string }[] | null };
  return { ...rest, ClaimInfoStateList: list?.sort((a, b) => (a.ClaimName < b.ClaimName ? -1 : 1)) ?? null };
}
