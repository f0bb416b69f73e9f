/** The place of the table of costs in CONTRIBUTING.md. */
const [BEGIN, END] = ['<!-- costs: npm test -- --cost -->', '<!-- end of costs -->'];

const indented = (table: string): string => table.replaceAll(/^/gm, '  ');

export function withTable(page: string, table: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`CONTRIBUTING.md lacks "${BEGIN}" and "${END}"`);
  return `${page.slice(0, from + BEGIN.length)}\n\n${indented(table)}\n\n  ${page.slice(to)}`;
}
