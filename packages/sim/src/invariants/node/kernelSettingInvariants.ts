/** Invariants of the kernel settings that a node relies on. */
import { KERNEL_SETTINGS } from '@actorlet/kubelet/machines/host/kernelSettings.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { Checker } from '../checker.ts';

/** Settings of the machine that are not those of a node, as the refusal of a start names them. */
function differing({ kernelSettings: { values } }: SimNode): string[] {
  return KERNEL_SETTINGS.flatMap(({ path, value }) => {
    const actual = values.get(path)?.trim() ?? '';
    return actual === String(value) ? [] : [`invalid kernel flag: ${path}, expected value: ${value}, actual value: ${actual}`];
  });
}

/** No tree starts over other settings than a node's; with `protectKernelDefaults` none is ever changed. */
export function nodesStandOnTheirSettings(): Checker {
  return {
    name: 'nodes-stand-on-their-settings',
    judged({ node }, problems) {
      if (node.tuning.kernel === null || problems.length > 0) return undefined;
      const [wrong] = differing(node);
      if (wrong !== undefined) return `${node.name} started, though: ${wrong}`;
      const [written] = node.kernelSettings.writes;
      return node.tuning.kernel.protect && written !== undefined
        ? `${node.name} wrote ${written} in spite of protectKernelDefaults`
        : undefined;
    },
  };
}

/** A refused start names each setting that is wrong, in the reference's words, and is refused for nothing else. */
export function startsAreRefusedForReason(): Checker {
  return {
    name: 'starts-are-refused-for-reason',
    judged({ node }, problems) {
      if (problems.length === 0) return undefined;
      const wrong = differing(node);
      const told = problems.filter((p) => !/^\S+ cannot be read: EIO: /.test(p));
      const unfounded = told.find((p) => !wrong.some((w) => p.startsWith(w)));
      if (unfounded !== undefined) return `${node.name} did not start for what is not so: ${unfounded}`;
      const unread = problems.length > told.length;
      const silent = node.tuning.kernel?.protect === true && !unread && wrong.find((w) => !told.includes(w));
      return silent ? `${node.name} did not start and did not say: ${silent}` : undefined;
    },
  };
}
