# Start-up file of Bash kernels: an interactive Bash without a terminal, so that an interrupt ends the command and not the
# shell. It reads requests from standard input and answers on file descriptor 4; every request ends at a prompt.

unset HISTFILE
set +o history +H
PS1= PS2=

__glovebox_id=
declare -gA __glovebox_before_sandbox=() __glovebox_before_call=()

# A request begins: what it is to evaluate, and $? as the last one left it.
__glovebox_start() {
    local __glovebox_status=$?
    IFS= read -r -d '' __glovebox_code <"$2" # starts no process, as $(<…) does
    __glovebox_id=$1
    printf 'started %s\n' "$1" >&4
    return "$__glovebox_status"
}

# It ended by itself; a cell may have set a prompt of its own.
__glovebox_finish() {
    PROMPT_COMMAND='__glovebox_prompt "$?"'
    return "$1"
}

__glovebox_prompt() {
    PS1= PS2=
    [[ -z $__glovebox_id ]] || printf 'done %s %s\n' "$__glovebox_id" "$1" >&4
    __glovebox_id=
}

# Environment variables laid over what was there; laying others takes the earlier ones back.
__glovebox_lay() {
    local -n __glovebox_before=__glovebox_before_$1
    shift
    local __glovebox_name __glovebox_pair # names that no variable of a user has
    for __glovebox_name in "${!__glovebox_before[@]}"; do
        if [[ ${__glovebox_before[$__glovebox_name]} == unset ]]; then
            unset -v "$__glovebox_name"
        else
            export "$__glovebox_name=${__glovebox_before[$__glovebox_name]#was }"
        fi
    done
    __glovebox_before=()
    for __glovebox_pair; do
        __glovebox_name=${__glovebox_pair%%=*}
        if [[ ! $__glovebox_name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]]; then
            echo "environment variable '$__glovebox_name' not set: no such name is possible in Bash" >&2
            continue
        fi
        if [[ -v $__glovebox_name ]]; then
            __glovebox_before[$__glovebox_name]="was ${!__glovebox_name}"
        else
            __glovebox_before[$__glovebox_name]=unset
        fi
        export "$__glovebox_pair"
    done
}

PROMPT_COMMAND='__glovebox_prompt "$?"'
printf 'ready\n' >&4
