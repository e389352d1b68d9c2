# bash completion for ssebench-webui
_ssebench_webui()
{
    local words='' cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='export status token --check --help --settings-man --settings-markdown --version'
    elif [ "$before" = --role ]; then
        words='view operate full'
    elif [ "$before" = --results ] || [ "$before" = --out ]; then
        # shellcheck disable=SC2207 # directories without blanks
        COMPREPLY=($(compgen -d -- "$cur"))
    else
        case "${COMP_WORDS[1]}/$COMP_CWORD" in
        export/*) words='--results --out' ;;
        status/2) words='--json' ;;
        token/2) words='add list revoke' ;;
        token/*) [ "${COMP_WORDS[2]}" = add ] && words='--role --expires' ;;
        esac
    fi
    # shellcheck disable=SC2207 # fixed words
    [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _ssebench_webui ssebench-webui
