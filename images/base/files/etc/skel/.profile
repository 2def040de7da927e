# Read by login shells.
[ -n "${BASH_VERSION-}" ] && [ -r "$HOME/.bashrc" ] && . "$HOME/.bashrc"

for folder in "$HOME/bin" "$HOME/.local/bin"; do
    case ":$PATH:" in
        *":$folder:"*) ;;
        *) [ -d "$folder" ] && PATH="$folder:$PATH" ;;
    esac
done
unset folder
:
