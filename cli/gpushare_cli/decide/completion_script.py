"""With what a shell completes kubectl-gpushare: it asks the program itself."""

from collections.abc import Mapping
from typing import ClassVar

from gpushare_cli.report import CommandReport


class CompletionScript(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "CompletionScript"
    shell: str
    script: str


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
        _describe 'kubectl-gpushare' candidates
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


def completion_script(shell: str) -> CompletionScript:
    return CompletionScript(shell=shell, script=SCRIPTS[shell])
