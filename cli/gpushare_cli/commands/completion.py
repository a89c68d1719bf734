"""``completion SHELL``: prints a script, and asks no cluster."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

COMPLETION = "completion"
SUMMARY = "print a script with which a shell completes kubectl-gpushare"
DESCRIPTION = """\
Prints a script with which a shell completes commands, options, and the names
of nodes, cards, pods and policies after kubectl-gpushare.

After `kubectl gpushare` kubectl completes them itself, from version 1.26 on.
It asks the program kubectl_complete-gpushare, which has to be in PATH, like
kubectl-gpushare. pipx and uv put both there. After an installation by krew, or
from the archive, link it from the folder of the program that runs:

  program=$(readlink -f "$(command -v kubectl-gpushare)")
  ln -s "$(dirname "$program")/kubectl_complete-gpushare" ~/.local/bin/"""
EXAMPLES = """\
Examples:
  source <(kubectl gpushare completion bash)
  kubectl gpushare completion zsh > "${fpath[1]}/_kubectl-gpushare"
  kubectl gpushare completion fish > ~/.config/fish/completions/kubectl-gpushare.fish"""

_HEAD = """\
# Completes kubectl-gpushare. kubectl itself completes `kubectl gpushare`, where its own completion is set up
# (kubectl completion --help) and the program kubectl_complete-gpushare is in PATH.
"""
# Bash splits words at "=" and ":", too: the line itself is what was typed.
_BASH = r"""
_kubectl_gpushare() {
    local line words typed="${COMP_LINE:0:COMP_POINT}"
    IFS=$' \t' read -ra words <<< "$typed"
    [[ $typed == *[[:space:]] ]] && words+=("")
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) compopt -o default ;;
            :*) ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(kubectl-gpushare __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _kubectl_gpushare kubectl-gpushare
"""
_ZSH = r"""
_kubectl-gpushare() {
    local -a candidates
    local line directive
    for line in "${(@f)$(kubectl-gpushare __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :*) directive=$line ;;
            *$'\t'*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            ?*) candidates+=("${line//:/\\:}") ;;
        esac
    done
    compset -P '-*='
    if (( $#candidates )); then
        _describe -o 'kubectl-gpushare' candidates
    elif [[ $directive == :0 ]]; then
        _files
    fi
}
if [[ $funcstack[1] == _kubectl-gpushare ]]; then
    _kubectl-gpushare "$@"
else
    compdef _kubectl-gpushare kubectl-gpushare
fi
"""
_FISH = r"""
function __kubectl_gpushare_completes
    set --local last (commandline --current-token --cut-at-cursor)
    set --local words (commandline --tokenize --cut-at-cursor --current-process) "$last"
    set --local prefix (string match --regex -- '^-.*=' "$last")
    set --local lines (kubectl-gpushare __complete $words[2..-1] 2>/dev/null)
    set --global __kubectl_gpushare_candidates "$prefix"(string match --invert --regex -- '^:\d+$' $lines)
    not contains -- :0 $lines
end
complete --command kubectl-gpushare --erase
complete --command kubectl-gpushare --no-files --condition __kubectl_gpushare_completes \
    --arguments '$__kubectl_gpushare_candidates'
"""
SCRIPTS: Mapping[str, str] = {
    "bash": f"{_HEAD}{_BASH}",
    "zsh": f"#compdef kubectl-gpushare\n{_HEAD}{_ZSH}",
    "fish": f"{_HEAD}{_FISH}",
}
"""Shell -> its script."""


class PrintScript(argparse.Action):
    """Prints the script and ends, as ``--version`` does: there is no cluster to log in to."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del namespace, option_string
        sys.stdout.write(SCRIPTS[str(values)])
        parser.exit()


def add_completion(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        COMPLETION,
        help=SUMMARY,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=[*SCRIPTS], action=PrintScript, help="that reads the script")
