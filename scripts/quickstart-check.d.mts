/** Types of quickstart-check.mjs for the tests. */
export function waitForQuickstart(
  url: string,
  o: { timeoutMs: number; everyMs?: number },
): Promise<{ ok: boolean; reachedMs: Record<string, number>; seen: Record<string, string>; problem: string }>;
