/** What a tap on the mailboxes may say about a message. */
import type { Message } from './address.ts';

/**
 * Decides what becomes of one message on its way into a mailbox. Installed in a tree; asked once per message
 * that an actor sends, never for what the supervision itself puts back (retries, resyncs). `path` is the address as the
 * sender names it. A dropped message counts as delivered to its sender; a dropped question is lost to its asker.
 */
export type MailboxTap = (path: string, lane: 'control' | 'data', event: Message) => MailboxVerdict;

export type MailboxVerdict = 'pass' | 'drop' | 'reorder' | { delayMs: number };
