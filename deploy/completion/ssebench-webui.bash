# bash completion for ssebench-webui
_ssebench_webui()
{
    COMPREPLY=()
    [ "$COMP_CWORD" -eq 1 ] || return
    # shellcheck disable=SC2207 # fixed words
    COMPREPLY=($(compgen -W 'export --check --help --settings-man --settings-markdown --version' \
        -- "${COMP_WORDS[1]}"))
}
complete -F _ssebench_webui ssebench-webui
