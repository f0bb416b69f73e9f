/** What a person may do to a pod, where the daemon allows it: each asks first, by name, and says what will happen. */

import { useEffect, useRef, useState } from 'react';
import { token } from '../../route.ts';

type Act = 'restart' | 'delete';
const WORDS = { restart: { title: 'Restart', verb: 'Restart pod' }, delete: { title: 'Delete', verb: 'Delete pod' } } as const;

interface Answered {
  can: boolean;
  lines: readonly string[];
}
async function ask(act: Act, wish: object): Promise<Answered> {
  const headers = { 'content-type': 'application/json', 'x-actorlet-token': token() };
  const answer = await fetch(`/api/pod/${act}`, { method: 'POST', headers, body: JSON.stringify(wish) }).catch(() => null);
  if (answer === null) return { can: false, lines: ['The daemon does not answer. Whether it was done is not known.'] };
  const text = await answer.text().catch(() => '');
  try {
    return JSON.parse(text) as Answered;
  } catch {
    return { can: false, lines: [text.trim()] };
  }
}

/** `containers`: names of those that can be restarted alone. */
export function PodActs({ uid, who, containers }: { uid: string; who: string; containers: readonly string[] }) {
  const [open, setOpen] = useState<Act | null>(null);
  const [said, setSaid] = useState<Answered | null>(null);
  const done = (answer: Answered | null) => {
    setOpen(null);
    setSaid(answer);
  };
  if (token() === '')
    return (
      <p className="quiet acts-on-pod">
        Open this page with <code>actorctl ui</code> to restart or delete this pod.
      </p>
    );
  return (
    <div className="bar acts-on-pod">
      {(['restart', 'delete'] as const).map((act) => (
        <button key={act} type="button" aria-haspopup="dialog" onClick={() => setOpen(act)}>
          {WORDS[act].title}
        </button>
      ))}
      <span role="status" className={said?.can === false ? 'tone-bad' : 'quiet'}>
        {said?.lines.join('; ')}
      </span>
      {open !== null && <Question key={open} act={open} uid={uid} who={who} containers={containers} onDone={done} />}
    </div>
  );
}

interface Asked {
  act: Act;
  uid: string;
  who: string;
  containers: readonly string[];
  /** Null: nothing was done. */
  onDone(answer: Answered | null): void;
}

/** A modal dialog: the keyboard stays in it, and Escape closes it. */
function Question({ act, uid, who, containers, onDone }: Asked) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [container, setContainer] = useState('');
  const [preview, setPreview] = useState<Answered | null>(null);
  const [busy, setBusy] = useState(false);
  const { title, verb } = WORDS[act];
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    let isCurrent = true;
    setPreview(null);
    void ask(act, { uid, container, preview: true }).then((answer) => isCurrent && setPreview(answer));
    return () => {
      isCurrent = false;
    };
  }, [act, uid, container]);
  const carryOut = async () => {
    setBusy(true);
    onDone(await ask(act, { uid, container }));
  };
  return (
    <dialog ref={dialog} className="ask" aria-labelledby="ask-title" onClose={() => onDone(null)}>
      <h2 id="ask-title">
        {verb} <strong>{who}</strong>?
      </h2>
      {act === 'restart' && containers.length > 1 && (
        <label>
          Containers{' '}
          <select value={container} onChange={(e) => setContainer(e.target.value)}>
            <option value="">all of them</option>
            {containers.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <div role="status" className={preview?.can === false ? 'tone-bad' : ''}>
        {preview === null ? <p className="quiet">Asking…</p> : preview.lines.map((line) => <p key={line}>{line}</p>)}
      </div>
      <p className="bar">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button type="button" className="danger" disabled={busy || preview?.can !== true} onClick={() => void carryOut()}>
          {title}
        </button>
      </p>
    </dialog>
  );
}
