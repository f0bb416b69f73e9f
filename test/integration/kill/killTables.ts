/** The stories of all actors in all states, and the machines of the sources with their states. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { StateMachine } from 'xstate';
import type { KillCase } from './killing.ts';

/** What files `kill*.ts` below this folder export as `NAME_CASES`: a new file needs no line here. */
export const KILL_TABLES: Record<string, KillCase[]> = await tablesIn(import.meta.dirname);

async function tablesIn(dir: string): Promise<Record<string, KillCase[]>> {
  const tables: Record<string, KillCase[]> = {};
  for (const file of readdirSync(dir, { encoding: 'utf8', recursive: true }).sort()) {
    if (!/(?:^|\/)kill(?!Tables|ing)\w+\.ts$/.test(file)) continue;
    const module = (await import(join(dir, file))) as Record<string, KillCase[]>;
    for (const [name, cases] of Object.entries(module)) {
      const title = /^(\w+)_CASES$/.exec(name)?.[1]?.replaceAll('_', ' ').toLowerCase();
      if (title !== undefined) tables[title] = cases;
    }
  }
  return tables;
}

interface StateNodeLike {
  id: string;
  path: string[];
  states: Record<string, StateNodeLike>;
}

const MACHINES = ['src/machines', 'packages/deaths/src'].map((dir) => join(import.meta.dirname, '../../..', dir));

/** Machines of a node: of the kubelet and of what extends it. */
export async function nodeMachines(): Promise<{ root: StateNodeLike }[]> {
  const found: unknown[] = [];
  for (const e of MACHINES.flatMap((dir) => readdirSync(dir, { withFileTypes: true, recursive: true }))) {
    if (!e.isFile() || !e.name.endsWith('.ts')) continue;
    const module = (await import(join(e.parentPath, e.name))) as Record<string, unknown>;
    found.push(...Object.values(module).filter((v) => v instanceof StateMachine));
  }
  return found as never;
}

/** Dotted paths of the states that have no states below them. */
export function leaves(node: StateNodeLike): string[] {
  const below = Object.values(node.states);
  return below.length === 0 ? [node.path.join('.')] : below.flatMap(leaves);
}
