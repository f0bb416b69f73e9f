/** Options of the CPU manager's and the topology manager's policies. Pure. */

/** What Go's ParseBool takes. */
const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];
/** Reads an option's `true` or `false`. Null: the text is neither. */
export function parseBool(text: string): boolean | null {
  return TRUE.includes(text) ? true : FALSE.includes(text) ? false : null;
}

export interface OptionMistake {
  /** Name of the option; '' where it is about all of them. */
  option: string;
  /** In the reference's words. */
  what: string;
}
