/** Messages to the programs of a local control plane. */
import { type Address, address, type ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';

/** In the order in which they start. */
export const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
export type ProgramName = (typeof PROGRAMS)[number];

/** How a program is ended. */
export type EndSignal = 'SIGTERM' | 'SIGKILL';
/** Null: done. Else why not. */
export type ProgramAnswer = string | null;

type Asked = { program: string; replyTo?: ReplyTo<ProgramAnswer> };
export type ProgramEvent =
  /** It runs, and is answered when it is ready. */
  | ({ type: 'program.on' } & Asked)
  /** It ends, and stays ended. */
  | ({ type: 'program.off'; by: EndSignal } & Asked)
  /** The control plane ends. */
  | { type: 'program.end'; program: string };

/** `tree`: the id of its root. */
export const programsAddr = (tree: string): Address<ProgramEvent> => address(`${tree}/programs`);
