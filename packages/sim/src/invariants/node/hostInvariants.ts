/** Invariants about what a node keeps in its host, and about what it knows of its own object. */
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { FAMILIES } from '@actorlet/kubelet/machines/services/iptables/families.ts';
import { actsOf } from '@actorlet/kubelet/machines/services/iptables/rules.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { Checker } from '../checker.ts';

const CHAINS = 'node/services/iptables';

/** What is made again is looked for first: a rule is in its chain once. */
export function rulesAreMadeOnce(): Checker {
  return {
    name: 'rules-are-made-once',
    beat({ node }) {
      if (!node.tuning.packetFilter) return undefined;
      for (const family of FAMILIES) {
        for (const act of actsOf(family)) {
          if (act.kind !== 'rule') continue;
          const rule = act.rule.join(' ');
          const there = node.iptables.rules(family, act.table, act.chain)?.filter((r) => r === rule).length ?? 0;
          if (there > 1) return `${node.name}: IPv${family} chain ${act.chain} has the rule ${rule} ${there} times`;
        }
      }
      return undefined;
    },
  };
}

/** The node never goes back to an older version of its own object while its watch lives. */
export function ownObjectGoesForward(): Checker {
  const seen = new Map<string, { boots: number; incarnation: number; version: number }>();
  return {
    name: 'own-object-goes-forward',
    beat({ node }, state) {
      const view = node.daemon?.tree.registry.read(apiView.nodeObject)?.value;
      const watch = state.children.find((c) => c.path === 'node/api')?.children.find((c) => c.path === 'node/api/nodeWatch');
      const version = Number(view?.object?.metadata.resourceVersion ?? Number.NaN);
      if (watch === undefined || Number.isNaN(version)) return undefined;
      const before = seen.get(node.name);
      const now = { boots: node.boots, incarnation: watch.incarnation, version };
      seen.set(node.name, now);
      if (before?.boots !== now.boots || before.incarnation !== now.incarnation || before.version <= version) return undefined;
      return `${node.name}: the node's object was known as of version ${before.version}, and is as of ${version}`;
    },
  };
}

/** In fair weather the chains are there, in both families, and the node knows its object as the API server has it. */
export function hostUnsettled(node: SimNode, tree: SupervisionTree): string[] {
  const found: string[] = [];
  if (node.tuning.packetFilter) {
    const { value } = (tree.actorAt(CHAINS)?.getSnapshot() ?? {}) as { value?: unknown };
    if (value !== 'watching' && value !== 'looking') found.push(`the iptables manager is ${String(value)}`);
    for (const family of FAMILIES) {
      for (const act of actsOf(family)) {
        const rules = node.iptables.rules(family, act.table, act.chain);
        if (rules === null) found.push(`IPv${family} has no chain ${act.chain} in table ${act.table}`);
        else if (act.kind === 'rule' && !rules.includes(act.rule.join(' '))) found.push(`IPv${family} chain ${act.chain} lacks its rule`);
      }
    }
  }
  const there = node.kube?.store.list('nodes').find((o) => o.metadata.name === node.name);
  const known = tree.registry.read(apiView.nodeObject)?.value.object;
  if (there !== undefined && known?.metadata.resourceVersion !== there.metadata.resourceVersion)
    found.push(
      `the node knows its object as of version ${known?.metadata.resourceVersion ?? 'none'}, and it is as of ${there.metadata.resourceVersion ?? ''}`,
    );
  return found;
}
