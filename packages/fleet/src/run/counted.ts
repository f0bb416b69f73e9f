/** `1 node`, `2 nodes`. */
export function counted(count: number, many: string): string {
  return `${count} ${count === 1 ? many.replace(/s$/, '') : many}`;
}
