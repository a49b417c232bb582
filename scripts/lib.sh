# shellcheck shell=bash
# Shared by the scripts in this folder: where things are, and lines that say what runs and how long it took.

KW_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
KW_JOBS=${KW_JOBS:-$(nproc)}
# Our data folder and the Python environment in it; docs/environment.md gives the rule.
KW_DATA=${KERNELWRIGHT_HOME:-${XDG_DATA_HOME:-${HOME:?HOME is not set}/.local/share}/kernelwright}
KW_PYTHON_ENV=$KW_DATA/python
KW_DEV_ENV=$KW_DATA/python-dev
KW_START=$SECONDS
export KW_TOP KW_JOBS KW_DATA KW_PYTHON_ENV KW_DEV_ENV

# Prints a progress line with the seconds since the script's start.
say() { printf '[%4d s] %s\n' $((SECONDS - KW_START)) "$*"; }

# Ends the script: die CODE MESSAGE…   Codes as in docs/json.md: 2 usage, 3 something is missing here.
die() {
  local code=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit "$code"
}

# Prints the comment block at the head of the calling script: its help.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# step NAME COMMAND… : runs it, says how long it took, passes its exit code on. A function run this way does not stop
# at its first failing command (bash ignores `set -e` there), so it returns its failures itself.
step() {
  local name=$1 begin=$SECONDS code=0
  shift
  say "$name …"
  "$@" || code=$?
  if [ "$code" -eq 0 ]; then
    say "$name: done in $((SECONDS - begin)) s"
  else
    say "$name: FAILED with exit code $code after $((SECONDS - begin)) s"
  fi
  return "$code"
}

has() { command -v "$1" >/dev/null 2>&1; }
