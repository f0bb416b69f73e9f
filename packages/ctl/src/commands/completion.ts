/** `actorctl completion SHELL`: a script that asks actorctl itself what may follow. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** yargs' hidden option that prints what may follow the words after it. */
const ASK = 'actorctl --get-yargs-completions';

const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# source <(actorctl completion bash)
_actorctl() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(${ASK} "\${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _actorctl actorctl
`,
  zsh: `#compdef actorctl
# source <(actorctl completion zsh)
_actorctl() {
  local -a found
  found=("\${(@f)$(SHELL=bash ${ASK} "\${words[@]:0:$CURRENT}" 2>/dev/null)}")
  if (( \${#found} )) && [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
# Loaded by its name, the file is the function; sourced, it only defines it.
if [ "\${funcstack[1]}" = _actorctl ]; then _actorctl; else compdef _actorctl actorctl; fi
`,
  fish: `# actorctl completion fish | source
complete -c actorctl -f -a '(SHELL=bash ${ASK} (commandline -opc) (commandline -ct) 2>/dev/null)'
`,
};

export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}
