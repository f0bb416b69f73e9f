/** What `actorctl chart` can print; apart, since the command itself is loaded only when it is wanted. */
export const CHART_FORMATS = ['mermaid', 'stately', 'json'] as const;
export type ChartFormat = (typeof CHART_FORMATS)[number];
