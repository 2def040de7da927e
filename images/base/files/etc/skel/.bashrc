# Read by interactive shells. Nothing here starts a process: a terminal should have its prompt at once.
case $- in
    *i*) ;;
    *) return ;;
esac

HISTCONTROL=ignoreboth
HISTSIZE=1000
HISTFILESIZE=2000
shopt -s histappend checkwinsize

case "${TERM-}" in
    *color*) PS1='\[\e[01;32m\]\u@\h\[\e[00m\]:\[\e[01;34m\]\w\[\e[00m\]\$ ' ;;
    *) PS1='\u@\h:\w\$ ' ;;
esac
alias ls='ls --color=auto' grep='grep --color=auto'
