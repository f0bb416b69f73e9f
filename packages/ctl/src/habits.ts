/** A command line as kubectl's users type it, in the words of this program. Pure. */

/** They take a value, which kubectl's users write right behind it: -ojson, -nshop. */
const WITH_VALUE = /^-([onlc])([^=].*)$/;
const POD = /^(?:pods?|po)$/i;
/** Their only name is that of a pod. */
const OF_A_POD: ReadonlySet<string> = new Set(['why', 'timeline', 'logs', 'exec', 'events', 'deaths', 'death', 'tree']);

export function inOwnWords(argv: readonly string[]): string[] {
  const end = argv.indexOf('--');
  const [own, rest] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)];
  if (own[0] === 'help') return own.length === 1 ? ['--help'] : [...own.slice(1), '--help'];
  const words = own.flatMap((word) => {
    const [, option, value] = WITH_VALUE.exec(word) ?? [];
    return option === undefined || value === undefined ? [word] : [`-${option}`, value];
  });
  if (POD.test(words[0] ?? '')) words[0] = 'pods';
  const at = words.findIndex((word) => OF_A_POD.has(word));
  const [kind = '', name = ''] = words.slice(at + 1);
  if (at >= 0 && POD.test(kind) && /^[^-]/.test(name)) words.splice(at + 1, 2, `pod/${name}`);
  return [...words, ...rest];
}
